"""How our figures look: one style, one colour and stroke for each method."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import ArrayLike

from losse.paper.table import Mean

LOOK: Any = {
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "lines.linewidth": 1.6,
    "svg.hashsalt": "losse",  # the same records give the same file
    "svg.fonttype": "none",
}

# Okabe and Ito's palette: told apart with any colour vision, and with different strokes in grey.
BLUE, VERMILION, GREEN, ORANGE = "#0072B2", "#D55E00", "#009E73", "#E69F00"
SKY, PURPLE, YELLOW, BLACK = "#56B4E9", "#CC79A7", "#F0E442", "#000000"


def plot_means(
    axes: Axes, x: ArrayLike, means: Sequence[Mean], *, color: Any, **style: Any
) -> None:
    """Draw a line of means with a band of one standard error on either side."""
    mean = np.array([m.mean for m in means])
    error = np.array([m.error for m in means])
    axes.plot(np.asarray(x), mean, color=color, **style)
    low = np.maximum(mean - error, mean / 10)  # a logarithmic axis has no room below zero
    axes.fill_between(np.asarray(x), low, mean + error, color=color, alpha=0.2, linewidth=0)
