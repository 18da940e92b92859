"""Training on a window of the latest rows: online, and with Synaptic Intelligence.

The online baseline takes 250 gradient steps on the window for every update. Synaptic Intelligence
(Zenke, Poole and Ganguli, 2017) spreads these evenly over the new samples, each of which is a task
of its own. Along the way each weight collects how much its own moves have lowered the loss, omega.
When a task ends this is divided by the squared distance that it went, and added to its importance
Omega; later tasks then pay c Omega (theta - theta_ref)^2 for moving it from where it was.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from losse.scaling import Scaling
from losse.world.neural.network import Network, Weights, choose, descend, is_healthy, loss

WINDOW = 256
"""Transitions that are kept."""
STEPS = 250
"""Gradient steps per update, each on the whole window."""


@partial(jax.jit, static_argnames="network")
def train_window(
    network: Network, weights: Weights, rows: Any, count: Any, scaling: Scaling, learning_rate: Any
) -> tuple[Weights, Any]:
    """Train on the last ``count`` of the rows; the weights, and whether they are healthy."""
    mask = jnp.arange(len(rows)) >= len(rows) - count
    slope = jax.value_and_grad(partial(loss, network))

    def step(now: Weights, _: Any) -> Any:
        value, gradient = slope(now.parameters, rows, scaling, mask)
        return descend(now, gradient, learning_rate), value

    end, losses = jax.lax.scan(step, weights, length=STEPS)
    healthy = is_healthy(end, losses[0], loss(network, end.parameters, rows, scaling, mask))
    return choose(healthy, end, weights), healthy


class Synapses(NamedTuple):
    """Weights, and what they have meant so far."""

    weights: Weights
    importance: Any
    """Omega, one number per weight."""
    anchor: Any
    """theta_ref, the weights at the end of the last task."""

    @property
    def parameters(self) -> Any:
        """Parameters of the network."""
        return self.weights.parameters


def new_synapses(weights: Weights) -> Synapses:
    """Weights that have meant nothing yet."""
    zeros = jax.tree.map(jnp.zeros_like, weights.parameters)
    return Synapses(weights, zeros, weights.parameters)


def consolidate(importance: Any, credit: Any, moved: Any, xi: Any) -> Any:
    """Importance of a weight after a task in which it ``moved`` and earned ``credit``.

    Examples
    --------
    >>> float(consolidate(1.0, 0.5, moved=0.5, xi=0.25))
    2.0
    >>> float(consolidate(1.0, -5.0, moved=0.5, xi=0.25))
    0.0
    """
    return jax.nn.relu(importance + credit / (moved**2 + xi))


@partial(jax.jit, static_argnames="network")
def train_tasks(
    network: Network,
    synapses: Synapses,
    rows: Any,
    n_before: Any,
    n_new: Any,
    n_steps: Any,
    scaling: Scaling,
    learning_rate: Any,
    xi: Any,
    c: Any,
) -> tuple[Synapses, Any]:
    """Learn ``n_new`` samples as one task each; the synapses, and whether they are healthy.

    ``rows`` are the window so far, whose last ``n_before`` rows are filled, and the new ones.
    """
    slope = jax.grad(partial(loss, network))

    def window(i: Any) -> tuple[Any, Any]:
        mask = jnp.arange(WINDOW) >= WINDOW - (n_before + i + 1)
        return jax.lax.dynamic_slice_in_dim(rows, i + 1, WINDOW), mask

    def task(i: Any, now: Synapses) -> Synapses:
        seen, mask = window(i)

        def step(_: Any, carry: tuple[Weights, Any]) -> tuple[Weights, Any]:
            weights, credit = carry
            gradient = slope(weights.parameters, seen, scaling, mask)
            pulled = jax.tree.map(
                lambda g, omega, theta, anchor: g + 2 * c * omega * (theta - anchor),
                gradient, now.importance, weights.parameters, now.anchor,
            )  # fmt: skip
            after = descend(weights, pulled, learning_rate)
            # Of the data's own gradient: the penalty earns no credit.
            credit = jax.tree.map(
                lambda sum_, g, theta, moved: sum_ - g * (moved - theta),
                credit, gradient, weights.parameters, after.parameters,
            )  # fmt: skip
            return after, credit

        nothing = jax.tree.map(jnp.zeros_like, now.importance)
        weights, credit = jax.lax.fori_loop(0, n_steps, step, (now.weights, nothing))
        importance = jax.tree.map(
            lambda omega, credit, theta, anchor: consolidate(omega, credit, theta - anchor, xi),
            now.importance, credit, weights.parameters, now.anchor,
        )  # fmt: skip
        return Synapses(weights, importance, weights.parameters)

    end = jax.lax.fori_loop(0, n_new, task, synapses)
    last, mask = window(n_new - 1)
    before, after = (
        loss(network, state.weights.parameters, last, scaling, mask) for state in (synapses, end)
    )
    healthy = is_healthy(end, before, after)
    return choose(healthy, end, synapses), healthy
