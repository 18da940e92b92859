"""What a plan is judged by: rewards, ends, values, and how sure the model is."""

import numpy as np
import pytest
from gymnasium import spaces

from losse.planning import CEM, ICEM, MPPI, BeamSearch, Objective, RandomShooting
from losse.world import LosseWorldModel, WorldModel
from tests.planning.worlds import Diverging, LinearModel


class Walk(WorldModel):
    """x grows by the action; the reward is the action; it ends beyond 3; it is unsure beyond 2."""

    def __init__(self, actions=None):
        line = spaces.Box(-np.inf, np.inf, (1,), dtype=np.float64)
        super().__init__(line, actions or spaces.Box(-1.0, 1.0, (1,), dtype=np.float64))

    def _learn(self, states, actions, targets):
        pass

    def _predict(self, states, actions):
        return np.column_stack([actions, actions, states + actions > 3])

    def _predict_std(self, states, actions):
        targets = self._predict(states, actions)
        return targets, np.where(np.abs(states + actions) > 2, 5.0, 0.5) * np.ones((1, 3))


def sequences(*rows):
    return np.array(rows, dtype=np.float64)[:, :, None]


def returns(objective, *rows):
    return objective.returns(Walk(), [0.0], sequences(*rows)).tolist()


def test_the_learned_reward_is_summed_and_discounted():
    assert returns(Objective(), [1, 0.5, 0]) == [1.5]
    assert returns(Objective(discount=0.5), [1, 0.5, 1]) == [1.5]


def test_a_reward_function_decides():
    wish = Objective(reward=lambda obs, actions, next_obs: 10 * obs[:, 0] + next_obs[:, 0])
    assert returns(wish, [1, 1, -1]) == [1 + (10 + 2) + (20 + 1)]


def test_nothing_is_gained_after_the_end():
    long = [1, 1, 1, 1, 1, 1]  # ends with the fourth step
    assert returns(Objective(), long) == [4.0]
    assert returns(Objective(termination="never"), long) == [6.0]
    early = Objective(termination=lambda obs, actions, next_obs: next_obs[:, 0] >= 2)
    assert returns(early, long) == [2.0]


def test_the_end_of_the_horizon_has_a_value_unless_the_episode_is_over():
    wish = Objective(value=lambda obs: 100 * obs[:, 0], discount=0.5)
    assert returns(wish, [1, 0]) == [1 + 0.25 * 100]
    assert returns(wish, [1, 1, 1, 1]) == [1 + 0.5 + 0.25 + 0.125]


def test_a_future_that_the_model_is_unsure_about_counts_as_the_worst():
    wish = Objective(max_std=1.0)
    # The first is stopped before its third step; the worst reward that was imagined is -1.
    assert returns(wish, [1, 1, 1, 1], [-1, 0, 0, 0]) == [1 + 1 - 1 - 1, -1.0]


def test_a_stopped_future_has_the_worst_value_too():
    wish = Objective(max_std=1.0, value=lambda obs: obs[:, 0] + 10)
    assert returns(wish, [1, 1, 1], [-1, 0, 0]) == [1 + 1 - 1 + 9, -1 + 9]


def test_curiosity_rewards_what_is_not_known():
    assert returns(Objective(curiosity=2.0), [1, 1, 1]) == [3 + 2 * (0.5 + 0.5 + 5)]
    assert returns(Objective(curiosity=-1.0), [1, 1, 1]) == [3 - (0.5 + 0.5 + 5)]
    assert returns(Objective(curiosity=1.0, std_scale=[0.5]), [1, 0]) == [1 + 1 + 1]


def test_a_model_that_knows_nothing_is_infinitely_interesting_but_finite():
    model = LosseWorldModel(spaces.Box(0, 1, (1,)), spaces.Discrete(2))
    gained = Objective(curiosity=1.0).returns(model, [0.5], np.zeros((2, 3), dtype=int))
    assert np.isfinite(gained).all()
    assert (gained > 1e5).all()


def test_models_that_do_not_know_how_sure_they_are_are_refused():
    with pytest.raises(NotImplementedError, match="does not know how sure it is"):
        Objective(max_std=1.0).returns(LinearModel(), np.zeros(2), np.zeros((2, 3, 1)))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"reward": "learned"}, "reward='learned' must be a function"),
        ({"value": 3.0}, "value=3.0 must be a function"),
        ({"termination": "always"}, "termination='always'"),
        ({"discount": 0.0}, "discount=0.0"),
        ({"discount": 1.1}, "discount=1.1"),
        ({"curiosity": np.nan}, "curiosity=nan"),
        ({"max_std": 0.0}, "max_std=0.0"),
        ({"max_std": [1.0, -1.0]}, "max_std"),
        ({"std_scale": 0.0}, "std_scale=0.0"),
    ],
)
def test_bad_options_are_refused(options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        Objective(**options)


@pytest.mark.parametrize("name", ["reward", "termination"])
@pytest.mark.parametrize(
    ("result", "message"),
    [
        (lambda obs, actions, next_obs: next_obs, r"shape \(4, 1\) for 4 rows: expected \(4,\)"),
        (lambda obs, actions, next_obs: 0.0, r"shape \(\) for 4 rows"),
        (lambda obs, actions, next_obs: np.full(4, np.nan), "not finite"),
        (lambda obs, actions, next_obs: ["a"] * 4, "expected numbers"),
    ],
)
def test_functions_of_the_wrong_shape_are_refused(name, result, message):
    wish = Objective(**{name: result})
    with pytest.raises((ValueError, TypeError), match=f"the function {name} returned.*{message}"):
        returns(wish, *np.zeros((4, 3)))


def test_futures_in_which_the_model_diverges_lose():
    gained = Objective().returns(Diverging(), [0.0, 0.0], sequences([1] * 20, [0] * 20))
    assert gained.tolist() == [-np.inf, 0.0]


@pytest.mark.parametrize("kind", [CEM, ICEM, MPPI, RandomShooting])
def test_planners_avoid_where_the_model_diverges(kind):
    towards = Objective(reward=lambda obs, actions, next_obs: actions[:, 0])
    _, plan = kind(12, 100)(Diverging(), [0.0, 0.0], towards)
    assert np.isfinite(plan.observations).all()
    assert np.isfinite(plan.value)


@pytest.mark.parametrize("kind", [CEM, ICEM, MPPI, RandomShooting])
def test_a_model_that_diverges_everywhere_is_reported(kind):
    with pytest.raises(FloatingPointError, match="the world model has diverged"):
        kind(3, 10)(Diverging(far=0.0), [0.0, 0.0])


def test_a_beam_avoids_where_the_model_diverges():
    class Cliff(Walk):
        def _predict(self, states, actions):
            targets = np.column_stack([actions, actions, np.zeros(len(states))]).astype(float)
            targets[states[:, 0] >= 2] = np.inf
            return targets

    _, plan = BeamSearch(6, 10)(Cliff(spaces.Discrete(2)), [0.0])
    assert plan.value == 2.0
