"""The look of our figures: one style for all, and one colour, stroke and label for each method."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.ticker import NullFormatter
from numpy.typing import ArrayLike

from losse.runs.table import Mean

RC: Any = {
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "lines.linewidth": 1.6,
    "lines.markersize": 4,
    "svg.hashsalt": "losse",  # the same records give the same file
    "svg.fonttype": "none",
}
"""Settings of Matplotlib."""

# Okabe and Ito's palette, and two more: told apart with any colour vision, and by strokes in grey.
BLUE, VERMILION, GREEN, ORANGE = "#0072B2", "#D55E00", "#009E73", "#E69F00"
SKY, PURPLE, YELLOW, BLACK = "#56B4E9", "#CC79A7", "#F0E442", "#000000"
BROWN, GREY = "#8C510A", "0.55"


class Style(NamedTuple):
    """Label, colour, stroke and mark of a method in every figure."""

    label: str
    color: str
    linestyle: Any = "-"
    marker: str = "o"

    def line(self, **changes: Any) -> dict[str, Any]:
        """Arguments of `Axes.plot` for a line without marks.

        >>> style_of("losse").line(linewidth=2)
        {'label': 'Losse', 'color': '#0072B2', 'linestyle': '-', 'linewidth': 2}
        """
        same = {"label": self.label, "color": self.color, "linestyle": self.linestyle}
        return same | changes

    def marked(self, **changes: Any) -> dict[str, Any]:
        """Arguments of `Axes.plot` for a line with a mark at each value."""
        return self.line(marker=self.marker, **changes)


STYLES = {
    "losse": Style("Losse", BLUE),
    "jax": Style("Losse, in JAX", SKY, "--", "h"),
    "paper": Style("Losse, as in the paper", BLUE),
    "losse-exact": Style("Losse, exact", SKY, ":", "v"),
    "recommended": Style("Losse, recommended", ORANGE, "-", "P"),
    # Encoders with a linear layer.
    "adaptive": Style("Losse, rebuilt", SKY, "-", "s"),
    "fourier": Style("Fourier", PURPLE, "--", "D"),
    "relu": Style("ReLU", BROWN, "--", "^"),
    "tile": Style("tile", ORANGE, "-.", "D"),
    "tile-80": Style("tile-80", GREEN, "-.", "v"),
    "linear": Style("linear", GREY, ":", "X"),
    "gradient-descent": Style("gradient descent", VERMILION, "--", "s"),
    "adam": Style("Adam", PURPLE, "-.", "^"),
    # Networks.
    "nn": Style("network", VERMILION, "-", "s"),
    "nn-online": Style("network, online", VERMILION, "--", "s"),
    "nn-batch": Style("network, minibatches", GREEN, "-.", "^"),
    "online": Style("network, online", VERMILION, "--", "s"),
    "full-replay": Style("network, full replay", GREEN, "-.", "*"),
    "si": Style("network, SI", PURPLE, (0, (5, 1)), "D"),
    "coreset": Style("network, coreset", SKY, (0, (5, 1, 1, 1)), "v"),
    # Other learners.
    "river": Style("River", BLACK, "-.", "x"),
    "river-amf": Style("River's forest", BLACK, "-.", "x"),
    "river-srp": Style("River's random patches", BLACK, ":", "1"),
    "vowpal-wabbit": Style("Vowpal Wabbit", SKY, "-.", "v"),
    "ridge": Style("ridge regression", GREY, "--", "X"),
    "boosting": Style("gradient boosting", VERMILION, "-.", "s"),
    "mlp": Style("network, scikit-learn's", GREEN, "-.", "*"),
    "knn": Style("nearest neighbours", GREY, ":", "d"),
    # Agents without a learned model.
    "model-free": Style("no model", GREY, ":"),
    "model-free-matched": Style("no model, as many gradient steps", BLACK, ":"),
    "oracle": Style("perfect model", BLACK, (0, (1, 1))),
}
"""The style of each method, in the order of legends."""


def style_of(method: str) -> Style:
    """The style of a method; grey and its own name if it has none.

    >>> style_of("coreset").label
    'network, coreset'
    """
    return STYLES.get(method, Style(method, GREY))


def staggered(style: Style, k: int, n: int) -> dict[str, Any]:
    """Arguments of `Axes.plot` for the k-th of n lines, with marks where the others have none.

    So lines that lie on each other are still told apart.
    """
    return style.marked(markevery=(k, n))


def label_powers_of_ten(axis: Axis) -> None:
    """Label no other ticks of a logarithmic axis, if it has powers of ten."""
    low, high = np.log10(axis.get_view_interval())
    if np.floor(high) >= np.ceil(low):
        axis.set_minor_formatter(NullFormatter())


def plot_means(
    axes: Axes, x: ArrayLike, means: Sequence[Mean], *, positive: bool = True, **style: Any
) -> None:
    """Draw a line of means with a band of one standard error on either side.

    Where all values are positive, the band leaves room below it on a logarithmic axis.
    """
    mean = np.array([m.mean for m in means])
    error = np.array([m.error for m in means])
    axes.plot(np.asarray(x), mean, **style)
    low = np.maximum(mean - error, mean / 10) if positive else mean - error
    colour = style["color"]
    axes.fill_between(np.asarray(x), low, mean + error, color=colour, alpha=0.2, linewidth=0)
