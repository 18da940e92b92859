"""The comparison with River: every run leaves a record, and is not repeated."""

from dataclasses import replace
from itertools import islice

import pytest

pytest.importorskip("river")

from river import evaluate, metrics

from benchmarks.river import bench, track
from losse.cli import main
from losse.runs.store import Store, read_records

FEW = {
    "methods": ("losse", "linear"),
    "streams": ("Friedman",),
    "samples": 30,
    "seeds": 2,
    "workers": 0,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("river")
    bench.run(bench.Settings(**FEW, results=folder))
    return folder


def test_a_record_per_method_stream_and_seed(folder):
    records = read_records(folder)
    assert {(r.method, r.setting, r.seed) for r in records} == {
        (method, "Friedman", seed) for method in ("losse", "linear") for seed in (0, 1)
    }
    for record in records:
        assert record.experiment == "river"
        assert record.settings["samples"] == 30
        assert record.score <= record.details["rmse"]
        assert record.details["bytes"] > 0
        assert record.curve[-1][1] == pytest.approx(record.score, rel=0.2)


def test_the_score_is_river_s_own(folder):
    expected = evaluate.progressive_val_score(
        track.STREAMS["Friedman"](30, 1), track.METHODS["linear"](1), metrics.MAE()
    )
    (record,) = [r for r in read_records(folder) if (r.method, r.seed) == ("linear", 1)]
    assert record.score == pytest.approx(expected.get())


def test_finished_runs_are_not_repeated(folder):
    store = Store(folder)
    record = next(r for r in store.read() if (r.method, r.seed) == ("linear", 0))
    store.put(replace(record, score=123.0))
    records = bench.run(bench.Settings(**FEW, results=folder))
    assert 123.0 in [r.score for r in records]
    with pytest.raises(ValueError, match="samples 30, now 31"):  # which would be mixed with these
        bench.run(bench.Settings(**{**FEW, "samples": 31}, results=folder))
    store.put(record)


def test_the_table_names_the_best(tmp_path):
    settings = bench.Settings(**FEW | {"seeds": 1}, results=tmp_path)
    linear, losse = sorted(bench.run(settings), key=lambda r: r.method)
    text = (tmp_path / "table.md").read_text()
    best = min(linear, losse, key=lambda r: r.score)
    assert f"| {best.method} | **{best.score:.3g}** |" in text
    assert "Friedman: 30 samples, one seed" in text


def test_a_later_choice_keeps_earlier_rows(tmp_path, capsys):
    for method in ("mean", "pa-1"):
        main(
            f"bench river --methods {method} --streams ChickWeights --seeds 1 "
            f"--workers 0 --results {tmp_path}".split()
        )
    shown = capsys.readouterr().out
    assert "| mean |" in shown
    assert "| pa-1 |" in shown


@pytest.mark.parametrize("stream", track.STREAMS)
def test_streams_are_samples_of_numbers(stream):
    for x, y in islice(track.STREAMS[stream](60, 0), 60):
        assert len(x) > 0
        assert float(y) == y


@pytest.mark.parametrize("method", track.METHODS)
def test_methods_learn_and_predict(method):
    model = track.METHODS[method](0)
    for x, y in track.STREAMS["Friedman"](5, 0):
        model.learn_one(x, y)
    assert isinstance(model.predict_one(x), float)


def test_nothing_to_do_is_refused():
    with pytest.raises(ValueError, match="seeds must be at least 1, got 0"):
        bench.Settings(seeds=0)


@pytest.mark.parametrize("wrong", [{"methods": ("svm",)}, {"streams": ("Amazon",)}])
def test_unknown_names_are_refused(wrong):
    with pytest.raises(ValueError, match=r"has '\w+'; choose from: "):
        bench.Settings(**wrong)
