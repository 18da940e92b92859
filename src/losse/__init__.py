"""World models that learn online and never forget."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from losse.encoders import (
        AdaptiveEncoder,
        FourierEncoder,
        LosseEncoder,
        ReLUEncoder,
        TileEncoder,
    )
    from losse.ftl import FTLRegressor

__all__ = [
    "AdaptiveEncoder",
    "FTLRegressor",
    "FourierEncoder",
    "LosseEncoder",
    "ReLUEncoder",
    "TileEncoder",
]


def __getattr__(name: str) -> Any:
    """Import on first use, so that the command line answers ``--help`` without compiled code."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = "losse.ftl" if name == "FTLRegressor" else "losse.encoders"
    return getattr(importlib.import_module(module), name)
