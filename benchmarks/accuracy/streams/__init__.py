"""Streams of `losse bench accuracy`: transitions of an environment, of three kinds, and tables."""
