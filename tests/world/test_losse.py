"""The world model on follow-the-leader regression."""

from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy

import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

from losse import AdaptiveEncoder, FTLRegressor, LosseEncoder
from losse.world import LosseWorldModel, Transitions
from tests.world.worlds import (
    BOUNDED,
    FOUR,
    MIXED,
    MOVES,
    PUSH,
    assert_identical,
    model_of,
    small,
    some,
    transitions,
)

SPACES = [BOUNDED, MIXED, Box(-np.inf, np.inf, (2,), dtype=np.float64)]


@pytest.mark.parametrize("space", SPACES, ids=["bounded", "mixed", "unbounded"])
@pytest.mark.parametrize(
    ("actions", "per_action"), [(FOUR, True), (FOUR, False), (PUSH, True)], ids=str
)
def test_it_learns_a_linear_system(space, actions, per_action):
    regressor = FTLRegressor(LosseEncoder(10, 5, 2), solver="dense", ridge=1e-7)
    model = LosseWorldModel(space, actions, regressor=regressor, per_action=per_action)
    data = transitions(2000, actions)
    for start in range(0, 2000, 400):
        model.update(*some(data, slice(start, start + 400)))
    test = transitions(500, actions, seed=1)
    next_obs, rewards, terminated = model.step(*test[:2])
    assert np.abs(next_obs - test[3]).mean() < 0.02
    assert np.abs(rewards - test[2]).mean() < 0.1
    assert (terminated == test[4]).mean() > 0.94


def test_discrete_observations_are_learned_exactly():
    """A ring of states: two actions go left and right, one state ends the episode."""
    states, actions = (grid.ravel() for grid in np.meshgrid(np.arange(12), [3, 4]))
    next_states = (states + 2 * actions - 7) % 12
    model = LosseWorldModel(Discrete(12, start=-6), Discrete(2, start=3))
    for rows in np.array_split(np.random.default_rng(0).permutation(np.tile(np.arange(24), 4)), 7):
        s, t = states[rows] - 6, next_states[rows] - 6
        model.update(s, actions[rows], s / 6, t, t == 0)
    obs, rewards, terminated = model.step(states - 6, actions)
    np.testing.assert_array_equal(obs, next_states - 6)
    np.testing.assert_array_equal(terminated, next_states == 6)
    assert np.abs(rewards - (states - 6) / 6).max() < 0.1


def test_choices_in_small_integers_are_learned():
    """With int8, the last choice less the first is beyond the largest number."""
    actions = np.arange(-100, 100)
    obs = np.zeros((200, 1))
    data = obs, actions, np.zeros(200), actions[:, None] / 100, np.zeros(200, bool)
    imagined = []
    for dtype in (np.int8, np.int64):
        model = LosseWorldModel(Box(-1, 1, (1,)), Discrete(200, start=-100), regressor=small())
        model.update(obs, actions.astype(dtype), *data[2:])
        imagined.append(model.step(obs, actions.astype(dtype))[0])
    np.testing.assert_allclose(imagined[0][:, 0], actions / 100, atol=1e-3)
    np.testing.assert_array_equal(*imagined)


def test_one_model_per_action_equals_separate_regressors():
    data = transitions(200)
    model = model_of(seed=5)
    for start in range(0, 200, 7):
        model.update(*some(data, slice(start, start + 7)))
    obs, actions, rewards, next_obs, terminated = data
    targets = np.column_stack([next_obs - obs, rewards, terminated])
    scaling = (BOUNDED.low, BOUNDED.high)
    for k in range(4):
        rows = actions == k
        encoder = LosseEncoder(6, 5, 2, scaling=scaling, seed=5)
        alone = FTLRegressor(encoder, solver="sparse", ridge=1e-6).fit(obs[rows], targets[rows])
        imagined = model.step(obs, np.full(200, k))
        np.testing.assert_allclose(imagined[0] - obs, alone.predict(obs)[:, :2], atol=1e-9)
        np.testing.assert_allclose(imagined[1], alone.predict(obs)[:, 2], atol=1e-9)


@pytest.mark.parametrize("per_action", [True, False])
def test_the_warm_up_is_learned_again(per_action):
    """As if the scaling had been known from the start."""
    data = transitions(300)
    model = model_of(MIXED, per_action=per_action, warm_up=100)
    for start in range(0, 300, 8):
        model.update(*some(data, slice(start, start + 8)))
        assert model.scaled == (start + 8 >= 100)
    assert model.n_transitions == 300
    other = model.like()
    other.update(*data)
    # Predictions before learning were those of other scalings.
    assert_identical(model, other, but=("prequential", "intervals"))


def test_the_scaling_freezes_after_the_warm_up():
    model = model_of(MIXED, warm_up=50)
    data = transitions(60)
    model.update(*data)
    factor = model.inputs.scaling.factor.copy()
    far = some(data, slice(10))
    model.update(far[0] * [1, 1000], *far[1:])
    np.testing.assert_array_equal(model.inputs.scaling.factor, factor)


def test_a_model_predicts_from_the_first_transition():
    model = model_of(MIXED)
    obs, rewards, terminated = model.step([[0.5, 20.0]], [0])
    assert (obs.tolist(), rewards.tolist(), terminated.tolist()) == ([[0.5, 20.0]], [0.0], [False])
    for _ in range(3):
        model.update([[0.5, 20.0]], [0], [2.0], [[0.4, 30.0]], [True])
    obs, rewards, terminated = model.step([[0.5, 20.0], [0.5, 20.0]], [0, 1])
    np.testing.assert_allclose(obs, [[0.4, 30.0], [0.5, 20.0]], rtol=1e-3)
    np.testing.assert_allclose(rewards, [2.0, 0.0], rtol=1e-3)
    assert terminated.tolist() == [True, False]


def test_batches_do_not_matter():
    data = transitions(120)
    whole, rows = model_of(), model_of()
    whole.update(*data)
    for r in range(120):
        rows.update(*some(data, slice(r, r + 1)))
    np.testing.assert_allclose(whole.step(*data[:2])[0], rows.step(*data[:2])[0], atol=1e-12)


def test_the_unit_of_the_reward_does_not_change_the_state():
    data = transitions(400)
    models = []
    for unit in (1e-4, 1e4):
        model = model_of(regressor=small("exact", ridge=1e-5))
        for start in range(0, 400, 25):
            obs, actions, rewards, next_obs, ended = some(data, slice(start, start + 25))
            model.update(obs, actions, unit * rewards, next_obs, ended)
        models.append(model)
    first, second = (model.step(*data[:2]) for model in models)
    change = np.abs(data[3] - data[0]).mean()
    assert np.abs(first[0] - second[0]).mean() < 0.01 * change
    np.testing.assert_allclose(first[1] * 1e8, second[1], rtol=0.05, atol=0.02 * 1e4)


def test_it_is_sure_where_it_has_been():
    rng = np.random.default_rng(0)
    obs = rng.uniform(-0.9, 0.0, (800, 2))
    actions = np.arange(800) % 3
    next_obs = obs + MOVES[actions] + rng.normal(scale=0.01, size=(800, 2))
    model = model_of(regressor=small(ridge=1e-4))
    model.update(obs, actions, np.zeros(800), next_obs, np.zeros(800))
    queries = [[-0.4, -0.4], [0.8, 0.8], [-0.4, -0.4]]
    *imagined, std = model.step(queries, [0, 0, 3], return_std=True)
    assert std.shape == (3, 2)
    assert (np.abs(std[0] - 0.01) < 0.003).all()  # the noise
    assert (std[1] > 2 * std[0]).all()
    assert np.isinf(std[2]).all()  # an action never taken
    for part, same in zip(imagined, model.step(queries, [0, 0, 3]), strict=True):
        np.testing.assert_array_equal(part, same)


def test_settings_that_make_no_sense_are_refused():
    for regressor in ("best", FTLRegressor().fit(np.eye(9), np.eye(9))):
        with pytest.raises(ValueError, match=r"regressor=.* is (not known|fitted)"):
            model_of(regressor=regressor)
    with pytest.raises(TypeError, match="regressor=3 is not an FTLRegressor"):
        model_of(regressor=3)
    with pytest.raises(ValueError, match="solver='fast' is not known"):
        model_of(regressor=FTLRegressor(solver="fast"))
    with pytest.raises(ValueError, match="n_grids=0 must be"):
        model_of(regressor=FTLRegressor(LosseEncoder(n_grids=0)))
    with pytest.raises(ValueError, match="warm_up=0 must be"):
        model_of(warm_up=0)
    with pytest.raises(ValueError, match="seed=-1 must be"):
        model_of(seed=-1)


def test_the_seed_draws_another_encoder_and_the_pattern_stays():
    pattern = small()
    one, other = (model_of(regressor=pattern, seed=seed) for seed in (0, 1))
    data = transitions(50)
    for model in (one, other):
        model.update(*data)
    assert (one.step(*data[:2])[1] != other.step(*data[:2])[1]).any()
    assert pattern.encoder.seed == 0
    assert pattern.encoder.scaling == "standard"


def test_a_regressor_without_encoder_is_not_scaled_by_a_single_row():
    model = model_of(actions=Discrete(1), regressor=FTLRegressor(solver="sparse"))
    data = transitions(60, Discrete(1))
    for row in range(60):
        model.update(*some(data, slice(row, row + 1)))
    assert np.abs(model.step(*data[:2])[0] - data[3]).max() < 0.01


def test_several_threads_may_use_one_model():
    model = model_of(MIXED, warm_up=100)
    data = transitions(400)

    def work(k):
        for start in range(100 * k, 100 * k + 100, 5):
            rows = some(data, slice(start, start + 5))
            model.update(*rows)
            model.step(*rows[:2])

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    assert model.n_transitions == 400
    learned = sum(one.n_samples for one in model.learners.started.values())
    assert learned == 400


def test_the_papers_settings():
    discrete = model_of(regressor="paper").learners.settings
    assert (discrete.encoder.n_grids, discrete.solver, discrete.ridge) == (30, "sparse", 1e-5)
    assert model_of(actions=PUSH, regressor="paper").learners.settings.encoder.n_grids == 300


def test_memory_that_is_refused_leaves_all_models_as_they_were(monkeypatch):
    model = model_of()
    data = transitions(100)
    model.update(*some(data, data[1] == 0))

    def refuse(*arguments):
        raise MemoryError("no room")

    monkeypatch.setattr("losse.ftl.solvers.require_memory", refuse)
    before = model.step(*data[:2])
    with pytest.raises(MemoryError):
        model.update(*data)  # action 0 has its model, the others need one
    for part, same in zip(model.step(*data[:2]), before, strict=True):
        np.testing.assert_array_equal(part, same)
    assert model.n_transitions == (data[1] == 0).sum()


@pytest.mark.parametrize(("scale", "shift"), [(1e-6, 0.0), (1.0, 1e3), (1e3, 1e6)])
def test_units_of_rewards_and_states_are_no_matter(scale, shift):
    """Rewards far from zero, and the changes of states in other units, are predicted as well."""
    rng = np.random.default_rng(0)
    obs, actions = rng.uniform(-1, 1, (200, 3)), rng.uniform(-1, 1, (200, 1))
    change = 0.1 * np.sin(2 * obs) * actions
    rewards = obs[:, 0] * actions[:, 0]
    found = []
    for a, c in ((1.0, 0.0), (scale, shift)):
        space = Box(-a, a, (3,), dtype=np.float64)
        model = LosseWorldModel(space, Box(-1, 1, (1,)), termination="never")
        for rows in (slice(50), slice(50, 200)):
            model.update(
                a * obs[rows], actions[rows], a * rewards[rows] + c, a * (obs + change)[rows],
                np.zeros(len(obs[rows]), dtype=bool),
            )  # fmt: skip
        next_obs, reward, _ = model.step(a * obs[:50], actions[:50])
        found.append((next_obs / a, (reward - c) / a))
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(other, one, atol=1e-3)


def test_the_scaling_follows_inputs_that_leave_their_first_range():
    """As an agent that learns to run: later states are far from the first 500."""
    space = Box(-np.inf, np.inf, (3,), np.float64)
    rng = np.random.default_rng(0)
    speed = np.concatenate([np.zeros(600), np.full(1200, 30.0)])
    obs = rng.normal(size=(1800, 3)) + speed[:, None] * [1, 0, 0]
    push = rng.uniform(-1, 1, (1800, 1))
    next_obs = 0.9 * obs + push
    model = LosseWorldModel(space, Box(-1, 1, (1,)), termination="never")
    for part in np.split(np.arange(1800), 18):
        columns = (obs[part], push[part], obs[part, 0], next_obs[part], np.zeros(len(part), bool))
        model.update(*columns)
    there = rng.normal(size=(200, 3)) + np.array([30, 0, 0])
    found, rewards, _ = model.step(there, np.zeros((200, 1)))
    assert np.abs(found - 0.9 * there).max() < 0.3
    assert np.abs(rewards - there[:, 0]).max() < 0.3


@pytest.mark.parametrize("actions", [FOUR, PUSH], ids=str)
def test_rows_kept_elsewhere_build_encoders_after_the_warm_up(actions):
    space = Box(-np.inf, np.inf, (2,), dtype=np.float64)
    data = transitions(500, actions)
    encoder = AdaptiveEncoder(4, 4, n_stages=1, warm_up=40)

    def learned(source=None, **options):
        regressor = FTLRegressor(encoder, ridge=1e-3, **options)
        model = LosseWorldModel(space, actions, regressor=regressor)
        if source is not None:
            model.use_past(source)
        for start in range(0, 500, 20):
            model.update(*some(data, slice(start, start + 20)))
        return model

    def source(n):
        asked.append(n)
        return Transitions(*some(data, slice(n)))

    def axes(model):
        return np.array([learner["axes"] for learner in model.insight()])

    asked = []
    told, keeping, alone = learned(source), learned(past=1000), learned()
    test = transitions(50, actions, seed=1)[:2]
    expected = keeping.step(*test)[0]
    assert np.allclose(told.step(*test)[0], expected, rtol=1e-6, atol=1e-6)
    same, other = (axes(model) - axes(keeping) for model in (told, alone))
    assert np.abs(same).max() < 1e-9
    assert np.abs(other).max() > 1e-3
    assert len(asked) < 20  # not for every update
    assert_identical(learned(lambda n: None), alone)
    assert deepcopy(told).past(500) is None
    assert len(told.past(500)) == 500


def test_encoders_that_do_not_learn_from_targets_ask_for_no_past():
    asked = []
    model = LosseWorldModel(BOUNDED, FOUR, regressor=small())
    model.use_past(asked.append)
    for start in range(0, 100, 20):
        model.update(*some(transitions(100, FOUR), slice(start, start + 20)))
    assert not asked
