"""How is a network trained on the latest transitions alone?  The online baseline."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from losse.world.neural_network import (
    Network,
    Units,
    Weights,
    choose,
    descend,
    is_healthy,
    loss,
)

WINDOW = 256
"""Transitions that are kept."""
STEPS = 250
"""Gradient steps per update, each on the whole window."""


@partial(jax.jit, static_argnames="network")
def train_window(
    network: Network, weights: Weights, rows: Any, count: Any, units: Units, learning_rate: Any
) -> tuple[Weights, Any]:
    """Train on the last ``count`` of the rows; the weights, and whether they are healthy."""
    mask = jnp.arange(len(rows)) >= len(rows) - count
    slope = jax.value_and_grad(partial(loss, network))

    def step(now: Weights, _: Any) -> Any:
        value, gradient = slope(now.parameters, rows, units, mask)
        return descend(now, gradient, learning_rate), value

    end, losses = jax.lax.scan(step, weights, length=STEPS)
    healthy = is_healthy(end, losses[0], loss(network, end.parameters, rows, units, mask))
    return choose(healthy, end, weights), healthy
