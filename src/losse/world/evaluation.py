"""Evaluation of world models: errors of one step and of several, as arrays, table and plot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from losse.checks import check_count
from losse.extras import missing
from losse.typing import Array
from losse.world.model import WorldModel
from losse.world.transitions import Transitions, Values, take

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's palette: told apart with any colour vision.
_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00")


@dataclass(frozen=True)
class Evaluation:
    """Errors of a world model, one row per horizon.

    Attributes
    ----------
    names
        Names of the dimensions of the flattened observation.
    horizons
        Numbers of imagined steps.
    count
        Starts from which so many recorded steps followed.
    rmse, nmse
        (horizons, dimensions). Root mean squared error of the state; mean squared error over the
        variance of the true change, so that 1 is no better than the average change. NaN where a
        change has no variance.
    persistence
        (horizons, dimensions). Root mean squared error of the forecast that nothing changes.
    reward_rmse, reward_nmse
        The same of the last step's reward.
    missed_terminations, false_terminations
        Share of the recorded terminations that the model did not predict, and of the other
        steps where it predicted one. NaN if there were none.
    """

    names: tuple[str, ...]
    horizons: npt.NDArray[np.int64]
    count: npt.NDArray[np.int64]
    rmse: Array
    nmse: Array
    persistence: Array
    reward_rmse: Array
    reward_nmse: Array
    missed_terminations: Array
    false_terminations: Array

    def table(self) -> str:
        """A Markdown table: one row per dimension, then reward and termination."""
        steps = [f"{k} step{'s' if k > 1 else ''}" for k in self.horizons]
        head = ["", f"no change, {steps[0]}"]
        for some in steps:
            head += [f"rmse, {some}", "nmse"]
        lines = [head, ["---", *["--:"] * (len(head) - 1)]]
        for j, name in enumerate(self.names):
            pairs = zip(self.rmse[:, j], self.nmse[:, j], strict=True)
            lines.append([name, _text(self.persistence[0, j]), *_cells(pairs)])
        lines.append(["reward", "", *_cells(zip(self.reward_rmse, self.reward_nmse, strict=True))])
        for name in ("missed_terminations", "false_terminations"):
            shares = [(share, None) for share in getattr(self, name)]
            lines.append([name.replace("_", " "), "", *_cells(shares)])
        lines.append(["starts", "", *_cells((n, None) for n in self.count)])
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)

    def plot(self) -> Figure:
        """Error of every dimension beside that of forecasting no change, and growth by horizon."""
        try:
            from matplotlib.figure import Figure
        except ModuleNotFoundError as error:
            raise missing("Evaluation.plot", "matplotlib") from error
        figure = Figure(figsize=(9, 3.4), layout="constrained")
        left, right = figure.subplots(1, 2, width_ratios=(2, 1))
        self._draw_dimensions(left)
        self._draw_growth(right)
        return figure

    def _draw_dimensions(self, axes: Axes) -> None:
        place = np.arange(len(self.names))
        width = 0.8 / len(self.horizons)
        for i, k in enumerate(self.horizons):
            offset = (i - (len(self.horizons) - 1) / 2) * width
            colour = _COLOURS[i % len(_COLOURS)]
            axes.bar(place + offset, self.nmse[i], width, color=colour, label=f"{k}-step")
        axes.axhline(1.0, color="black", linewidth=0.8, linestyle=":")
        axes.set_xticks(place, self.names, rotation=90 if len(self.names) > 6 else 0)
        _log_if_positive(axes, self.nmse)
        axes.set_ylabel("squared error / variance of the change")
        axes.legend(frameon=False)

    def _draw_growth(self, axes: Axes) -> None:
        """Root mean squares over dimensions, each in units of its one-step change."""
        unit = np.where(self.persistence[0] > 0, self.persistence[0], 1.0)
        for values, label, style in (
            (self.rmse, "model", {"color": _COLOURS[0], "marker": "o"}),
            (self.persistence, "no change", {"color": "0.5", "linestyle": "--"}),
        ):
            size = np.sqrt(((values / unit) ** 2).mean(axis=1))
            axes.plot(self.horizons, size, label=label, **style)  # type: ignore[arg-type]
        _log_if_positive(axes, self.rmse)
        axes.set(xlabel="imagined steps", ylabel="error / change in one step")
        axes.legend(frameon=False)


def evaluate(
    model: WorldModel,
    obs: Values,
    actions: Values,
    rewards: npt.ArrayLike,
    next_obs: Values,
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
        Names of the dimensions of the flattened observation, for tables and plots.

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
    rows = model.checked(obs, actions, rewards, next_obs, terminated)
    n, width = rows.obs.shape
    if n == 0:
        raise ValueError("obs is empty: there is nothing to evaluate.")
    if names is not None and len(names) != width:
        raise ValueError(f"names has {len(names)} entries, but an observation has {width}.")
    follows = _follows(rows, done)
    chosen = model.actions.cast(actions)
    starts = np.arange(n)  # of those that are still within their episode
    current = model.observations.cast(obs)
    measured = []
    for k in range(1, wanted[-1] + 1):
        if k > 1:
            inside = follows[starts + k - 2]
            starts, current = starts[inside], take(current, inside)
        last = starts + k - 1
        current, reward, terminal = model.step(current, take(chosen, last))
        if k in wanted:
            before = rows.obs[starts]
            change = model.observations.rows("next_obs", current) - before
            measured.append(
                _state_errors(change, rows.next_obs[last] - before)
                | _reward_errors(reward, rows.rewards[last])
                | _termination_errors(terminal, rows.terminated[last])
                | {"count": len(starts)}
            )
    columns = {key: np.array([one[key] for one in measured]) for key in measured[0]}
    labels = tuple(names or (f"state {i}" for i in range(width)))
    return Evaluation(names=labels, horizons=np.array(wanted), **columns)


def one_step_errors(model: WorldModel, happened: Transitions) -> dict[str, float]:
    """Errors of a model on transitions that it has not learned yet, in a few numbers.

    Returns
    -------
    dict
        ``state_error``: root mean square of the next observation's error. ``change_error``: the
        same in units of the change itself, so that 1 is as bad as to predict no change; left out if
        nothing has changed. Of `Discrete` observations both are about the share that is wrong
        instead. ``reward_error``: root mean square of the reward's error. ``termination_error``:
        share of wrong terminations.

    Examples
    --------
    >>> import numpy as np
    >>> from gymnasium.spaces import Box, Discrete
    >>> from losse.world import LosseWorldModel
    >>> model = LosseWorldModel(Box(-1, 1, (1,)), Discrete(2))  # predicts no change, no reward
    >>> step = Transitions.from_steps([(np.zeros(1), 0, 2.0, np.full(1, 0.25), True)])
    >>> one_step_errors(model, step)
    {'state_error': 0.25, 'change_error': 1.0, 'reward_error': 2.0, 'termination_error': 1.0}
    """
    next_obs, rewards, terminated = model.step(happened.obs, happened.actions)
    truth = happened.next_obs
    if np.issubdtype(happened.obs.dtype, np.integer) and happened.obs.ndim == 1:
        error, change = (float(np.mean(truth != other)) for other in (next_obs, happened.obs))
    else:
        truth = truth.astype(np.float64)
        error, change = (_rms(truth - other) for other in (next_obs, happened.obs))
    relative = {"change_error": error / change} if change > 0 else {}
    return (
        {"state_error": error}
        | relative
        | {
            "reward_error": _rms(rewards - happened.rewards),
            "termination_error": float(np.mean(terminated != happened.terminated)),
        }
    )


def change_error_after(model: WorldModel, happened: Transitions, steps: int) -> float | None:
    """Error of several imagined steps in units of the change over as many.

    ``happened`` are transitions in their order, which the model has not learned yet. None if no
    such sequence is among them, nothing has changed, or the model has diverged.

    Examples
    --------
    >>> import numpy as np
    >>> from gymnasium.spaces import Box, Discrete
    >>> from losse.world import LosseWorldModel
    >>> model = LosseWorldModel(Box(-1, 1, (1,)), Discrete(2))  # predicts no change
    >>> walk = np.arange(4, dtype=np.float32)[:, None] / 8
    >>> nothing = np.zeros(3)
    >>> happened = Transitions(walk[:-1], nothing.astype(int), nothing, walk[1:], nothing > 0)
    >>> change_error_after(model, happened, 3), change_error_after(model, happened, 4)
    (1.0, None)
    """
    rows = model.checked(*happened)
    follows = _follows(rows, None)[:-1]
    if len(follows) < steps - 1:
        return None
    n = len(follows) - steps + 2
    whole = np.asarray(np.lib.stride_tricks.sliding_window_view(follows, steps - 1).all(axis=1))
    before, truth = rows.obs[:n][whole], rows.next_obs[steps - 1 :][whole]
    if not (truth != before).any():
        return None
    # From all rows, for models that are compiled for each size of a batch.
    current = take(model.observations.cast(happened.obs), slice(n))
    chosen = model.actions.cast(happened.actions)
    try:
        for k in range(steps):
            current, _, _ = model.step(current, take(chosen, slice(k, k + n)))
        found = model.observations.rows("next_obs", current)[whole]
    except ValueError:  # the model has diverged on the way: its numbers are refused
        return None
    return _rms(found - truth) / _rms(truth - before)


def _rms(values: Array) -> float:
    """Root mean square over rows and columns."""
    return float(np.sqrt(np.mean(np.square(values, dtype=np.float64))))


def _wanted(horizons: Sequence[int]) -> list[int]:
    for k in horizons:
        check_count("horizons", k)
    if not len(horizons):
        raise ValueError("horizons is empty: give at least one number of steps.")
    return sorted({int(k) for k in horizons})


def _follows(rows: Transitions, done: npt.ArrayLike | None) -> npt.NDArray[np.bool_]:
    """Whether the next row goes on where each row has ended."""
    follows = ~rows.terminated
    follows[-1] = False
    if done is None:
        follows[:-1] &= (rows.next_obs[:-1] == rows.obs[1:]).all(axis=1)
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


def _cells(pairs: Any) -> list[str]:
    return [_text(value) for pair in pairs for value in pair]


def _text(value: Any) -> str:
    if value is None or isinstance(value, np.integer):
        return "" if value is None else str(value)
    return "-" if np.isnan(value) else f"{value:.3g}"


def _log_if_positive(axes: Axes, values: Array) -> None:
    if (values[np.isfinite(values)] > 0).any():
        axes.set_yscale("log")
