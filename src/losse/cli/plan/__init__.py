"""`losse plan`: let an agent plan in a world model that it learns as it goes."""

from losse.cli.plan.command import Settings, main, run

__all__ = ["Settings", "main", "run"]
