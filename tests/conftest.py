"""Shared test settings: one thread per process, and hypothesis without deadlines.

Tests run beside each other, and threads of several processes that wait for each other take several
times as long. XLA spends little on programs that run once, and keeps them for other processes.
Deadlines make no sense since a first call may compile. The examples are the same in every run, so
that a failure belongs to a change; HYPOTHESIS_PROFILE=explore draws new ones. Ctrl-C is what it is
in a terminal, also where a shell has started the tests in the background.
"""

import os
import signal
from pathlib import Path
from zipfile import ZipFile

import pytest
from hypothesis import settings

from losse.runs.workers import ONE_THREAD

XLA_FOR_TESTS = {
    "JAX_DISABLE_MOST_OPTIMIZATIONS": "1",
    "JAX_COMPILATION_CACHE_DIR": str(Path(__file__).parents[1] / ".pytest_cache" / "xla"),
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.05",
    "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
}
os.environ.update(ONE_THREAD | XLA_FOR_TESTS)  # before anything imports NumPy or JAX
signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("losse", deadline=None, max_examples=40, derandomize=True)
settings.register_profile("explore", deadline=None, max_examples=400, derandomize=False)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "losse"))


def pytest_configure(config):
    """Not in pyproject.toml, since pytest would import Numba, and so NumPy, too early."""
    config.addinivalue_line("filterwarnings", "error::numba.core.errors.NumbaPerformanceWarning")


@pytest.fixture(scope="session")
def version_0_1(tmp_path_factory):
    """Folder of what version 0.1 has written: checkpoints, and what their models predicted."""
    folder = tmp_path_factory.mktemp("version-0.1")
    with ZipFile(Path(__file__).parent / "version-0.1.zip") as files:
        files.extractall(folder)
    return folder
