"""`losse train`: train an agent with a world model on any Gymnasium environment."""

from collections.abc import Sequence

from rich.console import Console


def main(arguments: Sequence[str]) -> None:
    """Train with the options of the command line."""
    console = Console()
    if not {"-h", "--help"} & set(arguments):
        console.print("loading ...", style="dim", highlight=False)
    from losse.cli.train.command import train_with  # takes seconds, which are not to be silent

    train_with(arguments, console)
