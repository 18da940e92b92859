"""Tables of the accuracy benchmark: their rows, a user's file, and small or odd data."""

import dataclasses
import re

import numpy as np
import pytest
from sklearn.datasets import load_diabetes
from sklearn.metrics import r2_score

from benchmarks.accuracy import bench as accuracy
from benchmarks.accuracy.contenders import entries
from benchmarks.accuracy.contenders.entries import TABULAR, entry
from benchmarks.accuracy.measure import measure
from benchmarks.accuracy.plan import plan
from benchmarks.accuracy.streams.tabular import TABLES
from benchmarks.accuracy.tables import fill
from losse import FTLRegressor
from losse.extras import EXTRAS
from losse.runs.store import read_records


@pytest.mark.parametrize("name", TABLES)
def test_tables_are_what_they_say(name):
    table = TABLES[name]
    for package in table.needs:
        pytest.importorskip(package)
    X, Y = table.make(0)
    assert X.shape == (table.rows, table.inputs)
    assert np.isfinite(X).all()
    assert (Y.std(axis=0) > 0).all()
    assert len(table.stream(0).X) == table.n_learned


def test_a_fifth_is_held_out_of_rows_without_an_order():
    stream, again, other = (TABLES["diabetes"].stream(seed) for seed in (0, 0, 1))
    X, _ = load_diabetes(return_X_y=True, scaled=False)
    assert np.array_equal(np.sort(np.vstack([stream.X, stream.X_test]), axis=0), np.sort(X, axis=0))
    assert len(stream.X_test) == len(X) // 5
    assert np.array_equal(stream.X, again.X)
    assert not np.array_equal(stream.X, other.X)


def test_rows_in_an_order_are_scored_ahead_of_learning():
    stream = TABLES["drift"].stream(0)
    assert np.array_equal(stream.X, TABLES["drift"].make(0)[0])
    found = measure(entry("ridge", stream, 0), stream, [100, 200])
    assert found.test == []
    expected = np.mean(found.prequential)
    assert found.curve == [(100, found.prequential[0]), (200, pytest.approx(expected))]


def test_everyone_learns_tables_but_river_no_large_ones():
    runs = plan("full", ("tables",), tuple(TABLES), (), seeds=1)
    usual = {r.method for r in runs if r.setting == "diabetes tables"}
    assert usual == set(TABULAR)
    large = {r.method for r in runs if r.setting == "periodic tables"}
    assert usual - large == {"river-amf", "river-srp"}
    assert all(r.setting != "periodic tables" for r in plan("quick", ("tables",), TABLES, (), 1))


@pytest.fixture(scope="module")
def of_a_file(tmp_path_factory):
    folder = tmp_path_factory.mktemp("file")
    rows = [f"{i % 7},{'xyz'[i % 3]},{i % 7 + i % 3}" for i in range(100)]
    (folder / "my numbers.csv").write_text("\n".join(["a,b,c", *rows]))
    settings = accuracy.Settings(
        table=folder / "my numbers.csv", contenders=("ridge",), seeds=2, workers=0,
        results=folder / "results",
    )  # fmt: skip
    accuracy.run(settings)
    return settings


def test_a_file_is_learned(of_a_file):
    records = read_records(of_a_file.folder)
    assert {(r.method, r.setting, r.seed) for r in records} == {
        ("ridge", "my-numbers tables", seed) for seed in (0, 1)
    }
    for record in records:
        assert record.details["samples"] == [80]
        assert record.score < 1e-6  # codes in this order are all it takes
        assert record.settings["target"] == "c"
    assert "| my-numbers |" in (of_a_file.folder / "table.md").read_text()
    assert (of_a_file.folder / "tables.svg").exists()


def test_what_became_codes_is_shown(of_a_file, capsys):
    accuracy.run(of_a_file)
    assert "column 'b' has 3 words" in capsys.readouterr().out


def test_a_file_that_has_changed_is_not_mixed_with_its_records(of_a_file, tmp_path):
    changed = tmp_path / "my numbers.csv"
    changed.write_text(of_a_file.table.read_text() + "\n1,x,7")
    with pytest.raises(ValueError, match="come from other settings"):
        accuracy.run(dataclasses.replace(of_a_file, table=changed))


def test_a_column_is_about_a_file():
    with pytest.raises(ValueError, match=re.escape("name it with --table")):
        accuracy.Settings(target="price")


def test_who_is_not_installed_is_left_out_with_a_reason(of_a_file, monkeypatch, tmp_path, capsys):
    for method in TABULAR:
        if method != "ridge":
            monkeypatch.setitem(entries.NEEDS, method, ("another_world",))
    monkeypatch.setitem(EXTRAS, "another_world", "bench")
    records = accuracy.run(dataclasses.replace(of_a_file, contenders=(), seeds=1, results=tmp_path))
    assert {r.method for r in records} == {"ridge"}
    assert "left out: the method recommended needs 'another_world'" in capsys.readouterr().out


def test_the_least_error_is_bold(of_a_file):
    (record, _) = read_records(of_a_file.folder)
    worse = dataclasses.replace(record, method="boosting", details=record.details | {"test": [0.5]})
    page = fill("<!-- table: tables test --><!-- end -->", [record, worse])
    assert "| my-numbers | **" in page
    assert "** | .500 |" in page


@pytest.mark.parametrize("name", ["few-rows", "one-input", "wide", "large-scale", "codes"])
def test_small_and_odd_data_are_learned_as_well_as_by_ridge_regression(name):
    stream = TABLES[name].stream(0)
    n = min(len(stream.X), 1000)
    errors = [
        measure(entry(contender, stream, 0), stream, [n]).test[0]
        for contender in ("recommended", "ridge")
    ]
    assert errors[0] < errors[1] + 0.05


def test_a_constant_target_is_predicted():
    rng = np.random.default_rng(0)
    model = FTLRegressor()
    for _ in range(4):
        model.partial_fit(rng.normal(size=(25, 3)), np.full(25, 7.5))
    assert np.allclose(model.predict(rng.normal(size=(10, 3))), 7.5)


def test_a_target_that_begins_to_vary_is_learned():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    y = np.where(np.arange(400) < 100, 3.0, 3.0 + X[:, 0])
    model = FTLRegressor().partial_fit(X[:100], y[:100]).partial_fit(X[100:], y[100:])
    fresh = rng.normal(size=(200, 2))
    assert r2_score(3.0 + fresh[:, 0], model.predict(fresh)) > 0.5
