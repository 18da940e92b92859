"""Learning on a cluster of Ray: a data set by many workers, and a fleet of environments."""

from typing import TYPE_CHECKING

from losse.extras import import_on_use

if TYPE_CHECKING:
    from losse.distributed.data import fit
    from losse.distributed.fleet import Fleet

__all__ = ["Fleet", "fit"]

_HOMES = {"fit": "data", "Fleet": "fleet"}

__getattr__ = import_on_use(__name__, _HOMES, extra="ray")
