"""The example of a compiled loop: copies of a pendulum learn to stand up."""

import importlib.util
from pathlib import Path

import jax
import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "jax_loop.py"


@pytest.fixture(scope="module")
def example():
    spec = importlib.util.spec_from_file_location("jax_loop", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_pendulums_stand_up(example):
    settings = example.Settings(copies=16, steps=100)
    model, rewards = jax.jit(example.run, static_argnums=0)(settings, jax.random.key(0))
    assert int(model.memory.n_samples) == 1600
    assert float(rewards[-10:].mean()) > -0.5 > -3 > float(rewards[:20].mean())
