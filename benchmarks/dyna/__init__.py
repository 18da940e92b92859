"""The time of each part of a Dyna run."""
