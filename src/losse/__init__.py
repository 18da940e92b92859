"""World models that learn online and never forget."""

from typing import TYPE_CHECKING

from losse.extras import import_on_use

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

# The command line answers --help without compiled code.
__getattr__ = import_on_use(
    __name__, {name: "ftl" if name == "FTLRegressor" else "encoders" for name in __all__}
)
