"""Learners of neural world models: a memory, and a way to train a network on it.

Rows are kept even where training diverges.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from losse.scaling import Scaling
from losse.storage.state import State, StateReader, nested
from losse.world.neural.fit import fit
from losse.world.neural.memories import Everything, Recent, Rows
from losse.world.neural.network import Network, new_weights
from losse.world.neural.online import STEPS, WINDOW, new_synapses, train_tasks, train_window


class Learner(ABC):
    """A network, the rows that it has kept, and what training carries along."""

    def __init__(
        self,
        network: Network,
        n_inputs: int,
        memory: Everything | Recent,
        *,
        learning_rate: float,
        seed: int,
    ) -> None:
        self.memory = memory
        self._network = network
        self._n_inputs = n_inputs
        self._rate = np.float32(learning_rate)
        self._seed = seed

    @cached_property
    def _trained(self) -> Any:
        """What training changes; it is made when it is first needed, which compiles."""
        return self._begin()

    @property
    def parameters(self) -> Any:
        """Parameters of the network."""
        return self._trained.parameters

    @abstractmethod
    def learn(self, rows: Rows, scaling: Scaling) -> bool:
        """Learn n > 0 new rows; whether training stayed healthy."""

    def state(self) -> State:
        """Values for a checkpoint."""
        return {**nested("memory", self.memory.state()), **leaves(self._trained)}

    def restore(self, saved: StateReader) -> None:
        """Take over what `state` has returned."""
        self.memory.restore(saved.part("memory"))
        self._trained = read_leaves(saved, jax.eval_shape(self._begin))

    def _begin(self) -> Any:
        """What training changes, before it has begun."""
        return new_weights(self._network, self._n_inputs, self._seed)


class Replay(Learner):
    """Full replay and coreset: fit what the memory holds until the held-out loss is at rest."""

    def __init__(
        self,
        network: Network,
        n_inputs: int,
        memory: Everything | Recent,
        *,
        learning_rate: float,
        batch_size: int,
        seed: int,
    ) -> None:
        super().__init__(network, n_inputs, memory, learning_rate=learning_rate, seed=seed)
        self._batch_size = batch_size
        self._n_updates = 0

    def learn(self, rows: Rows, scaling: Scaling) -> bool:
        self.memory.add(rows)
        self._trained, healthy = fit(
            self._network,
            self._trained,
            self.memory.rows,
            np.int32(self.memory.count),
            scaling,
            np.uint32(self._seed),
            np.uint32(self._n_updates),
            self._rate,
            self._batch_size,
        )
        self._n_updates += 1
        return bool(healthy)

    def state(self) -> State:
        return {"n_updates": self._n_updates} | super().state()

    def restore(self, saved: StateReader) -> None:
        super().restore(saved)
        self._n_updates = saved.count("n_updates", at_most=2**31 - 1)


class Online(Learner):
    """The online baseline: 250 gradient steps on the last 256 transitions.

    A larger batch is learned in pieces of 256, one after the other, so that no row is skipped.
    """

    def __init__(self, network: Network, n_inputs: int, **settings: Any) -> None:
        memory = Recent(WINDOW, n_inputs + network.n_outputs)
        super().__init__(network, n_inputs, memory, **settings)

    def learn(self, rows: Rows, scaling: Scaling) -> bool:
        healthy = True
        n_steps = max(1, STEPS // len(rows))
        for first in range(0, len(rows), WINDOW):
            self._trained, well = self._train(rows[first : first + WINDOW], n_steps, scaling)
            healthy &= bool(well)
        return healthy

    def _train(self, new: Rows, n_steps: int, scaling: Scaling) -> tuple[Any, Any]:
        """What becomes of the training state with up to 256 new rows, and whether it is healthy.

        ``n_steps`` are the gradient steps for each row, where rows have steps of their own.
        """
        self.memory.add(new)
        count = np.int32(self.memory.count)
        return train_window(
            self._network, self._trained, self.memory.rows, count, scaling, self._rate
        )


class Synaptic(Online):
    """Synaptic Intelligence: as `Online`, but each new sample is a task of its own."""

    def __init__(
        self, network: Network, n_inputs: int, *, xi: float, c: float, **settings: Any
    ) -> None:
        super().__init__(network, n_inputs, **settings)
        self._xi, self._c = np.float32(xi), np.float32(c)

    def _train(self, new: Rows, n_steps: int, scaling: Scaling) -> tuple[Any, Any]:
        rows = np.zeros((2 * WINDOW, new.shape[1]), np.float32)
        rows[:WINDOW], rows[WINDOW : WINDOW + len(new)] = self.memory.rows, new
        n_before = np.int32(self.memory.count)
        self.memory.add(new)
        return train_tasks(
            self._network,
            self._trained,
            rows,
            n_before,
            np.int32(len(new)),
            np.int32(n_steps),
            scaling,
            self._rate,
            self._xi,
            self._c,
        )

    def _begin(self) -> Any:
        return new_synapses(super()._begin())


def leaves(tree: Any) -> State:
    """The arrays of a tree, by their number.

    Examples
    --------
    >>> leaves({"a": jnp.zeros(2), "b": jnp.ones(1)})
    {'leaf0': array([0., 0.], dtype=float32), 'leaf1': array([1.], dtype=float32)}
    """
    return {f"leaf{i}": np.asarray(leaf) for i, leaf in enumerate(jax.tree.leaves(tree))}


def read_leaves(saved: StateReader, like: Any) -> Any:
    """A tree of the structure and shapes of another, from what `leaves` returned."""
    old, structure = jax.tree.flatten(like)
    new = [saved.array(f"leaf{i}", leaf.shape, leaf.dtype) for i, leaf in enumerate(old)]
    return jax.tree.unflatten(structure, [jnp.array(leaf) for leaf in new])
