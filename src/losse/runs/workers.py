"""Worker processes: each computes one job at a time with one thread, and may fail alone.

Processes are spawned, never forked: JAX and Numba keep threads that a fork would break. A worker
that dies (out of memory, say) costs its job only; another takes its place. If this process dies,
however it does, so do they. On a Ray cluster jobs are computed wherever there is room.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, wait
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")

# Read by the libraries when they are imported, hence in the environment of the new process.
ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "VECLIB_MAXIMUM_THREADS": "1",
    "NUMBA_NUM_THREADS": "1",
    "JAX_PLATFORMS": "cpu",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
    "NPROC": "1",  # the size of XLA's pools, which its flags leave at the number of cores
}


_GONE = object()


class Failure(NamedTuple):
    """Why a job has no result: one line, and the traceback if there is one."""

    reason: str
    trace: str = ""


def run_jobs(
    function: Callable[[T], Any], jobs: Sequence[T], workers: int
) -> Iterator[tuple[T, Any]]:
    """Yield each job with its result, or with a `Failure`, as they finish.

    `function` and the jobs must be picklable. With `workers=0` all happens in this process, job by
    job. Closing the iterator, or leaving it by an exception, ends the workers.

    >>> list(run_jobs(len, ["ab", 3], workers=0))  # doctest: +ELLIPSIS
    [('ab', 2), (3, Failure(reason="TypeError: object of type 'int' has no len()", trace='...'))]
    """
    if workers == 0:
        for job in jobs:
            yield job, attempt(function, job)
        return
    left = list(reversed(jobs))
    pool: dict[Connection, _Worker] = {}
    try:
        for _ in range(min(workers, len(left))):
            worker = _Worker(function)
            pool[worker.pipe] = worker
            worker.give(left.pop())
        while pool:
            for pipe in wait(list(pool)):
                worker = pool[pipe]  # type: ignore[index]
                job, result = worker.job, worker.take()
                if result is _GONE:
                    result = worker.obituary()
                    del pool[worker.pipe]
                    if left:
                        worker = _Worker(function)
                        pool[worker.pipe] = worker
                if left:
                    worker.give(left.pop())
                elif worker.pipe in pool:
                    del pool[worker.pipe]
                    worker.stop()
                yield job, result
    finally:
        for worker in pool.values():
            worker.stop(now=True)


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


class _Worker:
    """One process and this end of its pipe."""

    job: Any

    def __init__(self, function: Callable[[Any], Any]) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(function, theirs), daemon=True)
        with _environment(ONE_THREAD):
            self._process.start()
        theirs.close()

    def give(self, job: Any) -> None:
        self.job = job
        with suppress(BrokenPipeError):  # it died: take() will see
            self.pipe.send(job)

    def take(self) -> Any:
        """The result, or `_GONE` if the process is."""
        try:
            return self.pipe.recv()
        except (EOFError, ConnectionError):
            return _GONE

    def obituary(self) -> Failure:
        self._process.join()
        code = self._process.exitcode or 0
        how = f"by {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
        return Failure(f"its process ended {how}")

    def stop(self, *, now: bool = False) -> None:
        """End the process: when it has nothing to do, or in the middle of a job."""
        self.pipe.close()
        if now:
            self._process.terminate()
        self._process.join()


def _serve(function: Callable[[T], Any], pipe: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends us
    threading.Thread(target=_end_with_parent, daemon=True).start()
    while True:
        try:
            job = pipe.recv()
        except EOFError:
            return
        result = attempt(function, job)
        gc.collect()  # agents refer to themselves: many large models would wait to be freed
        try:
            pipe.send(result)
        except BrokenPipeError:
            return


def _end_with_parent() -> None:
    """End this process when its parent is gone, which cannot end it any more if it was killed."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os.kill(os.getpid(), signal.SIGTERM)


def attempt(function: Callable[[T], Any], job: T) -> Any:
    """What a function returns for a job, or a `Failure` that says why it returns nothing."""
    try:
        return function(job)
    except Exception as error:
        reason = "".join(traceback.format_exception_only(error)).strip()
        return Failure(reason, traceback.format_exc())


@contextmanager
def _environment(values: dict[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
