"""Workers on a Ray cluster: what `losse.runs.workers` does, wherever there is room."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from losse.runs.workers import ONE_THREAD, Failure, attempt

T = TypeVar("T")


def run_jobs_on_ray(
    function: Callable[[T], Any], jobs: Sequence[T], workers: int
) -> Iterator[tuple[T, Any]]:
    """Yield each job with its result, or with a `Failure`, as they finish.

    The cluster is the one that this process is connected to, that ``RAY_ADDRESS`` names or that
    runs on this machine; else a local Ray with so many workers, for the time of the jobs. Its nodes
    need the same version of losse. Each job has a processor and one thread. A job whose process
    dies has failed, as it has with local workers. Closing the iterator cancels what is running.
    """
    import ray

    from losse.distributed.cluster import DEATHS, connected, first_line

    with connected(workers=max(1, workers)):
        threads = {"env_vars": ONE_THREAD}
        remote = ray.remote(attempt).options(max_retries=0, runtime_env=threads)
        running = {remote.remote(function, job): job for job in jobs}
        try:
            while running:
                (done, *_), _ = ray.wait(list(running), num_returns=1)
                job = running.pop(done)
                try:
                    result = ray.get(done)
                except DEATHS as error:
                    result = Failure(f"its process ended: {first_line(error)}")
                yield job, result
        finally:
            for left in running:
                ray.cancel(left, force=True)
