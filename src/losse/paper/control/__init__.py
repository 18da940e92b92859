"""Figures 5 (top) and 6: world models in Dyna on tasks with discrete actions."""
