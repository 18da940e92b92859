"""Learners of the denoising experiment, each of which turns a run and its problem into a record."""

from __future__ import annotations

import math
import time
from functools import cache
from typing import Any

import numpy as np

from losse.encoders import Encoder, FourierEncoder, LosseEncoder, ReLUEncoder, TileEncoder
from losse.ftl import FTLRegressor
from losse.paper.denoising.data import Problem
from losse.paper.denoising.linear_layer import (
    Training,
    active_features,
    learn_linear,
    linear_error,
)
from losse.runs.experiment import Run
from losse.runs.record import Record
from losse.typing import Array

ACTIVE = 80
"""No encoder has more features that are not zero."""

# As good as none: what the closed form needs to find the least training error in doubles.
_LEAST_RIDGE = 1e-8


def learn(run: Run, problem: Problem) -> Record:
    """Learn the problem as the run's method and options say."""
    if run.method == "linear":
        return _least_squares(run, problem)
    if run.method == "nn":
        return _network(run, problem)
    value = run.options[swept_option(run.method)]
    encoder = make_encoder(run.method, problem.X.shape[1], value, run.seed).fit(problem.X)
    _compile(run.method)
    return _encoded(run, problem, encoder)


def swept_option(method: str) -> str:
    """Option that the paper sweeps for this method: bins of grids, or the projection's deviation.

    >>> swept_option("tile-80-ftl"), swept_option("relu")
    ('bins', 'deviation')
    """
    return "deviation" if method.startswith(("fourier", "relu")) else "bins"


def make_encoder(method: str, pixels: int, value: float, seed: int) -> Encoder:
    """The encoder of a method with one value of what is swept, not yet fitted.

    Inputs are used as they are: noisy pixels in about [-1, 2] need no scaling. The deviation is
    that of the projection's entries, while the encoder's scale is relative to 1 / sqrt(pixels).

    >>> make_encoder("losse-ftl", 9, 7, seed=0).n_active
    80
    """
    kind = method.removesuffix("-ftl")
    if kind == "losse":
        return LosseEncoder(ACTIVE // 4, int(value), 2, scaling=None, seed=seed)
    if kind in ("tile", "tile-80"):
        n_grids = ACTIVE if kind == "tile-80" else ACTIVE // 4
        return TileEncoder(n_grids, int(value), 2, scaling=None, seed=seed)
    encoder = {"fourier": FourierEncoder, "relu": ReLUEncoder}[kind]
    return encoder(ACTIVE, scale=value * math.sqrt(pixels), scaling=None, seed=seed)


@cache
def _compile(method: str) -> None:
    """Learn something tiny, so that no run's time is that of the compiler."""
    few = Problem(*(np.zeros((8, 4)) for _ in Problem._fields))
    options = {"batch": 8, "learning_rate": 1e-4, "max_epochs": 1, "held_out": "validation"}
    options |= {"solver": "dense", "ridge": 1e-5}
    run = Run("denoising", method, 4, 0, options)
    _encoded(run, few, make_encoder(method, 4, 1, seed=0).fit(few.X))


def _encoded(run: Run, problem: Problem, encoder: Encoder) -> Record:
    return (_closed_form if run.method.endswith("-ftl") else _adam)(run, problem, encoder)


def _adam(run: Run, problem: Problem, encoder: Encoder) -> Record:
    options = run.options
    clock = _Clock()
    rows = active_features(encoder, problem.X)
    W, training = learn_linear(
        rows,
        problem.Y,
        batch=options["batch"],
        learning_rate=options["learning_rate"],
        max_epochs=options["max_epochs"],
        seed=run.seed,
    )
    clock.stop()
    details = clock.details | _trained(training, linear_error(rows, W, problem.Y))
    if options["held_out"] == "test":
        details["least_training_error"] = _least_error(encoder, problem)
    score = linear_error(active_features(encoder, problem.X_test), W, problem.Y_test)
    return run.record(score, seconds=clock.seconds, curve=training.curve, details=details)


def _least_error(encoder: Encoder, problem: Problem) -> float:
    """The training error of the best linear layer on these features: what Adam converges to."""
    model = FTLRegressor(encoder, solver="dense", ridge=_LEAST_RIDGE).fit(problem.X, problem.Y)
    return _error(model.predict(problem.X), problem.Y)


def _closed_form(run: Run, problem: Problem, encoder: Encoder) -> Record:
    options = run.options
    clock = _Clock()
    model = FTLRegressor(encoder, solver=options["solver"], ridge=options["ridge"])
    model.fit(problem.X, problem.Y)
    clock.stop()
    details = clock.details | {"training_error": _error(model.predict(problem.X), problem.Y)}
    score = _error(model.predict(problem.X_test), problem.Y_test)
    return run.record(score, seconds=clock.seconds, details=details)


def _network(run: Run, problem: Problem) -> Record:
    from losse.paper.denoising.network import Network

    options = run.options
    pixels = problem.X.shape[1]
    clock = _Clock()
    network = Network((pixels, *options["hidden"], pixels), run.seed)
    training = network.learn(
        problem.X,
        problem.Y,
        batch=options["batch"],
        learning_rate=options["learning_rate"],
        max_epochs=options["max_epochs"],
    )
    clock.stop()
    details = clock.details | _trained(training, _error(network.predict(problem.X), problem.Y))
    score = _error(network.predict(problem.X_test), problem.Y_test)
    return run.record(score, seconds=clock.seconds, curve=training.curve, details=details)


def _least_squares(run: Run, problem: Problem) -> Record:
    clock = _Clock()
    inputs, tests = (np.column_stack([X, np.ones(len(X))]) for X in (problem.X, problem.X_test))
    W = np.linalg.solve(inputs.T @ inputs, inputs.T @ problem.Y)
    clock.stop()
    details = clock.details | {"training_error": _error(inputs @ W, problem.Y)}
    return run.record(_error(tests @ W, problem.Y_test), seconds=clock.seconds, details=details)


class _Clock:
    """Time taken to encode and to learn; on a busy machine the processor's says more."""

    def __init__(self) -> None:
        self.seconds, self._processor = -time.perf_counter(), -time.process_time()

    def stop(self) -> None:
        self.seconds += time.perf_counter()
        self._processor += time.process_time()

    @property
    def details(self) -> dict[str, Any]:
        return {"processor_seconds": self._processor}


def _trained(training: Training, error: float) -> dict[str, Any]:
    return {
        "epochs": len(training.curve),
        "converged": training.converged,
        "training_error": error,
    }


def _error(predicted: Array, true: Array) -> float:
    return float(np.mean((predicted - true) ** 2))
