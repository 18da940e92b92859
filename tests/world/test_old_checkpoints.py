"""Checkpoints written by version 0.1 are read, and their models go on as they would have there."""

from pathlib import Path

import numpy as np
import pytest

from losse.world import LosseWorldModel, NeuralWorldModel

DATA = Path(__file__).parents[1] / "data"
"""`world_0.1.npz`: a stream of each kind of actions, and what 0.1 predicted on its last rows."""
COLUMNS = ("obs", "actions", "rewards", "next_obs", "terminated")


@pytest.mark.parametrize(
    ("name", "stream", "now", "then"),
    [
        ("losse", "two", 1e-12, 1e-9),
        ("losse_push", "push", 1e-12, 1e-9),
        ("losse_warming", "two", 1e-12, 0.01),  # made anew, with a ridge that is cross-validated
        ("neural_full_replay", "two", 1e-6, 1e-3),  # single precision
        ("neural_si", "two", 1e-6, 1e-3),
    ],
)
def test_models_of_version_0_1_are_read(name, stream, now, then):
    kind = LosseWorldModel if name.startswith("losse") else NeuralWorldModel
    model = kind.load(DATA / f"{name}_0.1.losse", progress=False)
    assert model.n_transitions == 60
    with np.load(DATA / "world_0.1.npz") as expected:
        rest = [expected[f"{stream}.{column}"][60:] for column in COLUMNS]
        saved, later = (expected[f"{name}.{when}"] for when in ("saved", "later"))
    np.testing.assert_allclose(np.column_stack(model.step(*rest[:2])), saved, atol=now)
    model.update(*rest)
    np.testing.assert_allclose(np.column_stack(model.step(*rest[:2])), later, atol=then)
