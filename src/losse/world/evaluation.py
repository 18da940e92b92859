"""How good is a world model? Errors of one step and of several, for every dimension."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from losse.checks import check_count
from losse.typing import Array
from losse.world.model import WorldModel
from losse.world.report import Evaluation


def evaluate(
    model: WorldModel,
    obs: npt.ArrayLike,
    actions: npt.ArrayLike,
    rewards: npt.ArrayLike,
    next_obs: npt.ArrayLike,
    terminated: npt.ArrayLike,
    *,
    horizons: Sequence[int] = (1, 5, 10),
    done: npt.ArrayLike | None = None,
    names: Sequence[str] | None = None,
) -> Evaluation:
    """Compare a model with recorded transitions, which it should not have learned.

    From every row the model imagines as many steps as the longest horizon, with the recorded
    actions and no look at what happened. The state after k steps is compared with the recorded one.
    Terminations that the model predicts on the way do not stop it.

    Parameters
    ----------
    model
        Any world model. It stays as it is.
    obs, actions, rewards, next_obs, terminated
        As in `WorldModel.update`, in the order in which they happened.
    horizons
        Numbers of steps.
    done
        True for the last row of each episode. None: a row is followed by the next one if its
        ``next_obs`` is that row's ``obs`` and it did not terminate.
    names
        Of the dimensions of the flattened observation, for tables and plots.

    Examples
    --------
    >>> import numpy as np
    >>> from gymnasium.spaces import Box, Discrete
    >>> from losse.world import LosseWorldModel, evaluate
    >>> model = LosseWorldModel(Box(-1, 1, (1,), dtype=np.float64), Discrete(2))
    >>> walk = np.linspace(-1, 1, 41)[:, None]  # to the right, one step of 0.05 after the other
    >>> data = walk[:-1], np.ones(40, int), np.zeros(40), walk[1:], np.arange(40) == 39
    >>> before = evaluate(model, *data, horizons=[1, 4])
    >>> before.rmse
    array([[0.05],
           [0.2 ]])
    >>> model.update(*data)
    >>> after = evaluate(model, *data, horizons=[1, 4])
    >>> bool((after.rmse < 0.1 * before.rmse).all())
    True
    """
    wanted = _wanted(horizons)
    states, _, gained, next_states, ended = model._checked(
        obs, actions, rewards, next_obs, terminated
    )
    n, width = states.shape
    if n == 0:
        raise ValueError("obs is empty: there is nothing to evaluate.")
    if names is not None and len(names) != width:
        raise ValueError(f"names has {len(names)} entries, but an observation has {width}.")
    follows = _follows(states, next_states, ended, done)
    chosen = np.asarray(actions)
    starts = np.arange(n)  # of those that are still within their episode
    current = np.asarray(obs, dtype=model.observation_space.dtype)
    measured = []
    for k in range(1, wanted[-1] + 1):
        if k > 1:
            inside = follows[starts + k - 2]
            starts, current = starts[inside], current[inside]
        last = starts + k - 1
        current, reward, terminal = model.step(current, chosen[last])
        if k in wanted:
            change = model._observations.rows("next_obs", current) - states[starts]
            measured.append(
                _state_errors(change, next_states[last] - states[starts])
                | _reward_errors(reward, gained[last])
                | _termination_errors(terminal, ended[last])
                | {"count": len(starts)}
            )
    columns = {key: np.array([one[key] for one in measured]) for key in measured[0]}
    labels = tuple(names or (f"state {i}" for i in range(width)))
    return Evaluation(names=labels, horizons=np.array(wanted), **columns)


def _wanted(horizons: Sequence[int]) -> list[int]:
    for k in horizons:
        check_count("horizons", k)
    if not len(horizons):
        raise ValueError("horizons is empty: give at least one number of steps.")
    return sorted({int(k) for k in horizons})


def _follows(
    states: Array, next_states: Array, ended: npt.NDArray[np.bool_], done: npt.ArrayLike | None
) -> npt.NDArray[np.bool_]:
    """Whether the next row goes on where each row has ended."""
    follows = ~ended
    follows[-1] = False
    if done is None:
        follows[:-1] &= (next_states[:-1] == states[1:]).all(axis=1)
        return follows
    last = np.asarray(done)
    if last.shape != follows.shape or last.dtype.kind not in "bui":
        raise ValueError(f"done has shape {last.shape}, expected {follows.shape} of booleans.")
    return follows & ~last.astype(bool)


def _state_errors(change: Array, truth: Array) -> dict[str, Any]:
    return {
        "rmse": _root_mean_square(change - truth),
        "nmse": _relative(change, truth),
        "persistence": _root_mean_square(truth),
    }


def _reward_errors(reward: Array, truth: Array) -> dict[str, Any]:
    return {
        "reward_rmse": _root_mean_square(reward - truth),
        "reward_nmse": _relative(reward, truth),
    }


def _termination_errors(
    terminal: npt.NDArray[np.bool_], truth: npt.NDArray[np.bool_]
) -> dict[str, Any]:
    return {
        "missed_terminations": _share(~terminal[truth]),
        "false_terminations": _share(terminal[~truth]),
    }


def _root_mean_square(errors: Array) -> Array:
    return np.sqrt(_mean(errors**2))


def _relative(predicted: Array, truth: Array) -> Array:
    """Mean squared error over the variance; NaN where there is none."""
    variance = _mean((truth - _mean(truth)) ** 2)
    varies = variance > 1e-24 * _mean(truth**2)  # rounding is no variance
    return _mean((predicted - truth) ** 2) / np.where(varies, variance, np.nan)


def _mean(values: Array) -> Array:
    return np.asarray(values.mean(axis=0) if len(values) else np.full(values.shape[1:], np.nan))


def _share(events: npt.NDArray[np.bool_]) -> float:
    return float(events.mean()) if len(events) else float("nan")
