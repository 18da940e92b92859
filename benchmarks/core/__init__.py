"""The speed of this library against the paper's update, interleaved on one core."""
