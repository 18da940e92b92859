"""What `losse.world.evaluate` found out, as arrays, as a table and as a plot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from losse.typing import Array

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
        Of the dimensions of the flattened observation.
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
            raise ModuleNotFoundError(
                "plots need matplotlib: pip install 'losse[world]'", name="matplotlib"
            ) from error
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


def _cells(pairs: Any) -> list[str]:
    return [_text(value) for pair in pairs for value in pair]


def _text(value: Any) -> str:
    if value is None or isinstance(value, np.integer):
        return "" if value is None else str(value)
    return "-" if np.isnan(value) else f"{value:.3g}"


def _log_if_positive(axes: Axes, values: Array) -> None:
    if (values[np.isfinite(values)] > 0).any():
        axes.set_yscale("log")
