"""A year in the life of a model: no leaks, a billion samples, many files, other places."""

import os
import subprocess
import sys
import warnings

import numpy as np
import pytest

from losse import FTLRegressor, LosseEncoder
from losse.ftl import LeaderWarning
from tests.ftl.reference import accurate_leader, objective
from tests.torture.endurance import files_in_a_row, leak

RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, size=(400, 2))
Y = np.column_stack([np.sin(X[:, 0]), X[:, 1]])
GRIDS = LosseEncoder(4, 4, scaling=(-3, 3)).fit(X)


def test_updates_do_not_leak():
    leak(160, warm_up=60)


@pytest.mark.parametrize("solver", ["sparse", "dense", "exact"])
def test_a_billion_samples(solver):
    """By weights: every row counts as 2.5 million."""
    model = FTLRegressor(GRIDS, solver=solver, ridge=1e-4)
    with warnings.catch_warnings():
        warnings.simplefilter("error", LeaderWarning)
        for start in range(0, 400, 20):
            part = slice(start, start + 20)
            model.partial_fit(X[part], Y[part], sample_weight=2.5e6)
        model.partial_fit(X[:50], Y[:50] + 1.0)  # fifty rows among a billion change little
    before = FTLRegressor(GRIDS, solver="dense", ridge=1e-4).fit(X, Y)
    if solver != "sparse":
        Phi = GRIDS.transform(X).toarray()
        best = accurate_leader(Phi, Y, 1e-4)
        reached = objective(Phi, Y, model.weights_, 1e-4)
        assert reached <= 1.01 * objective(Phi, Y, best, 1e-4)
    assert np.abs(model.predict(X) - before.predict(X)).max() < 0.2


def test_files_one_after_the_other(tmp_path):
    files_in_a_row(tmp_path, 60)


def test_a_model_changes_its_precision_by_merging():
    double = FTLRegressor(GRIDS, solver="exact", ridge=1e-3).fit(X[:200], Y[:200])
    single = FTLRegressor(GRIDS, solver="exact", ridge=1e-3, dtype="float32")
    single.fit(X[200:], Y[200:]).merge(double)
    again = FTLRegressor(GRIDS, solver="exact", ridge=1e-3).fit(X[:1], Y[:1])
    again.merge(single).unlearn(X[:1], Y[:1])
    whole = FTLRegressor(GRIDS, solver="dense", ridge=1e-3).fit(X, Y).predict(X)
    for model in (single, again):
        assert model.n_samples_seen_ == 400
        assert np.abs(model.predict(X) - whole).max() < 1e-3


CODE = """
import locale, sys, time
try:
    locale.setlocale(locale.LC_ALL, "")
except locale.Error:
    pass
time.tzset()
import numpy as np
from losse import FTLRegressor, LosseEncoder
model = FTLRegressor.load(sys.argv[1], progress=False)
model.save(sys.argv[2], progress=False)
print(repr(model), model.predict(np.ones((1, 2))).tolist())
"""


@pytest.mark.parametrize(
    "place",
    [
        {"LC_ALL": "C", "TZ": "Asia/Kathmandu", "PYTHONUTF8": "0"},
        {"LC_ALL": "tr_TR.UTF-8", "TZ": "Pacific/Apia"},
    ],
)
def test_files_are_the_same_everywhere(place, tmp_path):
    here, there = tmp_path / "modèle.losse", tmp_path / "there.losse"
    model = FTLRegressor(LosseEncoder(3, 3), ridge=1e-4).fit(X, Y)
    model.save(here, progress=False)
    done = subprocess.run(
        [sys.executable, "-c", CODE, here, there],
        env=os.environ | place,
        capture_output=True,
        check=False,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stderr
    assert str(model.predict(np.ones((1, 2))).tolist()) in done.stdout
    assert here.read_bytes() == there.read_bytes()
