"""The time of single calls, as a control loop sees them."""
