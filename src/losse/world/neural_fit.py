"""How is a network fitted to stored data until it stops improving?  Full replay and coreset.

One compiled call is a whole update: rows are split 4:1, epochs of minibatches follow, and after 5
epochs in which the loss on the held-out fifth has not improved, the weights of the best epoch are
kept. The split is drawn anew for every update, so that no row stays unlearned.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

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
from losse.world.neural_order import draw_order, place

HELD_OUT = 5
"""One of so many rows is held out."""
PATIENCE = 5
"""Epochs without improvement after which training stops."""
GAIN = 0.01
"""Share of the loss that an epoch must gain to count as an improvement, as in MBPO."""
BLOCK = 256
"""Held-out rows that are evaluated at once."""


class _Progress(NamedTuple):
    weights: Weights
    best: Weights
    best_loss: Any
    first_loss: Any
    last_loss: Any
    goal: Any
    stale: Any
    epoch: Any


@partial(jax.jit, static_argnames=("network", "batch_size"))
def fit(
    network: Network,
    weights: Weights,
    rows: Any,
    count: Any,
    units: Units,
    seed: Any,
    n_updates: Any,
    learning_rate: Any,
    batch_size: int,
) -> tuple[Weights, Any]:
    """Train on the first ``count`` of the rows; the weights, and whether they are healthy.

    Splits and orders follow from ``seed`` and the number of updates so far.
    """
    n_held = count // HELD_OUT
    n_train = count - n_held
    n_judged = jnp.where(n_held > 0, n_held, count)  # too few to hold any out: judge by all
    key = jax.random.fold_in(jax.random.key(seed), n_updates)
    split_key, epochs_key = jax.random.split(key)
    split = draw_order(split_key)

    def judge(parameters: Any) -> Any:
        def block(i: Any, total: Any) -> Any:
            positions = i * BLOCK + jnp.arange(BLOCK)
            mask = positions < n_judged
            chosen = rows[place(split, jnp.where(mask, positions, 0), count)]
            return total + loss(network, parameters, chosen, units, mask) * jnp.sum(mask)

        return jax.lax.fori_loop(0, -(-n_judged // BLOCK), block, 0.0) / n_judged

    def train(weights: Weights, epoch: Any) -> Weights:
        order = draw_order(jax.random.fold_in(epochs_key, epoch))
        # Epoch 0 only judges the weights as they come: a second copy of that would be compiled.
        n_steps = jnp.where(epoch > 0, -(-n_train // batch_size), 0)

        def step(i: Any, weights: Weights) -> Weights:
            # The last minibatch is filled up from the beginning of the epoch.
            positions = (i * batch_size + jnp.arange(batch_size)) % n_train
            chosen = rows[place(split, n_held + place(order, positions, n_train), count)]
            gradient = jax.grad(partial(loss, network))(weights.parameters, chosen, units)
            return descend(weights, gradient, learning_rate)

        return jax.lax.fori_loop(0, n_steps, step, weights)

    def epoch(now: _Progress) -> _Progress:
        weights = train(now.weights, now.epoch)
        reached = judge(weights.parameters)
        better, improved = reached < now.best_loss, reached < now.goal
        return _Progress(
            weights=weights,
            best=choose(better, weights, now.best),
            best_loss=jnp.where(better, reached, now.best_loss),
            first_loss=jnp.where(now.epoch > 0, now.first_loss, reached),
            last_loss=reached,
            goal=jnp.where(improved, (1 - GAIN) * reached, now.goal),
            stale=jnp.where(improved, 0, now.stale + 1),
            epoch=now.epoch + 1,
        )

    begin = _Progress(weights, weights, jnp.inf, jnp.inf, jnp.inf, jnp.inf, 0, 0)
    end = jax.lax.while_loop(lambda now: now.stale < PATIENCE, epoch, begin)
    healthy = is_healthy(end.weights, end.first_loss, end.last_loss)
    return choose(healthy, end.best, weights), healthy
