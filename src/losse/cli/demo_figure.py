"""The demo's figure, drawn from its records alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from losse.paper.look import LOOK
from losse.paper.table import mean_and_error
from losse.records import Record
from losse.streams import Stream, chirp, piecewise_random_walk

# Okabe and Ito's palette: told apart with any colour vision, and with different strokes in grey.
STYLES: dict[str, dict[str, Any]] = {
    "losse": {"color": "#0072B2", "label": "Losse (no stored samples)"},
    "nn-online": {"color": "#D55E00", "label": "network, online", "linestyle": "--"},
    "nn-replay": {
        "color": "#009E73",
        "label": "network, replays old samples",
        "linestyle": "-.",
    },
}
LAST: dict[str, Any] = {"color": "#F0E442", "alpha": 0.35, "linewidth": 0, "zorder": 0}


def draw(records: Sequence[Record], folder: Path) -> list[Path]:
    """Draw the stream, the errors along it and the final fits; return the files written."""
    first = [record for record in records if record.seed == records[0].seed]
    s = records[0].settings
    stream = piecewise_random_walk(
        s["samples"], correlation=s["correlation"], period=s["period"], seed=records[0].seed
    )
    with mpl.rc_context(LOOK):
        figure = Figure(figsize=(11, 3.4), layout="constrained")
        left, middle, right = figure.subplots(1, 3)
        _draw_stream(left, stream)
        _draw_errors(middle, records)
        _draw_fits(right, first, stream)
        handles, labels = right.get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
        folder.mkdir(parents=True, exist_ok=True)
        files = [folder / "drifting_stream.png", folder / "drifting_stream.svg"]
        figure.savefig(files[0], dpi=160)
        figure.savefig(files[1], metadata={"Date": None})
    return files


def _draw_stream(axes: Axes, stream: Stream) -> None:
    time = np.arange(len(stream.y))
    axes.scatter(time, stream.X, s=2, color="0.45", alpha=0.5, linewidths=0, rasterized=True)
    axes.step(time, stream.centres, color="black", linewidth=1.0, where="post")
    last = time[stream.centres == stream.centres[-1]]
    axes.axvspan(last[0], last[-1], **LAST)
    axes.set(title="The inputs drift", xlabel="samples", ylabel="input x")


def _draw_errors(axes: Axes, records: Sequence[Record]) -> None:
    for method, style in STYLES.items():
        curves = np.array([record.curve for record in records if record.method == method])
        samples = curves[0, :, 0]
        mean, error = mean_and_error(curves[:, :, 1])
        axes.plot(samples, mean, **style)
        low = np.maximum(mean - error, mean / 10)  # a logarithmic axis has no room below zero
        axes.fill_between(samples, low, mean + error, color=style["color"], alpha=0.2, linewidth=0)
    axes.set(
        title="Error on everything seen so far",
        xlabel="samples",
        ylabel="mean squared error",
        yscale="log",
    )


def _draw_fits(axes: Axes, records: Sequence[Record], stream: Stream) -> None:
    x = np.array(records[0].details["fit"])[:, 0]
    axes.plot(x, chirp(x), color="0.8", linewidth=5, label="target")
    for record in records:
        axes.plot(*np.array(record.details["fit"]).T, **STYLES[record.method])
    end, reach = stream.centres[-1], 2 * stream.spread
    axes.axvspan(end - reach, end + reach, label="the last inputs", **LAST)
    axes.set(title="What is left at the end", xlabel="input x", ylabel="prediction")
    axes.set(xlim=(x[0], x[-1]), ylim=(-1.6, 1.6))
