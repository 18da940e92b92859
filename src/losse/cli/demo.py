"""`losse demo`: learn a drifting stream one sample at a time, and see who forgets.

A narrow window of inputs jumps about while the target function stays the same. Three learners see
the same samples in the same order, each once and alone: the Losse regressor, a neural network, and
a network that also keeps every sample and replays a batch of them at each step. After every few
samples all are tested on fresh inputs from all windows visited so far.

Each network has the better of ReLU and tanh units and the best learning rate of 1e-4, 3e-4, 1e-3,
3e-3, 1e-2 and 3e-2, by the mean final error on 20 other streams (seeds 1000 to 1019). Errors there,
with standard errors: online .238 +- .033 (ReLU, 3e-4; its best with tanh .368), replay
.0048 +- .0011 (tanh, 1e-2; its best with ReLU .0110, where units die on a new window and never
recover). Losse has the paper's settings for this stream and is not tuned.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Protocol

import numpy as np
import tyro
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from sklearn.neural_network import MLPRegressor
from threadpoolctl import threadpool_limits

from losse import FTLRegressor, LosseEncoder
from losse.cli.demo_figure import draw
from losse.paper.table import mean_and_error
from losse.records import Record, write_record
from losse.streams import piecewise_random_walk

Array = NDArray[np.float64]

INPUT_SCALE = 2.0  # gives the networks inputs of unit variance
TEST_SEED = 2**32  # keeps the test inputs' seeds apart from the streams'


@dataclass(frozen=True)
class Settings:
    """Learn a drifting stream one sample at a time, and draw who forgets."""

    samples: int = 4000
    """Length of the stream."""
    correlation: float = 0.95
    """Correlation level of the drift, from 0 (i.i.d.) to below 1 (a narrow window jumps about)."""
    period: int = 250
    """Number of samples between two jumps of the window."""
    seeds: int = 5
    """Number of independent streams, and of learners on each."""
    first_seed: int = 0
    """Seed of the first stream."""
    online_rate: float = 3e-4
    """Adam's learning rate of the online network (ReLU units)."""
    replay_rate: float = 1e-2
    """Adam's learning rate of the network with replay (tanh units)."""
    checkpoints: int = 100
    """Number of tests along the stream."""
    out: Path = Path("results/demo")
    """Folder for the records and the figure."""

    def __post_init__(self) -> None:
        for name in ("samples", "seeds", "checkpoints"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")


class Learner(Protocol):
    """Learns one sample at a time."""

    def learn(self, x: Array, y: Array) -> None: ...
    def predict(self, X: Array) -> Array: ...


class Losse:
    """The paper's model for this stream: 10 grids of 10 x 10 bins."""

    def __init__(self, settings: Settings, seed: int) -> None:
        encoder = LosseEncoder(n_grids=10, n_bins=10, grid_dim=2, scaling=None, seed=seed)
        self._model = FTLRegressor(encoder=encoder, solver="sparse", ridge=1e-5)

    def learn(self, x: Array, y: Array) -> None:
        self._model.partial_fit(x, y)

    def predict(self, X: Array) -> Array:
        return self._model.predict(X)


class OnlineNetwork:
    """Two hidden layers of 50 units, one step of Adam for each sample."""

    def __init__(self, settings: Settings, seed: int) -> None:
        self._net = _network("relu", settings.online_rate, seed)

    def learn(self, x: Array, y: Array) -> None:
        self._net.partial_fit(x * INPUT_SCALE, y)

    def predict(self, X: Array) -> Array:
        return self._net.predict(X * INPUT_SCALE)


class ReplayNetwork:
    """A network of that size with a memory of everything: each step takes 32 samples at random."""

    def __init__(self, settings: Settings, seed: int) -> None:
        self._net = _network("tanh", settings.replay_rate, seed)
        self._rng = np.random.default_rng(seed)
        self._x = np.empty((settings.samples, 1))
        self._y = np.empty(settings.samples)
        self._n = 0

    def learn(self, x: Array, y: Array) -> None:
        self._x[self._n], self._y[self._n] = x[0] * INPUT_SCALE, y[0]
        self._n += 1
        batch = self._rng.integers(self._n, size=32)
        self._net.partial_fit(self._x[batch], self._y[batch])

    def predict(self, X: Array) -> Array:
        return self._net.predict(X * INPUT_SCALE)


def _network(activation: str, learning_rate: float, seed: int) -> MLPRegressor:
    return MLPRegressor(
        hidden_layer_sizes=(50, 50),
        activation=activation,
        learning_rate_init=learning_rate,
        alpha=0.0,
        random_state=seed,
    )


METHODS: dict[str, Callable[[Settings, int], Learner]] = {
    "losse": Losse,
    "nn-online": OnlineNetwork,
    "nn-replay": ReplayNetwork,
}


def main(arguments: Sequence[str]) -> None:
    """Run the demo with the given command line."""
    run(tyro.cli(Settings, prog="losse demo", args=list(arguments)))


def run(settings: Settings) -> list[Record]:
    """Learn all streams; write the records and, from them, the figure; print the errors."""
    console = Console()
    records: list[Record] = []
    progress = Progress(
        TextColumn("stream {task.fields[stream]}"),
        BarColumn(),
        TextColumn("{task.fields[errors]}"),
        TimeRemainingColumn(elapsed_when_finished=True),
        console=console,
    )
    with progress, threadpool_limits(1):  # matrices this small only lose by more threads
        bar = progress.add_task("", total=settings.samples * settings.seeds, stream=0, errors="")

        def report(n: int, errors: Mapping[str, float]) -> None:
            shown = "  ".join(f"{method} {error:.4f}" for method, error in errors.items())
            progress.update(bar, advance=n, errors=shown)

        for k in range(settings.seeds):
            progress.update(bar, stream=f"{k + 1}/{settings.seeds}")
            records += learn_stream(settings, settings.first_seed + k, report)

    for record in records:
        write_record(record, settings.out)
    figures = draw(records, settings.out)
    console.print(error_table(records))
    console.print(f"Records and figure: {', '.join(map(str, figures))}", soft_wrap=True)
    return records


def learn_stream(
    settings: Settings, seed: int, report: Callable[[int, Mapping[str, float]], None]
) -> list[Record]:
    """Feed one stream to all learners, side by side, and return a record of each."""
    stream = piecewise_random_walk(
        settings.samples, correlation=settings.correlation, period=settings.period, seed=seed
    )
    test = stream.redraw(seed + TEST_SEED)
    learners = {method: make(settings, seed) for method, make in METHODS.items()}
    curves: dict[str, list[tuple[float, float]]] = {method: [] for method in METHODS}
    seconds = dict.fromkeys(METHODS, 0.0)
    stops = np.linspace(0, settings.samples, settings.checkpoints + 1).round().astype(int)
    for start, stop in pairwise(np.unique(stops).tolist()):
        for method, learner in learners.items():
            began = time.perf_counter()
            for t in range(start, stop):
                learner.learn(stream.X[t : t + 1], stream.y[t : t + 1])
            seconds[method] += time.perf_counter() - began
            residual = learner.predict(test.X[:stop]) - test.y[:stop]
            curves[method].append((stop, float(np.mean(residual**2))))
        report(stop - start, {method: curve[-1][1] for method, curve in curves.items()})

    parameters = {name: value for name, value in asdict(settings).items() if name != "out"}
    low, high = np.quantile(stream.X, [0.005, 0.995])
    grid = np.linspace(low, high, 400)
    return [
        Record(
            experiment="demo",
            method=method,
            setting=settings.correlation,
            seed=seed,
            score=curves[method][-1][1],
            curve=curves[method],
            settings=parameters,
            seconds=seconds[method],
            details={"fit": np.column_stack([grid, learner.predict(grid[:, None])]).round(4)},
        )
        for method, learner in learners.items()
    ]


def error_table(records: Sequence[Record]) -> Table:
    """Summarise the final errors and the cost of each learner over all streams."""
    table = Table("learner", title="After the whole stream", title_justify="left")
    table.add_column("mean squared error", justify="right")
    table.add_column("\u00b1 s.e.", justify="right")
    table.add_column("ms per sample", justify="right")
    for method in METHODS:
        own = [record for record in records if record.method == method]
        mean, error = mean_and_error([record.score for record in own])
        cost = 1e3 * np.mean([r.seconds / r.settings["samples"] for r in own])
        table.add_row(method, f"{mean:.5f}", f"{error:.5f}", f"{cost:.2f}")
    return table
