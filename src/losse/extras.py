"""Optional packages: imported on first use, with an error that names the extra to install."""

from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any

EXTRAS = {
    "gymnasium": "world",
    **dict.fromkeys(("jax", "flax", "optax"), "neural"),
    **dict.fromkeys(("stable_baselines3", "sb3_contrib", "sbx"), "rl"),
    **dict.fromkeys(("matplotlib", "rich", "tyro"), "cli"),
    **dict.fromkeys(("starlette", "uvicorn"), "watch"),
    "river": "river",
    "rliable": "paper",
    "ray": "ray",
    "vowpalwabbit": "bench",
}
"""The extra that installs a package, with all that is usually needed beside it."""


def missing(
    user: str, package: str, extra: str | None = None, otherwise: str = ""
) -> ModuleNotFoundError:
    """Error of a user, such as a class or a command, whose optional package is not installed.

    Parameters
    ----------
    user
        What needs the package.
    package
        Name of the module that was not found.
    extra
        Extra that installs everything the user needs; that of the package alone by default.
    otherwise
        What to do instead of installing it.

    Examples
    --------
    >>> print(missing("NeuralWorldModel", "jax.numpy"))
    NeuralWorldModel needs 'jax': pip install 'losse[neural]', or in a checkout
    pip install -e '.[neural]'
    """
    name = package.partition(".")[0]
    extra = extra or EXTRAS.get(name, "all")
    return ModuleNotFoundError(
        f"{user} needs {name!r}: pip install 'losse[{extra}]', "
        f"or in a checkout pip install -e '.[{extra}]'{otherwise and f'; {otherwise}'}",
        name=package,
    )


def require(user: str, *packages: str, otherwise: str = "") -> None:
    """Raise the error of `missing` for the first of the packages that is not installed."""
    for package in packages:
        if find_spec(package) is None:
            raise missing(user, package, otherwise=otherwise)


def import_on_use(
    package: str, homes: Mapping[str, str], extra: str | None = None
) -> Callable[[str], Any]:
    """Make the ``__getattr__`` of a package that imports its public names when they are used.

    Parameters
    ----------
    package
        The package, as its ``__name__``.
    homes
        Module of the package that holds each public name.
    extra
        As for `missing`.
    """

    def attribute(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        try:
            home = import_module(f"{package}.{homes[name]}")
        except ModuleNotFoundError as error:
            if error.name is None or error.name.partition(".")[0] == "losse":
                raise
            raise missing(f"{package}.{name}", error.name, extra) from error
        return getattr(home, name)

    return attribute
