"""Features have names: they come, go and change order, and the models follow River's rules."""

import copy
import importlib
import os
import pickle
import random
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("river")

from river import checks, compose, evaluate, metrics, preprocessing
from river.datasets import TrumpApproval, synth

from losse.integrations import named
from losse.integrations.river import LosseMultiTargetRegressor, LosseRegressor

SMALL = {"n_grids": 8, "n_bins": 4, "warm_up": 60}


def stream(n=150, seed=0):
    rng = np.random.default_rng(seed)
    for a, b, c in rng.normal(size=(n, 3)).tolist():
        yield {"a": a, "b": 100 * b + 1000, "c": c}, float(np.sin(2 * a) + 0.1 * b)


def learned(model=None, rows=None):
    model = model or LosseRegressor(**SMALL)
    for x, y in rows or stream():
        model.learn_one(x, y)
    return model


def predictions(model, n=20):
    return [model.predict_one(x) for x, _ in stream(n, seed=1)]


def two_targets(y):
    return {"y": y, "2y": 2 * y}


def checked(model):
    for check in checks.yield_checks(model):
        yield pytest.param(model, check, id=f"{type(model).__name__}-{check.__name__}")


@pytest.mark.parametrize(
    ("model", "check"),
    [
        *checked(LosseRegressor(**SMALL)),
        *checked(LosseMultiTargetRegressor(**SMALL)),
    ],
)
def test_river_s_own_check(model, check):
    check(model.clone())


@pytest.mark.parametrize("model", [LosseRegressor(), LosseMultiTargetRegressor()])
def test_no_check_of_river_is_skipped(model):
    assert model._unit_test_skips() == set()


@pytest.mark.parametrize("solver", ["sparse", "exact"])
def test_the_order_of_features_changes_not_a_bit(solver):
    def shuffled(rows):
        for x, y in rows:
            yield dict(random.sample(list(x.items()), len(x))), y

    straight = learned(LosseRegressor(**SMALL, solver=solver))
    other = learned(LosseRegressor(**SMALL, solver=solver), shuffled(stream()))
    assert predictions(straight) == predictions(other)


def test_a_fixed_scaler_is_no_matter_and_a_running_one_hides_what_was_learned():
    def error(model):
        return evaluate.progressive_val_score(TrumpApproval().take(300), model, metrics.MAE()).get()

    def fixed(x):
        return {name: (value - 40.0) / 5.0 for name, value in x.items()}

    model = LosseRegressor(**SMALL)
    alone = error(model.clone())
    assert error(compose.FuncTransformer(fixed) | model.clone()) == pytest.approx(alone, rel=1e-3)
    assert error(preprocessing.StandardScaler() | model.clone()) > 1.2 * alone


@pytest.mark.parametrize("discount", [1.0, 0.99])
@pytest.mark.parametrize(("a", "c"), [(1e-6, 0.0), (1.0, 1e9), (1e9, -1e9)])
def test_units_of_targets_are_no_matter(a, c, discount):
    """Before and after the warm-up, which ends after 60 rows."""
    for n in (1, 30, 150):
        model, other = (LosseRegressor(**SMALL, discount=discount) for _ in range(2))
        learned(model, stream(n))
        learned(other, ((x, a * y + c) for x, y in stream(n)))
        found = (np.array(predictions(other)) - c) / a
        np.testing.assert_allclose(found, predictions(model), atol=1e-8 + 1e-14 * abs(c / a))


@pytest.mark.parametrize("solver", ["sparse", "exact"])
@pytest.mark.parametrize("sizes", [[150], [1, 63, 80, 6]])
def test_batches_are_learned_as_their_rows_are(solver, sizes):
    expected = learned(LosseRegressor(**SMALL, solver=solver, discount=0.99))
    model = LosseRegressor(**SMALL, solver=solver, discount=0.99)
    rows = list(stream())
    X, y = pd.DataFrame([x for x, _ in rows]), pd.Series([y for _, y in rows])
    start = 0
    for size in sizes:
        model.learn_many(X[start : start + size], y[start : start + size])
        start += size
    assert predictions(model) == pytest.approx(predictions(expected), rel=1e-9)


def test_batches_are_predicted_with_their_index():
    model = learned()
    rows = [x for x, _ in stream(5, seed=2)]
    many = model.predict_many(pd.DataFrame(rows, index=[3, 1, 4, 15, 9]))
    assert many.index.tolist() == [3, 1, 4, 15, 9]
    assert many.tolist() == pytest.approx([model.predict_one(x) for x in rows])


def test_several_targets_in_batches():
    one, many = LosseMultiTargetRegressor(**SMALL), LosseMultiTargetRegressor(**SMALL)
    rows = list(stream())
    for x, y in rows:
        one.learn_one(x, two_targets(y))
    X = pd.DataFrame([x for x, _ in rows])
    many.learn_many(X, pd.DataFrame([two_targets(y) for _, y in rows]))
    assert predictions(many) == predictions(one)
    frame = many.predict_many(X[:3])
    assert frame.to_dict("records") == [pytest.approx(one.predict_one(x)) for x, _ in rows[:3]]


def test_several_targets_are_predicted_as_each_alone():
    both = learned(LosseMultiTargetRegressor(**SMALL), [(x, two_targets(y)) for x, y in stream()])
    alone = learned()
    for p, expected in zip(predictions(both), predictions(alone), strict=True):
        assert p == pytest.approx(two_targets(expected))


def test_what_is_missing_counts_as_its_mean():
    model = learned()
    rows = list(stream(60))  # the scaling is frozen after these
    mean = float(np.mean([x["b"] for x, _ in rows]))
    assert model.predict_one({"a": 0.5, "c": 0.1}) == pytest.approx(
        model.predict_one({"a": 0.5, "b": mean, "c": 0.1})
    )
    model.learn_one({}, 1.0)
    assert np.isfinite(model.predict_one({}))


def test_a_stream_without_features_is_a_mean():
    model = learned(LosseRegressor(n_grids=2, warm_up=8), [({}, 2.0), ({}, 4.0)] * 10)
    assert model.predict_one({}) == pytest.approx(3.0)
    assert model.predict_one({"new": 1.0}) == pytest.approx(3.0)


@pytest.mark.parametrize("solver", ["sparse", "exact"])
def test_a_late_feature_counts_once_its_scale_is_known(solver):
    model = learned(LosseRegressor(**SMALL, solver=solver))
    rng = np.random.default_rng(3)
    rows = [({**x, "late": rng.normal(50, 10)}, y) for x, y in stream(400, seed=2)]
    rows = [(x, y + 0.3 * (x["late"] - 50)) for x, y in rows]
    x = rows[0][0]
    for i, row in enumerate(rows):
        if i == named.WATCHED - 1:
            assert model.predict_one(x) == model.predict_one({**x, "late": 1e6})
        model.learn_one(*row)
    change = model.predict_one({**x, "late": 60.0}) - model.predict_one({**x, "late": 40.0})
    assert change == pytest.approx(6.0, abs=2.0)


def test_directions_depend_on_nothing_but_seed_and_name():
    def directions(names, seed=0):
        model = LosseRegressor(**SMALL, seed=seed)
        model.learn_one(dict.fromkeys(names, 1.0), 0.0)
        regression = model._model
        return dict(zip(regression.columns, regression._model.encoder.projection_, strict=True))

    first, second = directions("abc"), directions(["x", "c", "b"])
    for name in "bc":
        assert np.array_equal(first[name], second[name])
    assert not np.array_equal(first["a"], first["b"])
    assert not np.array_equal(first["a"], directions("abc", seed=1)["a"])
    assert not np.array_equal(directions([1])[1], directions(["1"])["1"])


def test_processes_agree(capsys):
    """Python's own hash of a text differs from process to process."""
    code = (
        "from losse.integrations.river import LosseRegressor\n"
        "model = LosseRegressor(n_grids=3, warm_up=4)\n"
        "for i in range(9): model.learn_one({'a': i % 4, 'b': i % 3}, i)\n"
        "print(model.predict_one({'a': 1.5, 'b': 2}))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True,
        env=os.environ | {"PYTHONHASHSEED": "12345"},
    )  # fmt: skip
    exec(code)
    assert done.stdout == capsys.readouterr().out


@pytest.mark.parametrize(
    ("x", "y", "w", "error", "message"),
    [
        ({"a": "red"}, 1.0, 1.0, TypeError, "feature 'a'='red' is not a number: encode it"),
        ({"a": None}, 1.0, 1.0, TypeError, "feature 'a'=None .* leave the feature out"),
        ({"a": float("nan")}, 1.0, 1.0, ValueError, "feature 'a'=nan .* impute it"),
        ({"a": float("inf")}, 1.0, 1.0, ValueError, "feature 'a'=inf"),
        ({"a": 10**400}, 1.0, 1.0, ValueError, "feature 'a'=1000"),
        ({"a": 1.0}, float("nan"), 1.0, ValueError, "target 'y'=nan .* leave such samples out"),
        ({"a": 1.0}, "high", 1.0, TypeError, "target 'y'='high'"),
        ({"a": 1.0}, 1.0, -1.0, ValueError, "weight w=-1.0 is negative: give a number"),
        ({"a": 1.0}, 1.0, float("inf"), ValueError, "weight w=inf"),
    ],
)
def test_bad_input_is_refused_and_changes_nothing(x, y, w, error, message):
    model = learned()
    before = pickle.dumps(model)
    with pytest.raises(error, match=message):
        model.learn_one(x, y, w)
    rows, ws = pd.DataFrame([{"a": 0.5}, x], dtype=object), [1.0, w]
    with pytest.raises((TypeError, ValueError), match=message.split("=")[0]):
        model.learn_many(rows, pd.Series([0.5, y], dtype=object), ws)
    if message.startswith("feature"):
        with pytest.raises(error, match=message):
            model.predict_one(x)
    assert pickle.dumps(model) == before


def test_rows_and_targets_must_match():
    model = LosseRegressor(**SMALL)
    with pytest.raises(ValueError, match="y has 1 rows, but X has 2"):
        model.learn_many(pd.DataFrame({"a": [1.0, 2.0]}), pd.Series([1.0]))
    with pytest.raises(ValueError, match="w has 3 rows, but X has 2"):
        model.learn_many(pd.DataFrame({"a": [1.0, 2.0]}), pd.Series([1.0, 2.0]), [1, 1, 1])
    assert model.predict_one({"a": 1.0}) == 0.0


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_grids": 0}, "n_grids=0"),
        ({"warm_up": 0}, "warm_up=0"),
        ({"ridge": 0.0}, "ridge=0.0"),
        ({"discount": 1.5}, "discount=1.5"),
        ({"solver": "fast"}, "solver='fast'"),
        ({"seed": -1}, "seed=-1"),
    ],
)
def test_nonsense_parameters_are_refused_with_the_first_sample(parameters, message):
    model = LosseRegressor(**parameters)
    for _ in range(2):
        with pytest.raises(ValueError, match=message):
            model.learn_one({"a": 1.0}, 1.0)
    assert model.predict_one({"a": 1.0}) == 0.0


def test_other_targets_are_refused_by_name():
    model = LosseMultiTargetRegressor(**SMALL)
    assert model.predict_one({"a": 1.0}) == {}
    with pytest.raises(ValueError, match="no target"):
        model.learn_one({"a": 1.0}, {})
    model.learn_one({"a": 1.0}, {"p": 1.0, "q": 2.0})
    before = pickle.dumps(model)
    with pytest.raises(ValueError, match=r"new: 'r'; missing: 'q'\): use a new model"):
        model.learn_one({"a": 1.0}, {"p": 1.0, "r": 2.0})
    assert pickle.dumps(model) == before
    model.learn_one({"a": 1.0}, {"q": 2.0, "p": 1.0})
    assert model.predict_one({"a": 1.0}) == pytest.approx({"p": 1.0, "q": 2.0})


def test_weights_count_like_repetitions():
    (x, y), *rows = stream(61)
    weighted, repeated = (learned(LosseRegressor(**SMALL, solver="dense"), rows) for _ in "ab")
    weighted.learn_one(x, y, w=3)
    weighted.learn_one(x, 1e6, w=0)
    learned(repeated, [(x, y)] * 3)
    assert predictions(weighted) == pytest.approx(predictions(repeated))


def test_discount_follows_a_change():
    def error(discount):
        model = LosseRegressor(**SMALL, discount=discount)
        total = 0.0
        for i, (x, y) in enumerate(stream(600)):
            sign = 1 if i < 300 else -1
            total += abs(model.predict_one(x) - sign * y) * (i >= 400)
            model.learn_one(x, sign * y)
        return total

    assert error(0.98) < 0.7 * error(1.0)


def test_copies_go_on_alike():
    model = learned()
    copies = [pickle.loads(pickle.dumps(model)), copy.deepcopy(model)]
    for twin in (model, *copies):
        learned(twin, list(stream(30, seed=5)))
    for twin in copies:
        assert predictions(twin) == predictions(model)
    assert predictions(model.clone()) == [0.0] * 20
    assert repr(model.clone({"seed": 5})).count("seed=5") == 1


def test_seeds_give_different_models():
    assert predictions(learned(LosseRegressor(**SMALL, seed=1))) != predictions(learned())


def test_beats_the_mean_in_a_pipeline():
    model = compose.Pipeline(preprocessing.StandardScaler(), LosseRegressor(**SMALL))
    metric = evaluate.progressive_val_score(synth.Planes2D(seed=1).take(600), model, metrics.R2())
    assert metric.get() > 0.5


def test_without_river_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "river", None)
    monkeypatch.delitem(sys.modules, "losse.integrations.river")
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'losse\[river\]'") as raised:
        importlib.import_module("losse.integrations.river")
    assert raised.value.name == "river"
