"""Probe of a world model: what it predicted, how sure it was, and what happened."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from losse.storage.jsonfile import plain
from losse.world import Transitions, WorldModel

Rows = npt.NDArray[np.float64]

SAMPLE = 400
"""Transitions of the whole run that are kept, each equally likely."""
EPISODE = 200
"""Steps of the newest episode that are kept."""
STARTS = 16
"""Steps of that episode from which the model imagines how it goes on."""
HORIZON = 20
"""Steps that it imagines from each."""
CHOICES = 6
"""Actions that are compared at each start, at most."""
DIMENSIONS = 12
"""Numbers of an observation that are kept: those that vary most."""
HISTORY = 200
"""Moments at which ridge and prequential error are kept."""
STD_FEATURES = 3000
"""Features up to which uncertainty is asked for: beyond, its first use takes long."""
_DIGITS = 5


class Probe:
    """Sample of a run's transitions, with predictions made before they were learned.

    Parameters
    ----------
    model
        The world model of the run.
    seed
        Of the choice of the sample; the run's own chances are not touched.

    Examples
    --------
    >>> from gymnasium.spaces import Box, Discrete
    >>> from losse.world import LosseWorldModel
    >>> model = LosseWorldModel(Box(0, 1, (2,)), Discrete(2))
    >>> probe = Probe(model)
    >>> obs = np.array([[0.1, 0.5], [0.2, 0.5]], np.float32)
    >>> probe.see(Transitions(obs, np.array([0, 0]), np.zeros(2), obs + 0.1, np.zeros(2, bool)))
    >>> model.update(obs, [0, 0], np.zeros(2), obs + 0.1, [False, False])
    >>> found = probe.look(2)
    >>> sorted(found), len(found["sample"]["obs"])
    (['dimensions', 'episode', 'format', 'insight', 'sample', 'step'], 2)
    """

    def __init__(self, model: WorldModel, seed: int = 0) -> None:
        self._model = model
        self._rng = np.random.default_rng(seed)
        self._seen = 0
        self._sample: dict[int, tuple[int, Any, Any, Any, Rows, Rows]] = {}
        self._episode: list[tuple[Any, Any, Any]] = []
        self._insight: list[dict[str, Any]] = []
        self.spent = 0.0
        """Seconds that predictions have taken."""

    @property
    def sure(self) -> bool:
        """Whether the model is asked how sure it is."""
        return all(one["features"] <= STD_FEATURES for one in self._model.insight())

    def follow(self, happened: Transitions) -> None:
        """Take in steps of one environment, in their order, for the newest episode."""
        for obs, action, reached in zip(
            happened.obs, happened.actions, happened.next_obs, strict=True
        ):
            goes_on = self._episode and np.array_equal(self._episode[-1][2], obs)
            if not goes_on or len(self._episode) >= EPISODE:
                self._episode = []
            self._episode.append((obs, action, reached))

    def see(self, happened: Transitions, step: int = 0, *, with_std: bool = True) -> None:
        """Predict transitions that the model has not learned yet, and keep a few of them.

        Without ``with_std`` the model is not asked how sure it is, which takes most of the time.
        """
        began = time.perf_counter()
        places = []
        for _ in range(len(happened)):
            self._seen += 1
            # Algorithm R: each row of the run has the same chance to be kept.
            new = self._seen <= SAMPLE
            places.append(self._seen - 1 if new else int(self._rng.integers(self._seen)))
        kept = [i for i, place in enumerate(places) if place < SAMPLE]
        if kept:
            rows = happened.take(np.array(kept))
            expected, std = self._predicted(rows.obs, rows.actions, with_std=with_std)
            columns = (rows.obs, rows.actions, rows.next_obs, expected, std)
            for i, row in zip(kept, zip(*columns, strict=True), strict=True):
                self._sample[places[i]] = (step, *row)
        self.spent += time.perf_counter() - began

    def look(self, step: int) -> dict[str, Any]:
        """What the model predicts now for the sample and for the newest episode."""
        self._remember(step)
        shown = self._dimensions()
        return {
            "format": 1,
            "step": step,
            "dimensions": shown.tolist(),
            "sample": self._sampled(shown),
            "episode": self._lived(shown),
            "insight": self._insight,
        }

    def _remember(self, step: int) -> None:
        self._insight.append({"step": step, "learners": plain(self._model.insight())})
        if len(self._insight) > HISTORY:
            self._insight = self._insight[::2] + self._insight[-1:]

    def _numbers(self, obs: Any) -> Rows:
        return self._model.observations.rows("obs", obs)

    def _predicted(self, obs: Any, actions: Any, *, with_std: bool = True) -> tuple[Rows, Rows]:
        """Next observations as rows of numbers, and their standard deviations; NaN if unknown."""
        if with_std and self.sure:
            try:
                reached, _, _, std = self._model.step(obs, actions, return_std=True)
                return self._numbers(reached), std
            except NotImplementedError:
                pass
        reached = self._numbers(self._model.step(obs, actions)[0])
        return reached, np.full(reached.shape, np.nan)

    def _dimensions(self) -> npt.NDArray[np.int64]:
        """The numbers of an observation that vary most, in their order."""
        seen = [row[1] for row in self._sample.values()] + [row[0] for row in self._episode]
        if not seen:
            return np.arange(0)
        spread = self._numbers(np.stack(seen)).std(axis=0)
        return np.sort(np.argsort(-spread, kind="stable")[:DIMENSIONS])

    def _sampled(self, shown: npt.NDArray[np.int64]) -> dict[str, Any]:
        if not self._sample:
            return {}
        steps, *columns = zip(*self._sample.values(), strict=True)
        obs, actions, reached, then, std = (np.stack(column) for column in columns)
        now, now_std = self._predicted(obs, actions)
        return {
            "steps": list(steps),
            "obs": _short(self._numbers(obs)[:, shown]),
            "actions": _short(actions),
            "reached": _short(self._numbers(reached)[:, shown]),
            "then": _short(then[:, shown]),
            "then_std": _short(std[:, shown]),
            "now": _short(now[:, shown]),
            "now_std": _short(now_std[:, shown]),
        }

    def _lived(self, shown: npt.NDArray[np.int64]) -> dict[str, Any]:
        """The newest episode, the model's prediction of each step, and what it imagines."""
        if not self._episode:
            return {}
        obs, actions, reached = (np.stack(column) for column in zip(*self._episode, strict=True))
        expected, std = self._predicted(obs, actions)
        starts = np.unique(np.linspace(0, len(obs) - 1, STARTS).astype(int))
        return {
            "obs": _short(self._numbers(obs)[:, shown]),
            "actions": _short(actions),
            "reached": _short(self._numbers(reached)[:, shown]),
            "expected": _short(expected[:, shown]),
            "expected_std": _short(std[:, shown]),
            "starts": starts.tolist(),
            "imagined": self._imagined(obs, actions, starts, shown),
            "choices": self._compared(obs[starts], shown),
        }

    def _imagined(
        self, obs: Any, actions: Any, starts: npt.NDArray[Any], shown: npt.NDArray[np.int64]
    ) -> list[Any]:
        """How the episode goes on from each start, with its own actions, as the model has it."""
        lines: list[list[Any]] = [[_short(self._numbers(obs[[s]])[0, shown])] for s in starts]
        where, left = obs[starts], np.arange(len(starts))
        for ahead in range(HORIZON):
            goes_on = starts[left] + ahead < len(obs)
            left, where = left[goes_on], where[goes_on]
            if not len(left):
                break
            where, _, ended = self._model.step(where, actions[starts[left] + ahead])
            rows = _short(self._numbers(where)[:, shown])
            for k, row in zip(left, rows, strict=True):
                lines[k].append(row)
            left, where = left[~ended], where[~ended]
        return lines

    def _compared(self, obs: Any, shown: npt.NDArray[np.int64]) -> list[dict[str, Any]]:
        """Where each of a few actions would lead from each start."""
        compared = []
        for action in _choices(self._model.action_space):
            expected, std = self._predicted(obs, np.stack([action] * len(obs)))
            compared.append(
                {
                    "action": _short(np.asarray(action)),
                    "expected": _short(expected[:, shown]),
                    "std": _short(std[:, shown]),
                }
            )
        return compared


def _choices(space: spaces.Space[Any]) -> Sequence[Any]:
    """A few actions of a space: all of a small discrete one, else its middle and its ends."""
    if isinstance(space, spaces.Discrete):
        return [space.start + k for k in range(min(int(space.n), CHOICES))]
    if isinstance(space, spaces.Box) and np.isfinite([space.low, space.high]).all():
        ends = [space.low + share * (space.high - space.low) for share in (0.5, 0.0, 1.0)]
        return [end.astype(space.dtype) for end in ends]
    return []


def _short(values: Any) -> Any:
    """Values as lists of numbers with few digits."""
    numbers = np.asarray(values, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        scale = 10.0 ** (_DIGITS - 1 - np.floor(np.log10(np.abs(numbers))))
        rounded = np.round(numbers * scale) / scale
    return plain(np.where(np.isfinite(rounded), rounded, np.where(numbers == 0, 0.0, numbers)))
