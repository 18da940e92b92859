"""Random lives of models: the short version of `make torture`."""

from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from tests.torture.machine import Life


def test_random_lives():
    run_state_machine_as_test(
        Life, settings=settings(max_examples=60, stateful_step_count=12, deadline=None)
    )
