"""Work that is spread over calls: what a call pays for, and what comes of it."""

import copy
import pickle
from unittest.mock import patch

import numpy as np
import pytest

import losse.ftl.build
import losse.ftl.deferred
import losse.ftl.ridge_selector
import losse.ftl.solvers.exact
import losse.ftl.solvers.renewal
from losse import AdaptiveEncoder, FTLRegressor, LosseEncoder
from losse._kernels.simd import aligned
from losse.encoders.features import DenseFeatures
from losse.ftl.build import Build, payment, set_apart
from losse.ftl.kept_rows import Rows
from losse.ftl.memories.square import SquareMemory
from losse.ftl.settings import Settings
from losse.ftl.solvers.descent import PARTS, Descent
from losse.ftl.solvers.exact import ExactSolver
from losse.ftl.solvers.tracked_inverse import TrackedInverse
from losse.work import UNIT
from tests.ftl.models import X, Y, assert_identical, memory

ENCODER = AdaptiveEncoder(6, 3, n_stages=1, warm_up=160)
PAID = 1.2e7


@pytest.fixture
def slow():
    """As if all work took long: a build lasts for many calls."""
    with (
        patch.object(losse.ftl.build, "PER_ROW", PAID),
        patch.object(losse.ftl.solvers.renewal, "PER_ROW", 5e3),
        patch.object(losse.ftl.ridge_selector, "SLOW", 0.0),
        patch.object(losse.ftl.ridge_selector, "APART", 3),
    ):
        yield


def model(**parameters):
    return FTLRegressor(ENCODER, **{"ridge": 1e-3} | parameters)


def learn(model, first, last, size=4):
    for start in range(first, last, size):
        rows = slice(start, min(start + size, last))
        model.partial_fit(X[rows], Y[rows])
    return model


def builds(model):
    return model._learner._build is not None


@pytest.mark.usefixtures("slow")
def test_the_old_encoder_serves_until_the_new_one_has_learned_all_rows():
    warm = learn(model(center=False), 0, 156)  # sums in the same units
    old, errors = warm.encoder_, []
    for start in range(156, 236, 4):
        learn(warm, start, start + 4)
        errors.append(np.isfinite(warm.predict(X)).all())
        if not builds(warm):
            break
        assert warm.encoder_ is old
    assert all(errors)
    assert len(errors) > 2
    assert isinstance(warm.encoder_, AdaptiveEncoder)
    assert warm.encoder_ is not old
    n = warm.n_samples_seen_
    scratch = learn(FTLRegressor(warm.encoder_, ridge=1e-3, center=False), 0, n)
    np.testing.assert_allclose(memory(warm).A, memory(scratch).A, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(memory(warm).B, memory(scratch).B, rtol=1e-8, atol=1e-8)


@pytest.mark.usefixtures("slow")
def test_the_encoder_is_that_of_a_build_at_once():
    spread = learn(model(), 0, 240).encoder_
    with patch.object(losse.ftl.build, "PER_ROW", np.inf):
        at_once = learn(model(), 0, 240).encoder_
    assert at_once is not spread
    assert spread.same_features(at_once)


@pytest.mark.usefixtures("slow")
@pytest.mark.parametrize("n", [160, 176, 204])
@pytest.mark.parametrize("parameters", [{}, {"discount": 0.99, "ridge": "auto"}])
@pytest.mark.parametrize("way", ["file", "pickle", "copy"])
def test_a_copy_goes_on_bit_for_bit(n, parameters, way, tmp_path):
    whole = learn(model(**parameters), 0, 240)
    first = learn(model(**parameters), 0, n)
    if way == "file":
        first.save(tmp_path / "model")
        second = FTLRegressor.load(tmp_path / "model")
    else:
        second = pickle.loads(pickle.dumps(first)) if way == "pickle" else copy.deepcopy(first)
    for each in (learn(first, n, 240), learn(second, n, 240)):
        assert_identical(each, whole)
        assert each.ridge_ == whole.ridge_
        assert (each.regret_ == whole.regret_).all()


@pytest.mark.usefixtures("slow")
def test_some_of_these_copies_were_made_in_the_middle_of_a_build():
    assert [builds(learn(model(), 0, n)) for n in (156, 160, 168, 240)] == [
        False, True, True, False,
    ]  # fmt: skip


@pytest.mark.usefixtures("slow")
def test_every_row_pays_the_same():
    warm = learn(model(), 0, 160)
    build = warm._learner._build
    costs = [cost + losse.ftl.build.OVERHEAD for cost in build._making()]
    share = 4 * losse.ftl.build.HASTE * PAID
    paid = share
    while build.units < len(costs):  # rows that come meanwhile are learned by others
        # What was paid for is done, and one unit more at most.
        assert sum(costs[: build.units - 1]) <= paid <= sum(costs[: build.units])
        learn(warm, warm.n_samples_seen_, warm.n_samples_seen_ + 4)
        paid += share


def test_rows_pay_more_where_the_encoder_is_out_of_date():
    rows = Rows(X[:160], Y[:160], np.ones(160))
    calls = []
    for urgent in (False, True):
        settings = Settings(ENCODER, ridge=1e-3)
        build = Build(settings, rows, 10_000, np.ones(Y.shape[1]), urgent=urgent)
        calls.append(1)
        while (leader := build.advance(PAID)) is None:
            calls[-1] += 1
        assert leader.total == 160
    assert calls[0] / calls[1] == pytest.approx(losse.ftl.build.HASTE, rel=0.1)


def test_rows_pay_in_proportion_to_their_width():
    """So that builds of many inputs and outputs take over about as soon as others."""
    narrow, wide = (Rows(np.ones((25, d)), np.ones((25, d)), np.ones(25)) for d in (16, 64))
    assert payment(wide, 1000) == 4 * payment(narrow, 1000)
    assert payment(wide, 100) == payment(narrow[:1], 10) == np.inf  # these pay for a whole build


@pytest.mark.usefixtures("slow")
def test_inputs_beyond_the_range_of_the_encoder_are_urgent(tmp_path):
    """They begin a build out of turn, which a file goes on with."""
    warm = FTLRegressor(AdaptiveEncoder(6, 3, n_stages=1, warm_up=640), ridge=1e-3)
    learn(warm, 0, 160)
    while builds(warm):
        learn(warm, 160, 180)
    warm.partial_fit(X[:80] + 50.0, Y[:80])
    warm.partial_fit(X[80:84] + 50.0, Y[80:84])
    assert warm._learner._build._urgent
    warm.save(tmp_path / "model.losse")
    loaded = FTLRegressor.load(tmp_path / "model.losse")
    for each in (warm, loaded):
        learn(each, 0, 40)
    assert_identical(loaded, warm)


@pytest.mark.parametrize("n", [90, 600])
def test_units_of_the_recommended_model_are_small(n):
    rng = np.random.default_rng(0)
    inputs, targets = rng.normal(size=(n, 8)), rng.normal(size=(n, 4))
    rows = Rows(inputs, np.sin(targets), np.ones(n))
    build = Build(Settings(AdaptiveEncoder()), rows, n, np.ones(4))
    costs = [cost + losse.ftl.build.OVERHEAD for cost in build._making()]
    assert max(costs) < 8 * UNIT
    assert sum(costs) > max(costs)


@pytest.mark.usefixtures("slow")
def test_many_rows_at_once_pay_for_the_whole_build():
    assert not builds(learn(model(), 0, 120).partial_fit(X[120:180], Y[120:180]))
    begun = learn(model(), 0, 164)
    assert builds(begun)
    assert not builds(begun.partial_fit(X[164:200], Y[164:200]))


@pytest.mark.usefixtures("slow")
@pytest.mark.parametrize("gone", [slice(80, 90), slice(164, 168)], ids=["before", "since"])
def test_rows_unlearned_in_the_middle_of_a_build_never_come_back(gone):
    warm = learn(model(solver="dense"), 0, 168)
    assert builds(warm)
    warm.unlearn(X[gone], Y[gone])
    learn(warm, 168, 240)
    assert not builds(warm)
    rest = np.delete(np.arange(240), gone)
    scratch = FTLRegressor(warm.encoder_, ridge=1e-3, solver="dense").fit(X[rest], Y[rest])
    np.testing.assert_allclose(warm.predict(X), scratch.predict(X), atol=1e-7)


@pytest.mark.usefixtures("slow")
def test_merging_in_the_middle_of_a_build():
    merged = learn(model(), 0, 164).merge(learn(model(), 200, 240))
    assert not builds(merged)
    assert merged.n_samples_seen_ == 204
    whole = FTLRegressor(merged.encoder_, ridge=1e-3)
    whole.fit(np.r_[X[:164], X[200:240]], np.r_[Y[:164], Y[200:240]])
    np.testing.assert_allclose(memory(merged).A, memory(whole).A, rtol=1e-8, atol=1e-8)


@pytest.mark.usefixtures("slow")
def test_a_build_that_is_interrupted_goes_on(monkeypatch):
    warm, twin = learn(model(), 0, 160), learn(model(), 0, 160)
    real, calls = losse.ftl.build.Leader.building, []

    def interrupted(*arguments):
        calls.append(arguments)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return real(*arguments)

    monkeypatch.setattr(losse.ftl.build.Leader, "building", interrupted)
    n = 160
    while n < 240:
        before = warm.n_samples_seen_
        try:
            learn(warm, n, n + 4)
        except KeyboardInterrupt:
            assert warm.n_samples_seen_ == before
            continue
        n += 4
    assert len(calls) > 1
    assert_identical(warm, learn(twin, 160, 240))


@pytest.mark.usefixtures("slow")
def test_a_source_of_past_rows_and_those_since():
    seen = []

    def source():
        return X[: seen[-1]], Y[: seen[-1]]

    encoder = AdaptiveEncoder(6, 3, n_stages=1, warm_up=60)
    warm = FTLRegressor(encoder, ridge=1e-3, past=source)
    for start in range(0, 240, 4):
        seen.append(start + 4)
        warm.partial_fit(X[start : start + 4], Y[start : start + 4])
    assert warm._learner._built == 120 or builds(warm)
    scratch = learn(FTLRegressor(warm.encoder_, ridge=1e-3), 0, 240)
    np.testing.assert_allclose(memory(warm).A, memory(scratch).A, rtol=1e-8, atol=1e-8)


@pytest.mark.usefixtures("slow")
@pytest.mark.parametrize("n", [84, 90, 96, 99, 102])
def test_an_inverse_made_beside_the_samples(n, tmp_path):
    """D = 147: from 73 samples on, an inverse is made. Copies go on, and all are leaders."""
    encoder = LosseEncoder(3, 6, 2, scaling=(-3, 3)).fit(X)
    beside = learn(FTLRegressor(encoder, solver="exact", ridge=1e-3), 0, n, 3)
    beside.save(tmp_path / "model")
    loaded = FTLRegressor.load(tmp_path / "model")
    exact = FTLRegressor(encoder, solver="dense", ridge=1e-3)
    for start in range(n, 150, 3):
        for each in (beside, loaded):
            learn(each, start, start + 3, 3)
        assert_identical(beside, loaded)
    exact.fit(X[:150], Y[:150])
    error = np.abs(beside.predict(X) - exact.predict(X)).max()
    assert error < 0.1 * np.abs(exact.predict(X)).max()
    objective = [_objective(each, 150) for each in (beside, exact)]
    assert objective[0] <= 1.01 * objective[1]


def _objective(model, n):
    errors = ((Y[:n] - model.predict(X[:n])) ** 2).sum()
    return errors + 1e-3 * n * (model.weights_**2).sum()


@pytest.mark.usefixtures("slow")
def test_rivals_are_made_one_after_the_other():
    encoder = LosseEncoder(3, 6, 2, scaling=(-3, 3)).fit(X)
    auto = FTLRegressor(encoder, solver="exact")
    made = []
    for start in range(240):
        auto.partial_fit(X[start : start + 1], Y[start : start + 1])
        made.append(auto._learner._leader._selector._made)
    steps = np.diff(made)
    assert steps.max() <= 2  # the one at hand comes with the last that is made
    assert max(made) == len(losse.ftl.ridge_selector.WIDE)
    assert auto.ridge_ != 1e-3


@pytest.mark.usefixtures("slow")
def test_rows_that_come_together_are_learned_together_while_rivals_are_made():
    encoder = LosseEncoder(3, 6, 2, scaling=(-3, 3)).fit(X)
    auto = FTLRegressor(encoder, solver="exact")
    learn(auto, 0, 60, 10)
    learned = patch.object(ExactSolver, "learn", autospec=True, side_effect=ExactSolver.learn)
    made = []
    with learned as calls:
        for start in range(60, 120, 10):
            learn(auto, start, start + 10, 10)
            made.append(auto._learner._leader._selector._made)
    sizes = [len(call.args[1]) for call in calls.call_args_list]
    assert sizes == [4, 6, 10, 10, 10, 10, 10]  # the first review is after 64 rows
    assert max(np.diff(made)) > 1


def test_a_step_in_parts_is_one_for_all_rows_learned_meanwhile():
    """P R while P follows rows, in parts: that of P as it is in the end."""
    rng = np.random.default_rng(0)
    memory, D = SquareMemory(120, 2, "float64"), 120
    first, later = rng.normal(size=(300, D)), rng.normal(size=(PARTS - 1, 1, D))
    memory.add(DenseFeatures(first), aligned((300, 8)) + 1.0, np.ones(300))
    inverse = TrackedInverse(memory, 1e-2)
    inverse.rebuild()
    R = rng.normal(size=(D, 8))
    W = aligned((D, 8))
    descent = Descent(W, R.copy(), inverse.ridge * memory.total, 1e-9)
    for rows in later:
        inverse.approach(descent, 1)
        inverse._correction = descent  # which P then tells of its changes
        inverse.follow_only(DenseFeatures(rows))
    inverse.approach(descent, 1)
    A = first.T @ first + sum(rows.T @ rows for rows in later)
    direction = np.linalg.solve(A + inverse._own_lambda * np.eye(D), R)
    ratios = W / direction
    np.testing.assert_allclose(ratios, np.tile(ratios[0], (D, 1)), rtol=1e-6)


@pytest.mark.parametrize("size", [1, 5, 20])
def test_rows_enter_the_inverse_little_by_little(size, tmp_path, monkeypatch):
    monkeypatch.setattr(losse.ftl.deferred, "MANY", 16)
    encoder = LosseEncoder(3, 6, 2, scaling=(-3, 3)).fit(X)
    model = learn(FTLRegressor(encoder, solver="exact", ridge=1e-3), 0, 120, size)
    model.save(tmp_path / "model")
    loaded = FTLRegressor.load(tmp_path / "model")
    entered = set()
    for start in range(120, 240, size):
        for each in (model, loaded):
            learn(each, start, start + size, size)
        entered.add(model._learner._leader._solver._follower._inverse._entered)
    assert_identical(model, loaded)
    assert len(entered) > 1 or size == 20
    exact = FTLRegressor(encoder, solver="dense", ridge=1e-3).fit(X, Y)
    assert _objective(model, 240) <= 1.01 * _objective(exact, 240)
    model.unlearn(X[:8], Y[:8])  # which pushes all that is pending
    exact.unlearn(X[:8], Y[:8])
    np.testing.assert_allclose(model.predict(X), exact.predict(X), atol=1e-5)


@pytest.mark.parametrize("n", [64, 500, 5000, 40_000])
def test_rows_that_test_ridges_come_from_all_over(n):
    quarters = [part.mean() for part in np.array_split(set_apart(n), 4)]
    assert min(quarters) > 0.0
    assert max(quarters) < 0.4
