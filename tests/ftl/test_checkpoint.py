"""A model that is saved and loaded goes on as if it had never stopped; progress is one line."""

import io
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError

from losse import FTLRegressor, LosseEncoder, TileEncoder
from losse.ftl import checkpoint
from losse.ftl.checkpoint import KIND, VERSION, byte_progress
from losse.storage.archive import ArchiveError, open_archive, write_archive
from tests.ftl.models import (
    SOLVERS,
    X,
    Y,
    assert_identical,
    in_batches,
    large_models,
    models,
)

steps = st.lists(
    st.tuples(st.sampled_from(["learn", "learn", "learn", "unlearn", "merge"]), st.integers(1, 60)),
    min_size=1,
    max_size=6,
)


def take(model, step, start):
    kind, size = step
    rows = np.arange(start, start + size) % 240
    if kind == "learn" or not hasattr(model, "encoder_"):
        model.partial_fit(X[rows], Y[rows])
    elif kind == "merge":
        other = FTLRegressor(model.encoder_, solver=model.solver, ridge=1e-5, center=model.center)
        model.merge(other.fit(X[rows], Y[rows]))
    elif model.n_samples_seen_ >= size and model.discount == 1:
        rows = np.arange(start - size, start) % 240
        try:
            model.unlearn(X[rows], Y[rows])
        except ValueError:  # not learned, or twice: both models refuse alike
            model.partial_fit(X[rows], Y[rows])


@given(
    model=st.one_of(models(), models(dtype="float32"), models(discount=0.95)),
    steps=steps,
    large=st.booleans(),
)
@settings(max_examples=30)  # `make torture` saves and loads for an hour
def test_it_goes_on_bit_for_bit(model, steps, large, tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "model.losse"
    with large_models(large):
        twin = FTLRegressor(**model.get_params(deep=False))
        start = 0
        for step in steps:
            take(model, step, start)
            take(twin, step, start)
            twin.save(path)
            twin = FTLRegressor.load(path)
            assert_identical(twin, model)
            start += step[1]
        np.testing.assert_array_equal(twin.predict(X), model.predict(X))
        if not large:
            for one, other in zip(twin.predict(X, True), model.predict(X, True), strict=True):
                np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("solver", SOLVERS)
def test_every_stage_of_every_solver_goes_on(solver, large, tmp_path):
    """Row by row and in batches, before and after samples outnumber features."""
    with large_models(large):
        model = FTLRegressor(LosseEncoder(5, 3, 2), solver=solver, ridge=1e-5).partial_fit(
            X[:30], Y[:30]
        )
        model.save(tmp_path / "model")
        twin = FTLRegressor.load(tmp_path / "model")
        for size in (1, 1, 40, 100, 1, 3, 200, 1, 1):
            rows = np.random.default_rng(size).integers(0, 240, size)
            for one in (model, twin):
                one.partial_fit(X[rows], Y[rows])
            assert_identical(model, twin)
            twin.save(tmp_path / "model")
            twin = FTLRegressor.load(tmp_path / "model")


def test_parameters_and_attributes_come_back(tmp_path):
    frame = pd.DataFrame(X, columns=list("abcd"))
    low, high = X.min(axis=0) - 1, X.max(axis=0) + 1
    model = FTLRegressor(
        TileEncoder(np.int64(4), 5, 1, scaling=(low, high), seed=3),
        solver="sparse",
        ridge=np.float64(1e-4),
        discount=0.5,
        dtype=np.float32,
    ).fit(frame, Y[:, 0])
    model.save(tmp_path / "model")
    loaded = FTLRegressor.load(str(tmp_path / "model"))
    assert loaded.get_params()["encoder__n_grids"] == 4
    assert loaded.dtype == "float32"
    assert (loaded.ridge, loaded.discount, loaded.solver) == (1e-4, 0.5, "sparse")
    np.testing.assert_array_equal(loaded.encoder.scaling, (low, high))
    assert list(loaded.feature_names_in_) == list("abcd")
    assert loaded.predict(frame).shape == (240,)
    with pytest.raises(ValueError, match="feature names"):
        loaded.predict(frame[["b", "a", "c", "d"]])
    again = loaded.fit(frame, Y[:, 0])  # a fresh start works as with the original
    np.testing.assert_array_equal(again.predict(frame), model.predict(frame))


@pytest.mark.parametrize("fitted", [True, False])
def test_the_given_encoder_comes_back_fitted_or_not(fitted, tmp_path):
    encoder = LosseEncoder(3, 4, 2)
    if fitted:
        encoder.fit(X + 1.0)
        encoder.projection_ = encoder.projection_[:, ::-1]
    model = FTLRegressor(encoder, ridge=1e-5).fit(X, Y)
    model.save(tmp_path / "model")
    loaded = FTLRegressor.load(tmp_path / "model")
    assert hasattr(loaded.encoder, "projection_") == fitted
    np.testing.assert_array_equal(loaded.fit(X, Y).predict(X), model.fit(X, Y).predict(X))


def test_default_model(tmp_path):
    model = FTLRegressor().fit(X, Y)
    model.save(tmp_path / "model")
    assert FTLRegressor.load(tmp_path / "model").encoder is None


def test_progress_counts_all_bytes(tmp_path):
    model = in_batches(FTLRegressor(LosseEncoder(20, 10, 2), ridge=1e-5), range(240), 100)
    calls = []
    model.save(tmp_path / "model", progress=lambda *call: calls.append(call))
    size = (tmp_path / "model").stat().st_size
    assert 0.9 * size < calls[-1][0] == calls[-1][1] < size
    assert calls == sorted(calls)
    calls.clear()
    FTLRegressor.load(tmp_path / "model", progress=lambda *call: calls.append(call))
    assert calls[-1][0] == calls[-1][1]


def test_only_a_fitted_model_of_known_encoders_can_be_saved(tmp_path):
    class Mine(LosseEncoder):
        pass

    with pytest.raises(NotFittedError):
        FTLRegressor().save(tmp_path / "model")
    model = FTLRegressor(Mine(2, 2, 1), ridge=1e-5).fit(X, Y)
    with pytest.raises(TypeError, match=r"encoder=Mine.* cannot be saved"):
        model.save(tmp_path / "model")
    assert not list(tmp_path.iterdir())


def rewritten(path, change):
    """The same archive with changed content and right checksums."""
    with open_archive(path, KIND, VERSION) as archive:
        header = dict(archive.header)
        arrays = {name: archive.read(name) for name in archive.shapes}
    change(header, arrays)
    write_archive(path, KIND, VERSION, header, arrays)


def set_header(name, value):
    return lambda header, arrays: header.update({name: value})


def set_parameter(name, value):
    def change(header, arrays):
        header["used_encoder"]["parameters"][name] = value

    return change


def set_entry(name, value):
    def change(header, arrays):
        arrays[name] = arrays[name].copy()
        arrays[name].flat[0] = value

    return change


HOSTILE = [
    set_header("n_outputs", 2**40),
    set_header("n_outputs", 0),
    set_header("n_outputs", 70),
    set_header("single", True),
    set_header("weight", 0.0),
    set_header("n_samples_seen", -1),
    set_header("n_samples_seen", 3.5),
    set_header("names", ["a"]),
    set_header("parameters", {"solver": "sparse"}),
    set_header("parameters", [1, 2]),
    set_header("used_encoder", {"type": "os.system", "parameters": {}}),
    set_header("used_encoder", None),
    set_header("solver.memory.total", -1.0),
    set_header("solver.clock", 10**30),
    set_parameter("n_grids", 10**9),
    set_parameter("n_grids", "many"),
    set_parameter("n_bins", 10**6),
    set_parameter("grid_dim", 60),
    set_parameter("scaling", [[1.0], [2.0, "x"], 3.0]),
    set_parameter("unknown", 1),
    set_entry("solver.memory.A", np.nan),
    set_entry("solver.weights", np.inf),
    set_entry("solver.recent_cells", 10**6),
    set_entry("solver.recent_cells", -1),
    set_entry("solver.last_active", 10**9),
    set_entry("solver.last_active", -(2**63)),
    lambda header, arrays: arrays.pop("solver.memory.B"),
    lambda header, arrays: header.pop("weight"),
    lambda header, arrays: arrays.update(extra=np.zeros(3)),
    lambda header, arrays: arrays.update({"solver.memory.B": np.zeros((3, 3))}),
]


@pytest.mark.parametrize("change", HOSTILE)
def test_files_that_make_no_sense_are_refused(change, tmp_path):
    path = tmp_path / "model"
    FTLRegressor(LosseEncoder(3, 4, 2), solver="sparse", ridge=1e-5).fit(X, Y).save(path)
    rewritten(path, lambda header, arrays: None)
    FTLRegressor.load(path)  # the way to rewrite is right
    rewritten(path, change)
    with pytest.raises(ArchiveError, match="not a valid model"):
        FTLRegressor.load(path)


def test_a_file_of_another_version_or_kind_is_refused(tmp_path):
    path = tmp_path / "model"
    for kind, version, message in [
        (KIND, VERSION + 1, "Upgrade losse"),
        ("something", 1, "is of kind 'something'"),
    ]:
        write_archive(path, kind, version, {}, {})
        with pytest.raises(ArchiveError, match=message):
            FTLRegressor.load(path)
    with pytest.raises(FileNotFoundError):
        FTLRegressor.load(tmp_path / "none")


@pytest.mark.parametrize(
    ("first", "then"),
    [
        ({"ridge": 1e-3}, {"center": True}),
        ({"ridge": 1e-3, "center": True}, {"center": False}),
        ({"ridge": 1e-3}, {"ridge": "auto"}),
        ({"ridge": "auto"}, {"ridge": 1e-3}),
        ({"ridge": 1e-3}, {"discount": 0.5, "dtype": "float32", "solver": "sparse"}),
    ],
)
def test_parameters_that_are_set_after_fit_count_from_the_next_fit(first, then, tmp_path):
    """A model that had changed in part could not be read again."""
    model = FTLRegressor(LosseEncoder(5), **first).fit(X[:60], Y[:60])
    twin = FTLRegressor(LosseEncoder(5), **first).fit(X[:60], Y[:60]).partial_fit(X[60:], Y[60:])
    model.set_params(**then).partial_fit(X[60:], Y[60:])
    np.testing.assert_array_equal(model.predict(X), twin.predict(X))
    model.save(tmp_path / "model.losse")
    loaded = FTLRegressor.load(tmp_path / "model.losse")
    np.testing.assert_array_equal(loaded.predict(X), twin.predict(X))
    assert {name: getattr(loaded, name) for name in first} == first


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def clock(monkeypatch):
    """A clock that moves by hand."""
    now = [100.0]
    monkeypatch.setattr(checkpoint.time, "monotonic", lambda: now[0])
    return now


def run(clock, stream, monkeypatch, seconds):
    monkeypatch.setattr(sys, "stderr", stream)
    report = byte_progress("Saving")
    for done in range(1, 5):
        clock[0] += seconds
        report(done * 10**9, 4 * 10**9)
    return stream.getvalue()


def test_a_terminal_shows_one_line_that_ends(clock, monkeypatch):
    text = run(clock, Terminal(), monkeypatch, seconds=2.0)
    assert [line.rstrip() for line in text.split("\r")] == [
        "",
        "Saving:  25 % of 4.00 GB, 0.50 GB/s",
        "Saving:  50 % of 4.00 GB, 0.50 GB/s",
        "Saving:  75 % of 4.00 GB, 0.50 GB/s",
        "Saving: 100 % of 4.00 GB, 0.50 GB/s",
    ]
    assert text.count("\n") == 1
    assert text.endswith("\n")


def test_what_is_done_at_once_shows_nothing(clock, monkeypatch):
    assert run(clock, Terminal(), monkeypatch, seconds=0.01) == ""


def test_a_file_or_pipe_gets_nothing(clock, monkeypatch):
    assert run(clock, io.StringIO(), monkeypatch, seconds=2.0) == ""


def test_nothing_to_do(clock, monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    report = byte_progress("Saving")
    clock[0] += 1
    report(0, 0)
    assert sys.stderr.getvalue().rstrip() == "\rSaving: 100 % of 0.00 GB, 0.00 GB/s"
