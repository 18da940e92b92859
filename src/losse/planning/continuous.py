"""Planners for continuous actions: MPPI, CEM and iCEM refine a distribution of action sequences."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from math import ceil
from typing import Any

import numpy as np
from gymnasium import spaces

from losse.checks import check_count, check_positive
from losse.planning.noise import coloured
from losse.planning.planner import Planner, Rows, Score, Task
from losse.typing import Array


@dataclass(eq=False)
class ContinuousPlanner(Planner):
    """What planners of continuous actions share: sequences in units in which bounds are -1 and 1.

    Parameters
    ----------
    horizon
        Steps that are imagined.
    n_samples
        Sequences of actions in each iteration.
    n_iterations
        Times that the distribution is improved for one decision.
    spread
        Standard deviation with which a search begins, where bounds are -1 and 1.
    noise_exponent
        How slowly sequences change: 0 for white noise, about 2 for long pushes.
    seed
        Of all that is drawn at random.
    """

    horizon: int = 20
    n_samples: int = 200
    n_iterations: int = 3
    spread: float = field(default=0.5, kw_only=True)
    noise_exponent: float = field(default=2.0, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_count("n_samples", self.n_samples)
        check_count("n_iterations", self.n_iterations)
        check_positive("spread", self.spread)
        if not 0 <= self.noise_exponent < np.inf:
            raise ValueError(
                f"noise_exponent={self.noise_exponent!r} must be a finite number from 0."
            )

    @classmethod
    def suits(cls, action_space: spaces.Space[Any]) -> bool:
        """Whether it is a Box of real numbers with finite bounds."""
        return (
            isinstance(action_space, spaces.Box)
            and action_space.dtype is not None
            and action_space.dtype.kind == "f"
            and action_space.is_bounded()
        )

    def _search(self, task: Task) -> tuple[Rows, Rows]:
        space = task.model.action_space
        assert isinstance(space, spaces.Box)
        low, high = space.low.astype(np.float64).ravel(), space.high.astype(np.float64).ravel()

        def actions(sequences: Array) -> Rows:
            units = (low + high) / 2 + sequences * ((high - low) / 2)
            units = np.clip(units, low, high).astype(space.dtype)
            return units.reshape(*sequences.shape[:-1], *space.shape)

        def score(sequences: Array) -> Array:
            return task.returns(actions(sequences))

        start = np.zeros((1, self.horizon, len(low))) if task.start is None else task.start
        best, candidates = self._improve(score, start, task.rng)
        return actions(best), candidates

    @abstractmethod
    def _improve(self, score: Score, start: Array, rng: np.random.Generator) -> tuple[Array, Array]:
        """The best sequence, and candidates for the next decision, of which the first is the mean.

        ``start`` has the candidates of the last decision, or one sequence of zeros.
        """

    def _draw(self, mean: Array, std: Array | float, n: int, rng: np.random.Generator) -> Array:
        """Sequences around a mean, within the bounds."""
        noise = coloured(rng, self.noise_exponent, n, *mean.shape)
        noise *= std
        noise += mean
        return np.clip(noise, -1.0, 1.0, out=noise)


@dataclass(eq=False)
class MPPI(ContinuousPlanner):
    r"""Model predictive path integral control (Williams et al., 2017).

    The mean of the distribution becomes that of all sequences, weighted by
    :math:`\exp(R / (\tau \sigma_R))`, where R is what a sequence gains and :math:`\sigma_R` the
    standard deviation of all: rewards in other units give the same plan. The action taken is that
    of the mean.

    Parameters
    ----------
    horizon, n_samples, n_iterations, spread, noise_exponent, seed
        As in `ContinuousPlanner`.
    temperature
        How much sequences count that gain less; with a small one, the best decide.

    Examples
    --------
    >>> import numpy as np
    >>> from gymnasium.spaces import Box
    >>> from losse.planning import MPPI, Objective
    >>> from losse.world import LosseWorldModel
    >>> model = LosseWorldModel(Box(-1, 1, (1,)), Box(-1, 1, (1,)))
    >>> gain = Objective(reward=lambda obs, actions, next_obs: -(actions[:, 0] - 0.4) ** 2)
    >>> action, plan = MPPI(horizon=5, n_iterations=20)(model, [0.0], gain)
    >>> plan.actions.shape, bool(abs(action[0] - 0.4) < 0.1)
    ((5, 1), True)
    """

    temperature: float = field(default=0.2, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive("temperature", self.temperature)

    def _improve(self, score: Score, start: Array, rng: np.random.Generator) -> tuple[Array, Array]:
        mean = start[0]
        for _ in range(self.n_iterations):
            sequences = self._draw(mean, self.spread, self.n_samples, rng)
            gains = score(sequences)
            weights = _softmax(gains, self.temperature)
            mean = np.tensordot(weights, sequences, axes=1)
        return mean, mean[None]


@dataclass(eq=False)
class CEM(ContinuousPlanner):
    """The cross-entropy method: mean and spread become those of the best sequences.

    The action taken is that of the mean.

    Parameters
    ----------
    horizon, n_samples, n_iterations, spread, noise_exponent, seed
        As in `ContinuousPlanner`.
    elite_share
        Share of the sequences that are the best.
    momentum
        Share of the old mean and spread in the new ones.
    least_spread
        Below this the spread does not fall.

    Examples
    --------
    >>> import numpy as np
    >>> from gymnasium.spaces import Box
    >>> from losse.planning import CEM, Objective
    >>> from losse.world import LosseWorldModel
    >>> model = LosseWorldModel(Box(-1, 1, (1,)), Box(-1, 1, (1,)))
    >>> gain = Objective(reward=lambda obs, actions, next_obs: -(actions[:, 0] - 0.4) ** 2)
    >>> action, plan = CEM(horizon=5, n_iterations=10)(model, [0.0], gain)
    >>> action.round(1)
    array([0.4], dtype=float32)
    """

    elite_share: float = field(default=0.1, kw_only=True)
    momentum: float = field(default=0.1, kw_only=True)
    least_spread: float = field(default=0.05, kw_only=True)
    noise_exponent: float = field(default=0.0, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_share("elite_share", self.elite_share, above=0.0)
        check_share("momentum", self.momentum)
        check_positive("least_spread", self.least_spread)

    def _improve(self, score: Score, start: Array, rng: np.random.Generator) -> tuple[Array, Array]:
        mean, std = start[0], np.full(start.shape[1:], self.spread)
        for _ in range(self.n_iterations):
            sequences = self._draw(mean, std, self.n_samples, rng)
            mean, std = self._fitted(mean, std, self._elites(sequences, score(sequences)))
        return mean, mean[None]

    def _elites(self, sequences: Array, gains: Array) -> Array:
        """The best sequences, the very best first; also all that gain as much as the last."""
        order = np.argsort(-gains, kind="stable")
        least = gains[order[ceil(self.elite_share * len(gains)) - 1]]
        return sequences[order[: np.count_nonzero(gains >= least)]]

    def _fitted(self, mean: Array, std: Array, elites: Array) -> tuple[Array, Array]:
        """Mean and spread of the best sequences, with momentum."""
        keep = self.momentum
        std = keep * std + (1 - keep) * elites.std(axis=0)
        return keep * mean + (1 - keep) * elites.mean(axis=0), np.maximum(std, self.least_spread)


@dataclass(eq=False)
class ICEM(CEM):
    """The improved cross-entropy method (Pinneri et al., 2020).

    Its sequences are of coloured noise. The best are kept from one iteration to the next, and
    shifted from one decision to the next. The last iteration tries the mean, too. The action taken
    is that of the best sequence.

    Parameters
    ----------
    horizon, n_samples, n_iterations, elite_share, momentum, least_spread, spread, noise_exponent, \
seed
        As in `CEM`.
    kept_share
        Share of the best sequences that are kept.
    decay
        Each iteration has this many times fewer sequences than the one before.

    Examples
    --------
    >>> import numpy as np
    >>> from gymnasium.spaces import Box
    >>> from losse.planning import ICEM, Objective
    >>> from losse.world import LosseWorldModel
    >>> model = LosseWorldModel(Box(-1, 1, (1,)), Box(-1, 1, (1,)))
    >>> gain = Objective(reward=lambda obs, actions, next_obs: -(actions[:, 0] - 0.4) ** 2)
    >>> planner = ICEM(horizon=5, n_iterations=10)
    >>> action, plan = planner(model, [0.0], gain)
    >>> action.round(1)
    array([0.4], dtype=float32)
    >>> action, plan = planner(model, [0.0], gain, previous=plan)  # goes on from there
    """

    kept_share: float = field(default=0.3, kw_only=True)
    decay: float = field(default=1.0, kw_only=True)
    noise_exponent: float = field(default=2.0, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_share("kept_share", self.kept_share)
        if not 1 <= self.decay < np.inf:
            raise ValueError(f"decay={self.decay!r} must be a finite number of at least 1.")

    def _improve(self, score: Score, start: Array, rng: np.random.Generator) -> tuple[Array, Array]:
        mean, kept = start[0], start[1:]
        std = np.full(mean.shape, self.spread)
        elites = mean[None]
        for iteration in range(self.n_iterations):
            count = max(ceil(self.n_samples / self.decay**iteration), len(kept) + 1)
            last = iteration == self.n_iterations - 1
            # The mean comes first: it is taken where others gain as much.
            known = np.concatenate([mean[None], kept]) if last else kept
            drawn = self._draw(mean, std, max(count - len(known), 0), rng)
            sequences = np.concatenate([known, drawn])
            elites = self._elites(sequences, score(sequences))
            kept = elites[: ceil(self.kept_share * self.elite_share * count)]
            mean, std = self._fitted(mean, std, elites)
        return elites[0], np.concatenate([mean[None], kept])


def check_share(name: str, value: float, above: float | None = None) -> None:
    """Raise `ValueError` unless a value is between 0 and 1."""
    if not 0 <= value <= 1 or (above is not None and value <= above):
        raise ValueError(f"{name}={value!r} must be a share {'above' if above == 0 else 'from'} 0 "
                         "and at most 1.")  # fmt: skip


def _softmax(gains: Array, temperature: float) -> Array:
    """Weights that sum to one, in units of the spread of the gains."""
    finite = np.isfinite(gains)
    spread = gains[finite].std()
    if spread == 0:
        return finite / finite.sum()
    weights = np.exp((gains - gains.max()) / (temperature * spread))
    return weights / weights.sum()
