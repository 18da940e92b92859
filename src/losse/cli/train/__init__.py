"""`losse train`: train an agent with a world model on any Gymnasium environment."""

from losse.cli.train.command import main

__all__ = ["main"]
