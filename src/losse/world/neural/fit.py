"""Training on stored rows until the held-out loss is at rest: full replay and coreset.

One compiled call is a whole update: rows are split 4:1, epochs of minibatches follow, and after 5
epochs in which the loss on the held-out fifth has not improved, the weights of the best epoch are
kept. The split is drawn anew for every update, so that no row stays unlearned.

Rows are visited in random orders without an array of positions: this would have the length of the
data, so that a compiled loop that shuffles it would have to be compiled again as data grow. Each
position is sent to its place by itself: in every round, x changes places with its partner
(k - x) mod n, or stays, as a hash of the pair decides. Partners are mutual, so a round is a
bijection of 0, ..., n - 1 for any n, and so are many (the swap-or-not shuffle, Hoang, Morris and
Rogaway, 2012).
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from losse.scaling import Scaling
from losse.world.neural.network import Network, Weights, choose, descend, is_healthy, loss

HELD_OUT = 5
"""One of so many rows is held out."""
PATIENCE = 5
"""Epochs without improvement after which training stops."""
GAIN = 0.01
"""Share of the loss that an epoch must gain to count as an improvement, as in MBPO."""
BLOCK = 256
"""Held-out rows that are evaluated at once."""
ROUNDS = 16
"""Rounds of the shuffle."""


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
    scaling: Scaling,
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
            return total + loss(network, parameters, chosen, scaling, mask) * jnp.sum(mask)

        return jax.lax.fori_loop(0, -(-n_judged // BLOCK), block, 0.0) / n_judged

    def train(weights: Weights, epoch: Any) -> Weights:
        order = draw_order(jax.random.fold_in(epochs_key, epoch))
        # Epoch 0 only judges the weights as they come: a second copy of that would be compiled.
        n_steps = jnp.where(epoch > 0, -(-n_train // batch_size), 0)

        def step(i: Any, weights: Weights) -> Weights:
            # The last minibatch is filled up from the beginning of the epoch.
            positions = (i * batch_size + jnp.arange(batch_size)) % n_train
            chosen = rows[place(split, n_held + place(order, positions, n_train), count)]
            gradient = jax.grad(partial(loss, network))(weights.parameters, chosen, scaling)
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


def draw_order(key: Any) -> Any:
    """A random permutation: two random words per round.

    Examples
    --------
    >>> draw_order(jax.random.key(0)).shape
    (16, 2)
    """
    return jax.random.bits(key, (ROUNDS, 2), jnp.uint32)


def place(order: Any, positions: Any, count: Any) -> Any:
    """Where ``positions`` from 0 to ``count`` - 1 go in the permutation ``order``.

    Examples
    --------
    >>> order = draw_order(jax.random.key(0))
    >>> sorted(place(order, jnp.arange(5), 5).tolist())
    [0, 1, 2, 3, 4]
    """
    count = jnp.asarray(count, jnp.uint32)
    x = jnp.asarray(positions, jnp.uint32)

    def exchange(i: Any, x: Any) -> Any:
        pivot, salt = order[i]
        partner = (pivot % count + count - x) % count
        return jnp.where(_coin(jnp.maximum(x, partner) ^ salt), partner, x)

    return jax.lax.fori_loop(0, ROUNDS, exchange, x).astype(jnp.int32)


def _coin(x: Any) -> Any:
    """One well mixed bit of each word (a multiply-and-shift hash)."""
    x = (x ^ (x >> 16)) * jnp.uint32(0x7FEB352D)
    x = (x ^ (x >> 15)) * jnp.uint32(0x846CA68B)
    return (x >> 31) == 1
