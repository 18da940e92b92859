"""The time that world models take to learn and to imagine."""
