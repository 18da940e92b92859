"""`NeuralWorldModel`: the neural networks that the paper compares Losse with."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from losse.checks import check_count, check_positive
from losse.storage.state import State, StateReader, nested
from losse.typing import Array
from losse.world.checkpoint import SPACES, CheckpointedModel
from losse.world.known import Function, Known, learned_part
from losse.world.neural.learners import Learner, Online, Replay, Synaptic
from losse.world.neural.memories import MEMORIES, Everything, Reservoir
from losse.world.neural.network import Network, parameter_shapes, predict
from losse.world.neural.units import Units
from losse.world.spaces import flat, one_hot

LARGEST = 1e30
"""Largest number that a network may see: squares of more leave the range of single precision."""
BLOCK = 4096
"""Rows that are predicted at once; fewer are filled up to a power of two."""
NUMBERS = ("learning_rate", "xi", "c")
COUNTS = {"batch_size": 1 << 24, "coreset_size": 1 << 28, "seed": 2**31 - 1}
"""Settings that are whole numbers, with the largest of each."""
_WIDEST = 1 << 16


class NeuralWorldModel(CheckpointedModel):
    """A neural network as a world model, with one of four ways to cope with a stream of data.

    A single network predicts the change of the state, the reward and the termination. It sees
    states and actions (one-hot if discrete) standardised by the bounds of their space, or by the
    first 1000 transitions where there are none, as all targets are. Weights and optimiser (Adam)
    are kept from update to update.

    Every `update` trains the network once, in one compiled call that is compiled again neither as
    data grow (but for full replay at 65,536 transitions and whenever there are four times more) nor
    for batches of another size.

    Parameters
    ----------
    observation_space, action_space, termination, reward
        As in `WorldModel`.
    memory
        ``"full-replay"``: all data are kept. An update splits them 4:1 and trains until the loss
        on the smaller part has not improved by 1 % for 5 epochs; the best weights stay.
        ``"online"``: the last 256 transitions are kept, and an update is 250 gradient steps on
        them. A larger batch is learned in pieces of 256.
        ``"si"``: as online, with Synaptic Intelligence. Every transition is a task: the 250 steps
        are spread evenly over those of the update, with at least one step each.
        ``"coreset"``: a uniform sample of all data is kept (reservoir sampling), and trained on as
        in full replay.
    hidden
        Units of each hidden layer; None for the paper's networks: 3 x 32 for discrete actions,
        4 x 400 for continuous ones.
    learning_rate
        Adam's step size.
    batch_size
        Rows of a minibatch in full replay and coreset; None for 32 (discrete actions) or 256.
    coreset_size
        Transitions in the coreset; None for the paper's 100 (discrete actions) or 5000.
    xi, c
        Damping and strength of Synaptic Intelligence. Where weights move little within a task, it
        is c / xi that counts: the larger, the less is forgotten, and the less is learned. The
        best depend on the environment; `losse reproduce forgetting` searches them.
    seed
        Of the initial weights, the splits, the order of the data and the coreset.

    Warns
    -----
    RuntimeWarning
        If an update diverges: weights that are not finite, or a loss that has exploded. The
        weights from before the update stay; the data are kept.

    Examples
    --------
    >>> import numpy as np
    >>> from gymnasium.spaces import Box, Discrete
    >>> from losse.world import NeuralWorldModel
    >>> model = NeuralWorldModel(Box(0, 1, (2,)), Discrete(2), memory="online")
    >>> rng = np.random.default_rng(0)
    >>> for _ in range(10):
    ...     obs, actions = rng.uniform(0.1, 0.9, (100, 2)), rng.integers(0, 2, 100)
    ...     next_obs = obs + np.where(actions == 0, 0.1, -0.1)[:, None]
    ...     model.update(obs, actions, np.ones(100), next_obs, np.zeros(100, dtype=bool))
    >>> next_obs, rewards, terminated = model.step([[0.5, 0.5], [0.5, 0.5]], [0, 1])
    >>> next_obs.round(1), rewards.round(1)
    (array([[0.6, 0.6],
           [0.4, 0.4]], dtype=float32), array([1., 1.]))
    """

    kind = "losse.NeuralWorldModel"

    def __init__(
        self,
        observation_space: spaces.Space[Any],
        action_space: spaces.Space[Any],
        *,
        memory: str = "full-replay",
        termination: str | Function = "learned",
        reward: Known = "learned",
        hidden: Sequence[int] | None = None,
        learning_rate: float = 1e-3,
        batch_size: int | None = None,
        coreset_size: int | None = None,
        xi: float = 1e-5,
        c: float = 0.1,
        seed: int = 0,
    ) -> None:
        super().__init__(observation_space, action_space, termination=termination, reward=reward)
        large = self.actions.continuous
        if memory not in MEMORIES:
            raise ValueError(f"memory={memory!r} is not known: use one of {', '.join(MEMORIES)}.")
        self.memory = memory
        self.hidden = _layers(((400,) * 4 if large else (32,) * 3) if hidden is None else hidden)
        self.batch_size = (256 if large else 32) if batch_size is None else batch_size
        self.coreset_size = (5000 if large else 100) if coreset_size is None else coreset_size
        self.learning_rate, self.xi, self.c, self.seed = learning_rate, xi, c, seed
        for name, most in COUNTS.items():
            check_count(name, getattr(self, name), at_least=0 if name == "seed" else 1)
            if getattr(self, name) > most:
                raise ValueError(f"{name}={getattr(self, name)} is too large: use up to {most}.")
        for name in ("learning_rate", "xi"):
            check_positive(name, getattr(self, name))
        if c != 0:
            check_positive("c", c)
        self._units = Units(self.observations, self.actions, self._n_targets)
        self._network = Network(self.hidden, self._n_targets)
        self._learner = self._new_learner()

    def _learn(self, states: Array, actions: npt.NDArray[Any], targets: Array) -> None:
        rows = np.concatenate([self._inputs(states, actions), targets], axis=1)
        _require_single(rows)
        units = deepcopy(self._units)
        units.add(rows)
        if self._learner.learn(rows.astype(np.float32), units.scaling):
            self._units = units
            return
        warnings.warn(
            f"the network diverged in the update after {self.n_transitions} transitions; it keeps "
            "the weights that it had before, and the data. Use a smaller learning_rate than "
            f"{self.learning_rate:g}, or look for outliers in the data.",
            RuntimeWarning,
            stacklevel=3,
        )

    def _predict(self, states: Array, actions: npt.NDArray[Any]) -> Array:
        targets = np.zeros((len(states), self._n_targets))
        if self.n_transitions == 0:
            return targets
        X = self._inputs(states, actions)
        _require_single(X)
        scaling = self._units.scaling
        for first in range(0, len(X), BLOCK):
            block = X[first : first + BLOCK]
            padded = np.zeros((1 << (len(block) - 1).bit_length(), X.shape[1]), np.float32)
            padded[: len(block)] = block
            predicted = predict(self._network, self._learner.parameters, padded, scaling)
            targets[first : first + BLOCK] = np.asarray(predicted)[: len(block)]
        return targets

    def _inputs(self, states: Array, actions: npt.NDArray[Any]) -> Array:
        if self.actions.discrete:
            actions = one_hot(actions, self.actions.width)
        return np.concatenate([states, actions], axis=1)

    def _new_learner(self) -> Learner:
        n_inputs = self.observations.width + self.actions.width
        width = n_inputs + self._n_targets
        common: dict[str, Any] = {"learning_rate": self.learning_rate, "seed": self.seed}
        if self.memory == "online":
            return Online(self._network, n_inputs, **common)
        if self.memory == "si":
            return Synaptic(self._network, n_inputs, **common, xi=self.xi, c=self.c)
        kept = (
            Everything(width)
            if self.memory == "full-replay"
            else Reservoir(self.coreset_size, width, self.seed)
        )
        return Replay(self._network, n_inputs, kept, **common, batch_size=self.batch_size)

    def _state(self) -> State:
        return {
            "memory": self.memory,
            "hidden": list(self.hidden),
            **{name: float(getattr(self, name)) for name in NUMBERS},
            **{name: int(getattr(self, name)) for name in COUNTS},
            **nested("units", self._units.state()),
            **nested("learner", self._learner.state()),
        }

    @classmethod
    def _settings(cls, saved: StateReader, task: Mapping[str, Any]) -> dict[str, Any]:
        hidden = saved.counts("hidden", at_most=_WIDEST)
        observations, actions = (flat(name, task[name]).width for name in SPACES)
        rules = task["reward"], task["termination"]
        n_targets = observations + sum(learned_part(rule) is not None for rule in rules)
        widths = [observations + actions, *hidden, n_targets]
        for i, shape in enumerate(parameter_shapes(widths)):
            saved.part("learner").require_shape(f"leaf{i}", shape, np.float32)
        return {
            "memory": saved.word("memory", MEMORIES),
            "hidden": hidden,
            **{name: saved.number(name) for name in NUMBERS},
            **{name: saved.count(name, at_most) for name, at_most in COUNTS.items()},
        }

    def restore(self, saved: StateReader, version: int) -> None:
        super().restore(saved, version)
        self._units.restore(saved.part("units"))
        self._learner.restore(saved.part("learner"))


def _layers(hidden: Sequence[int]) -> tuple[int, ...]:
    layers = tuple(hidden)
    for width in layers:
        check_count("hidden", width)
        if width > _WIDEST:
            raise ValueError(
                f"hidden={hidden!r} has {width} units in a layer: use up to {_WIDEST}."
            )
    if not layers:
        raise ValueError(f"hidden={hidden!r} has no layers: give the units of at least one.")
    return tuple(int(width) for width in layers)


def _require_single(rows: Array) -> None:
    if rows.size and np.abs(rows).max() > LARGEST:
        raise ValueError(
            f"a transition contains a number of size {np.abs(rows).max():.3g}: networks take up to "
            f"{LARGEST:g}, as they compute in single precision. Scale the environment's numbers."
        )
