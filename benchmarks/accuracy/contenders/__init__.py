"""Learners that compete in `losse bench accuracy`."""
