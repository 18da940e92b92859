"""Table 1: the error of a linear layer on each encoder's features at denoising image patches.

Noise of standard deviation 0.3 is added to images in [0, 1]; noisy patches from their centre,
as they are, go to the encoder, and the clean ones are the target. A score is the mean squared error
per pixel. The paper does not say everything; what we chose, and why, is in docs/results.md.

Methods: `losse`, `fourier`, `relu`, `tile` are the paper's encoders with a linear layer trained by
Adam until it converges, `nn` a network. The same with `-ftl` learn the layer in closed form, in one
pass. `tile` has the grids of `losse`, so a quarter of its active features; `tile-80` has
as many active features as the others. `linear` is least squares on the pixels themselves.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from losse.paper.denoising.data import Dataset, load_images, make_problem
from losse.paper.denoising.learners import learn, swept_option
from losse.paper.denoising.linear_layer import LEAST_GAIN, WINDOW
from losse.runs.experiment import SWEEP_SEED, CommonSettings, Run, best, methods_of
from losse.runs.record import Record
from losse.runs.table import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME = "denoising"
ADAM = ("losse", "fourier", "relu", "tile", "tile-80")
CLOSED_FORM = tuple(f"{method}-ftl" for method in ADAM)
METHODS = (*ADAM, "nn", *CLOSED_FORM, "linear")
CONTROLS = ()
NEEDS = {"nn": ("jax", "flax", "optax")}
SEEDS_AT_ONCE: dict[str, int] = {}

NOISE = 0.3
BINS = (5, 6, 7, 8, 9)
DEVIATIONS = (0.1, 0.3, 0.5, 1.0, 5.0, 10.0)
"""Standard deviations of the random projection's entries, for Fourier and ReLU features."""
BATCH = 32
LEARNING_RATE = 1e-4
PATIENCE = {"losse": 4, "fourier": 4}
"""Times the usual number of epochs, for methods that converge more slowly."""
HIDDEN = (50, 50)
RIDGE = 1e-5


@dataclass(frozen=True, kw_only=True)
class Settings(CommonSettings):
    """Denoise image patches with each encoder (Table 1)."""

    data: Path | None = None
    """Folder of MNIST's idx files, packed or not; by default they are downloaded once."""
    dataset: Dataset | None = None
    """The digits come with scikit-learn; MNIST is the default with `--preset paper` or `--data`."""
    sides: tuple[int, ...] | None = None
    """Sides of the patches in pixels; by default 3 to 7, and 3 5 7 in the quick preset."""
    epochs: int | None = None
    """Most passes of Adam over the data; by default 100 (Losse, Fourier 400), quick 30 (120)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.epochs is not None and self.epochs < 1:
            raise ValueError(f"epochs must be at least 1, got {self.epochs}")
        for side in self.sides or ():
            if not 1 <= side <= self.largest_side:
                raise ValueError(
                    f"sides must be from 1 to {self.largest_side} for {self.images}, got {side}"
                )
        if self.data is not None and self.images == "digits":
            raise ValueError("--data is a folder of MNIST, so it does not go with --dataset digits")

    @property
    def images(self) -> Dataset:
        """Name of the data set in use."""
        if self.dataset is not None:
            return self.dataset
        return "mnist" if self.preset == "paper" or self.data is not None else "digits"

    @property
    def largest_side(self) -> int:
        """The largest side of a patch: that of the whole image."""
        return 28 if self.images == "mnist" else 8


@dataclass(frozen=True)
class _Scale:
    """The size of the experiment, apart from the data."""

    seeds: int
    sides: tuple[int, ...]
    bins: tuple[int, ...]
    epochs: int
    sweep_epochs: int


_SCALES = {
    "quick": _Scale(seeds=2, sides=(3, 5, 7), bins=(5, 7, 9), epochs=30, sweep_epochs=15),
    "paper": _Scale(seeds=5, sides=(3, 4, 5, 6, 7), bins=BINS, epochs=100, sweep_epochs=40),
}


def sweep(settings: Settings) -> list[Run]:
    """Each encoder with each value of what is swept, scored on validation images."""
    scale = _SCALES[settings.preset]
    epochs = min(scale.sweep_epochs, settings.epochs or scale.epochs)
    runs = []
    for method in methods_of(settings, METHODS):
        if method in ("nn", "linear"):
            continue
        option = swept_option(method)
        for side in settings.sides or scale.sides:
            for value in scale.bins if option == "bins" else DEVIATIONS:
                options = _options(settings, method, "validation", epochs) | {option: value}
                runs.append(Run(NAME, method, side**2, SWEEP_SEED, options, swept=(option,)))
    return runs


def final(settings: Settings, swept: list[Record]) -> list[Run]:
    """Each method as chosen, trained on all training images and scored on the test images."""
    scale = _SCALES[settings.preset]
    runs = []
    for method in methods_of(settings, METHODS):
        epochs = settings.epochs or scale.epochs * PATIENCE.get(method, 1)
        for side in settings.sides or scale.sides:
            options = _options(settings, method, "test", epochs)
            if method not in ("nn", "linear"):
                options |= best(swept, method, side**2, [swept_option(method)])
            for seed in range(settings.seeds or scale.seeds):
                runs.append(Run(NAME, method, side**2, seed, options))
    return runs


def _options(settings: Settings, method: str, held_out: str, epochs: int) -> dict[str, Any]:
    """All that decides a run's result, except for what is swept."""
    options: dict[str, Any] = {
        "dataset": settings.images,
        "checksum": load_images(settings.images, settings.data).checksum[:16],
        "noise": NOISE,
        # So few images that the larger models would learn them by heart: more draws of the noise.
        "copies": 10 if settings.images == "digits" else 1,
        "held_out": held_out,
    }
    if method in CLOSED_FORM:
        return options | {"solver": "dense", "ridge": RIDGE}
    if method == "linear":
        return options
    if method == "nn":
        options["hidden"] = list(HIDDEN)
    return options | {
        "batch": BATCH,
        "learning_rate": LEARNING_RATE,
        "max_epochs": epochs,
        "stop": f"less than {100 * LEAST_GAIN:g} % gained in {WINDOW} epochs",
    }


def execute(settings: Settings, runs: Sequence[Run]) -> list[Record]:
    """Learn and test the problem of each run."""
    images = load_images(settings.images, settings.data).pixels
    records = []
    for run in runs:
        problem = make_problem(
            images,
            math.isqrt(int(run.setting)),
            run.seed,
            noise=run.options["noise"],
            copies=run.options["copies"],
            held_out=run.options["held_out"],
        )
        records.append(learn(run, problem))
    return records


def table(records: Sequence[Record]) -> Table:
    """Errors by patch size, beside the paper's, and the cost of learning."""
    from losse.paper.denoising.report import error_table

    return error_table(records, METHODS)


def draw(records: Sequence[Record]) -> dict[str, Figure]:
    """The errors by patch size: Adam beside the paper's, and the closed form."""
    from losse.paper.denoising.report import draw_errors

    return {"denoising": draw_errors(records, METHODS)}
