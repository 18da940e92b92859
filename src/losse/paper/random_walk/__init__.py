"""Figures 4 and 9: learning a drifting stream without forgetting."""
