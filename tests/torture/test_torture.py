"""Random lives of models and spoilt files: the short version of `make torture`."""

from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from tests.torture.fuzz import fuzz
from tests.torture.machine import Life


def test_random_lives():
    run_state_machine_as_test(
        Life, settings=settings(max_examples=60, stateful_step_count=12, deadline=None)
    )


def test_spoilt_files_are_refused_or_harmless(tmp_path):
    outcomes = fuzz(tmp_path, seed=0, count=25)
    assert outcomes["refused"] > outcomes["used"] > 0
