"""In which random order does an epoch visit the rows?  A permutation without an array.

An array of positions would have the length of the data, so that a compiled loop that shuffles it
would have to be compiled again as data grow. Here each position is sent to its place by itself: in
every round, x changes places with its partner (k - x) mod n, or stays, as a hash of the pair
decides. Partners are mutual, so a round is a bijection of 0, ..., n - 1 for any n, and so are many
(the swap-or-not shuffle, Hoang, Morris and Rogaway, 2012).
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

ROUNDS = 16


def draw_order(key: Any) -> Any:
    """Two random words per round: what a permutation is made of.

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
