"""How does each of the paper's baselines learn?  A memory and a way of training on it.

Each learner has `learn`, which returns whether training stayed healthy, the `parameters` of its
network, and `state` and `restore` for checkpoints. Rows are kept even where training diverges.
"""

from __future__ import annotations

from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from losse.storage.state import State, StateReader, nested
from losse.world.neural_fit import fit
from losse.world.neural_memories import Everything, Recent, Reservoir, Rows
from losse.world.neural_network import Network, Units, new_weights
from losse.world.neural_synapses import new_synapses, train_tasks
from losse.world.neural_window import STEPS, WINDOW, train_window


class Learner(Protocol):
    """What the world model asks of a baseline."""

    @property
    def parameters(self) -> Any:
        """Of the network."""

    def learn(self, rows: Rows, units: Units) -> bool:
        """Learn n > 0 new rows; whether training stayed healthy."""

    def state(self) -> State:
        """What a checkpoint keeps."""

    def restore(self, saved: StateReader) -> None:
        """Take over what `state` returned."""


class Replay:
    """Full replay and coreset: fit what the memory holds until the held-out loss is at rest."""

    def __init__(
        self,
        network: Network,
        n_inputs: int,
        memory: Everything | Reservoir,
        *,
        learning_rate: float,
        batch_size: int,
        seed: int,
    ) -> None:
        self._network = network
        self._memory = memory
        self._rate = np.float32(learning_rate)
        self._batch_size = batch_size
        self._seed = np.uint32(seed)
        self._weights = new_weights(network, n_inputs, seed)
        self._n_updates = 0

    @property
    def parameters(self) -> Any:
        """Of the network."""
        return self._weights.parameters

    def learn(self, rows: Rows, units: Units) -> bool:
        """See `Learner`."""
        self._memory.add(rows)
        self._weights, healthy = fit(
            self._network,
            self._weights,
            self._memory.rows,
            np.int32(self._memory.count),
            units,
            self._seed,
            np.uint32(self._n_updates),
            self._rate,
            self._batch_size,
        )
        self._n_updates += 1
        return bool(healthy)

    def state(self) -> State:
        """See `Learner`."""
        memory = nested("memory", self._memory.state())
        return {"n_updates": self._n_updates, **memory, **leaves(self._weights)}

    def restore(self, saved: StateReader) -> None:
        """See `Learner`."""
        self._n_updates = saved.count("n_updates", at_most=2**31 - 1)
        self._memory.restore(saved.part("memory"))
        self._weights = read_leaves(saved, self._weights)


class Online:
    """The online baseline: 250 gradient steps on the last 256 transitions.

    A larger batch is learned in pieces of 256, one after the other, so that no row is skipped.
    """

    def __init__(self, network: Network, n_inputs: int, *, learning_rate: float, seed: int) -> None:
        self._network = network
        self._rate = np.float32(learning_rate)
        self._weights = new_weights(network, n_inputs, seed)
        self._memory = Recent(WINDOW, n_inputs + network.n_outputs)

    @property
    def parameters(self) -> Any:
        """Of the network."""
        return self._weights.parameters

    def learn(self, rows: Rows, units: Units) -> bool:
        """See `Learner`."""
        healthy = True
        for first in range(0, len(rows), WINDOW):
            self._memory.add(rows[first : first + WINDOW])
            self._weights, well = train_window(
                self._network,
                self._weights,
                self._memory.rows,
                np.int32(self._memory.count),
                units,
                self._rate,
            )
            healthy &= bool(well)
        return healthy

    def state(self) -> State:
        """See `Learner`."""
        return {**nested("memory", self._memory.state()), **leaves(self._weights)}

    def restore(self, saved: StateReader) -> None:
        """See `Learner`."""
        self._memory.restore(saved.part("memory"))
        self._weights = read_leaves(saved, self._weights)


class Synaptic:
    """Synaptic Intelligence: as `Online`, but each new sample is a task of its own."""

    def __init__(
        self,
        network: Network,
        n_inputs: int,
        *,
        learning_rate: float,
        seed: int,
        xi: float,
        c: float,
    ) -> None:
        self._network = network
        self._factors = np.float32(learning_rate), np.float32(xi), np.float32(c)
        self._synapses = new_synapses(new_weights(network, n_inputs, seed))
        self._memory = Recent(WINDOW, n_inputs + network.n_outputs)

    @property
    def parameters(self) -> Any:
        """Of the network."""
        return self._synapses.weights.parameters

    def learn(self, rows: Rows, units: Units) -> bool:
        """See `Learner`."""
        healthy = True
        n_steps = np.int32(max(1, STEPS // len(rows)))
        padded = np.zeros((2 * WINDOW, rows.shape[1]), np.float32)
        for first in range(0, len(rows), WINDOW):
            new = rows[first : first + WINDOW]
            padded[:WINDOW] = self._memory.rows
            padded[WINDOW : WINDOW + len(new)] = new
            n_before = np.int32(self._memory.count)
            self._memory.add(new)
            self._synapses, well = train_tasks(
                self._network,
                self._synapses,
                padded,
                n_before,
                np.int32(len(new)),
                n_steps,
                units,
                *self._factors,
            )
            healthy &= bool(well)
        return healthy

    def state(self) -> State:
        """See `Learner`."""
        return {**nested("memory", self._memory.state()), **leaves(self._synapses)}

    def restore(self, saved: StateReader) -> None:
        """See `Learner`."""
        self._memory.restore(saved.part("memory"))
        self._synapses = read_leaves(saved, self._synapses)


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
