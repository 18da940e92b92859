"""The table of the denoising experiment, with the paper's figures beside ours."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from losse.paper.table import Cell, Table, mean_score
from losse.records import Record

PIXELS = (9, 16, 25, 36, 49)
PAPER = {
    "losse": (0.028, 0.029, 0.031, 0.034, 0.040),
    "fourier": (0.032, 0.039, 0.067, 0.100, 0.140),
    "relu": (0.035, 0.034, 0.037, 0.039, 0.043),
    "tile": (0.036, 0.039, 0.051, 0.061, 0.073),
    "nn": (0.036, 0.035, 0.034, 0.034, 0.033),
}
"""The paper's Table 1, at `PIXELS`."""


def error_table(records: Sequence[Record], methods: Sequence[str]) -> Table:
    """One row per method with its errors; below the paper's own, if on its data.

    `above optimum` is how far the training error is above the least that a linear layer on the same
    features can have.
    """
    pixels = sorted({int(record.setting) for record in records})
    rows: list[tuple[Cell, ...]] = []
    for method in methods:
        own = [record for record in records if record.method == method]
        if not own:
            continue
        errors = [mean_score(own, method, size) for size in pixels]
        seconds = float(np.mean([record.seconds for record in own]))
        rows.append((method, *errors, seconds, *_training(own)))
        if on_mnist(records) and method in PAPER:
            known = dict(zip(PIXELS, PAPER[method], strict=True))
            rows.append((f"{method}, paper", *(known.get(p) for p in pixels), None, None, None))
    columns = [f"{size} pixels" for size in pixels]
    return Table(("method", *columns, "seconds", "epochs", "above optimum"), rows)


def on_mnist(records: Sequence[Record]) -> bool:
    """Whether the records may be set beside the paper's figures."""
    return all(record.settings["dataset"] == "mnist" for record in records)


def _training(records: Sequence[Record]) -> tuple[Cell, Cell]:
    """Mean number of epochs, and the mean excess of the training error in percent."""
    details = [record.details for record in records]
    if "epochs" not in details[0]:
        return None, None
    epochs = float(np.mean([d["epochs"] for d in details]))
    if "least_training_error" not in details[0]:
        return epochs, None
    excess = [d["training_error"] / d["least_training_error"] - 1 for d in details]
    return epochs, f"{100 * float(np.mean(excess)):.1f} %"
