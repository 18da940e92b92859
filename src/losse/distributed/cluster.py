"""Connection to a Ray cluster: the one in use, one that is running, or a local one for a while."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from losse.extras import missing

try:
    import ray
except ModuleNotFoundError as error:
    raise missing("losse.distributed", "ray") from error

DEATHS = (
    ray.exceptions.RayActorError,
    ray.exceptions.WorkerCrashedError,
    ray.exceptions.OutOfMemoryError,
    ray.exceptions.NodeDiedError,
    ray.exceptions.ObjectLostError,
    ray.exceptions.RaySystemError,
)
"""Errors of a process, or a node, that is gone; nothing is wrong with what it did."""

PATIENCE = 5.0
"""Seconds to wait for the answer of a cluster."""


@contextmanager
def connected(address: str | None = None, workers: int | None = None) -> Iterator[None]:
    """Have a Ray cluster within the block.

    Parameters
    ----------
    address
        Address of a cluster, as for `ray.init`. None: the connection that this process has; else
        the cluster that ``RAY_ADDRESS`` names or that runs on this machine; else a local Ray, which
        ends with the block. ``"local"``: always a local Ray.
    workers
        Number of processes of a local Ray; by default, one for each core.

    Raises
    ------
    ConnectionError
        If there is no cluster at the address.

    Examples
    --------
    >>> from losse.distributed.cluster import connected
    >>> with connected(workers=2):  # doctest: +SKIP
    ...     print(ray.cluster_resources()["CPU"])
    2.0
    """
    if ray.is_initialized():
        here = ray.get_runtime_context().gcs_address
        if address not in (None, "auto", here):
            raise ConnectionError(
                f"address={address!r} is not the cluster that this process is connected to, "
                f"{here}: leave out address, or call ray.shutdown() first."
            )
        yield
        return
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    where = address or os.environ.get("RAY_ADDRESS") or "auto"
    before = signal.getsignal(signal.SIGTERM)
    try:
        if where == "local" or not _found(where, quiet, insist=address is not None):
            ray.init("local", num_cpus=workers, include_dashboard=False, **quiet)
        yield
    finally:
        ray.shutdown()
        # Ray has put a handler of its own in its place, and leaves it there.
        if threading.current_thread() is threading.main_thread() and before is not None:
            signal.signal(signal.SIGTERM, before)


def _found(address: str, quiet: dict[str, Any], *, insist: bool) -> bool:
    """Connect to a running cluster; False if any would do, and there is none."""
    try:
        if address != "auto":
            host, _, port = address.removeprefix("ray://").rpartition(":")
            socket.create_connection((host, int(port)), PATIENCE).close()  # Ray tries for minutes
        ray.init(address, **quiet)
    except (OSError, RuntimeError, ValueError) as error:
        if address == "auto" and not insist:
            return False
        raise ConnectionError(
            f"address={address!r}: no Ray cluster answers there ({first_line(error)}). Start one "
            'by `ray start --head`, correct the address or RAY_ADDRESS, or use address="local".'
        ) from error
    return True


def n_cpus() -> int:
    """Number of processors of the cluster, at least one."""
    return max(1, int(ray.cluster_resources().get("CPU", 1)))


def first_line(error: Exception) -> str:
    """What an error of Ray says first; the rest are its own remedies.

    >>> first_line(ValueError("it is lost\\nTo see more, ..."))
    'it is lost'
    """
    return str(error).strip().partition("\n")[0]
