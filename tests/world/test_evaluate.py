"""What the diagnostics say about models whose errors are known."""

import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

from losse.world import LosseWorldModel, Transitions, evaluate
from losse.world.evaluation import change_error_after, one_step_errors
from tests.world.test_model import Recorder

LINE = Box(-np.inf, np.inf, (2,), dtype=np.float64)


class Drifting(Recorder):
    """Knows the way (one to the right), but is wrong by ``error`` in the second number."""

    error = 0.0
    end = 0.0

    def _predict(self, states, actions):
        n = len(states)
        return np.column_stack([actions * 1.0, np.full(n, self.error), states[:, 0],
                                np.full(n, self.end)])  # fmt: skip


def walk(n, seed=0):
    """Steps of 0 or 1 along the first number; the reward is where one was."""
    actions = np.random.default_rng(seed).integers(0, 2, n)
    places = np.concatenate([[0], np.cumsum(actions)])
    states = np.column_stack([places, np.zeros(n + 1)]).astype(float)
    return states[:-1], actions, states[:-1, 0], states[1:], np.zeros(n, bool)


def drifting(error=0.0, end=0.0):
    model = Drifting(LINE, Discrete(2))
    model.error, model.end = error, end
    return model


def test_a_perfect_model_has_no_error():
    result = evaluate(drifting(), *walk(50), horizons=(1, 3, 7))
    assert not result.rmse.any()
    assert not result.reward_rmse.any()
    assert not result.false_terminations.any()
    assert not result.nmse[:, 0].any()
    assert np.isnan(result.nmse[:, 1]).all()  # never changes: nothing to relate an error to
    assert np.isnan(result.missed_terminations).all()  # there was none to miss
    assert result.count.tolist() == [50, 48, 44]


def test_errors_add_up_along_the_way():
    result = evaluate(drifting(0.1), *walk(50), horizons=(4, 1, 2))
    assert result.horizons.tolist() == [1, 2, 4]
    np.testing.assert_allclose(result.rmse[:, 1], [0.1, 0.2, 0.4])
    assert not result.rmse[:, 0].any()


def test_no_change_is_the_yardstick():
    model = Recorder(LINE, Discrete(2))  # predicts that nothing changes
    data = walk(2000)
    result = evaluate(model, *data, horizons=(1, 5))
    np.testing.assert_array_equal(result.rmse, result.persistence)
    change = data[3][:, 0] - data[0][:, 0]
    np.testing.assert_allclose(result.nmse[0, 0], (change**2).mean() / change.var())


@pytest.mark.parametrize("way", ["by the data", "terminated", "done"])
def test_chains_do_not_cross_episodes(way):
    parts = [walk(10, seed) for seed in (1, 2, 3)]
    obs, actions, rewards, next_obs, terminated = map(np.concatenate, zip(*parts, strict=True))
    ends = np.arange(30) % 10 == 9
    model = drifting()
    if way == "by the data":
        result = evaluate(model, obs, actions, rewards, next_obs, terminated, horizons=[4])
    elif way == "terminated":
        result = evaluate(model, obs, actions, rewards, next_obs, ends, horizons=[4])
    else:
        result = evaluate(
            model, obs, actions, rewards, next_obs, terminated, horizons=[4], done=ends
        )
    assert result.count.tolist() == [21]
    assert not result.rmse.any()


def test_terminations_are_told_apart():
    obs, actions, rewards, next_obs, _ = walk(20)
    terminated = np.arange(20) % 5 == 4
    always = evaluate(drifting(end=1.0), obs, actions, rewards, next_obs, terminated, horizons=[1])
    assert (always.missed_terminations[0], always.false_terminations[0]) == (0, 1)
    never = evaluate(drifting(), obs, actions, rewards, next_obs, terminated, horizons=[1])
    assert (never.missed_terminations[0], never.false_terminations[0]) == (1, 0)


def test_horizons_longer_than_every_episode_have_no_starts():
    result = evaluate(drifting(), *walk(5), horizons=[3, 9])
    assert result.count.tolist() == [3, 0]
    assert np.isnan(result.rmse[1]).all()
    assert "-" in result.table()


def test_table_and_plot():
    result = evaluate(drifting(0.1), *walk(30), horizons=(1, 2), names=["place", "drift"])
    lines = result.table().splitlines()
    assert lines[0].startswith("| ")
    assert len({line.count("|") for line in lines}) == 1
    drift = next(line for line in lines if line.startswith("| drift"))
    assert drift.split(" | ")[2] == "0.1"
    figure = result.plot()
    left, _ = figure.axes
    assert [label.get_text() for label in left.get_xticklabels()] == ["place", "drift"]


def test_it_changes_nothing_and_needs_something():
    model = drifting()
    evaluate(model, *walk(5))
    assert model.n_transitions == 0
    with pytest.raises(ValueError, match="horizons is empty"):
        evaluate(model, *walk(5), horizons=())
    with pytest.raises(ValueError, match="horizons=0 must be"):
        evaluate(model, *walk(5), horizons=(1, 0))
    with pytest.raises(ValueError, match="obs is empty"):
        evaluate(model, *walk(0))
    with pytest.raises(ValueError, match=r"done has shape \(2,\)"):
        evaluate(model, *walk(5), done=[True, False])
    with pytest.raises(ValueError, match="names has 1 entries"):
        evaluate(model, *walk(5), names=["x"])


def test_errors_of_one_step_in_a_few_numbers():
    happened = Transitions(*walk(50))
    errors = one_step_errors(drifting(error=0.3), happened)
    moved = happened.actions.mean()
    assert errors["state_error"] == pytest.approx(np.sqrt(0.3**2 / 2))
    assert errors["change_error"] == pytest.approx(0.3 / np.sqrt(moved))
    assert errors["reward_error"] == errors["termination_error"] == 0.0
    assert one_step_errors(drifting(end=1.0), happened)["termination_error"] == 1.0


def test_without_a_change_no_error_is_relative_to_it():
    happened = Transitions(*walk(50))
    errors = one_step_errors(drifting(), happened.take(happened.actions == 0))
    assert sorted(errors) == ["reward_error", "state_error", "termination_error"]


def test_of_discrete_observations_the_share_that_is_wrong_counts():
    class Staying(Recorder):
        def _predict(self, states, actions):
            return np.zeros((len(states), self._n_targets))

    places, following = np.array([0, 1, 2, 2]), np.array([1, 1, 2, 0])
    happened = Transitions(places, np.zeros(4, int), np.zeros(4), following, np.zeros(4, bool))
    errors = one_step_errors(Staying(Discrete(3), Discrete(2)), happened)
    assert (errors["state_error"], errors["change_error"]) == (0.5, 1.0)


def test_errors_after_several_steps_survive_a_model_that_diverges():
    space = Box(-np.inf, np.inf, (1,), dtype=np.float64)

    class Diverging(LosseWorldModel):
        def _predict(self, states, actions):
            return np.column_stack([1e200 * (1 + states**2), np.zeros((len(states), 2))])

    model = Diverging(space, Discrete(2))
    walk = np.arange(7.0)[:, None]
    happened = Transitions(walk[:-1], np.zeros(6, int), np.zeros(6), walk[1:], np.zeros(6, bool))
    assert change_error_after(model, happened, 5) is None
