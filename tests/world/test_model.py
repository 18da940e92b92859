"""What every world model checks, whatever it learns with."""

import copy
import pickle

import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

from losse.world import PartlyKnown, WorldModel
from tests.world.worlds import (
    BOUNDED,
    FOUR,
    MIXED,
    PUSH,
    assert_identical,
    model_of,
    some,
    transitions,
)


class Recorder(WorldModel):
    """Learns nothing, and keeps what it was given."""

    def _learn(self, states, actions, targets):
        self.learned = states, actions, targets

    def _predict(self, states, actions):
        self.asked = states, actions
        return np.zeros((len(states), self._n_targets))


def test_targets_are_change_reward_and_termination():
    data = transitions(30)
    model = Recorder(BOUNDED, FOUR)
    model.update(*data)
    states, actions, targets = model.learned
    np.testing.assert_array_equal(states, data[0])
    np.testing.assert_array_equal(actions, data[1])
    np.testing.assert_array_equal(targets[:, :2], data[3] - data[0])
    np.testing.assert_array_equal(targets[:, 2], data[2])
    np.testing.assert_array_equal(targets[:, 3], data[4])
    assert model.n_transitions == 30


@pytest.mark.parametrize("termination", ["never", lambda obs, actions, next_obs: obs[:, 0] > 0])
def test_what_is_known_is_not_learned(termination):
    model = Recorder(
        BOUNDED, FOUR, termination=termination, reward=lambda obs, actions, next_obs: actions * 2.0
    )
    data = transitions(10)
    model.update(*data)
    assert model.learned[2].shape == (10, 2)
    _, rewards, terminated = model.step(data[0], data[1])
    np.testing.assert_array_equal(rewards, data[1] * 2.0)
    expected = np.zeros(10, bool) if termination == "never" else data[0][:, 0] > 0
    np.testing.assert_array_equal(terminated, expected)


def test_of_a_partly_known_reward_the_rest_is_learned():
    def cost(obs, actions, next_obs):
        return -0.5 * actions[:, 0] ** 2 + next_obs[:, 1]

    model = Recorder(BOUNDED, PUSH, reward=PartlyKnown(cost), termination="never")
    data = transitions(10, PUSH)
    model.update(*data)
    rest = model.learned[2][:, 2]
    np.testing.assert_array_equal(rest, data[2] - cost(*data[:2], data[3]))
    next_obs, rewards, _ = model.step(*data[:2])  # predicts no rest
    np.testing.assert_array_equal(rewards, cost(*data[:2], next_obs))


def test_a_wrong_part_of_the_reward_is_refused_before_anything_is_learned():
    model = Recorder(BOUNDED, PUSH, reward=PartlyKnown(lambda obs, *_: obs))
    data = transitions(10, PUSH)
    for call in (lambda: model.update(*data), lambda: model.step(*data[:2])):
        with pytest.raises(ValueError, match=r"the result of reward.part has shape \(10, 2\)"):
            call()
    assert model.n_transitions == 0
    with pytest.raises(TypeError, match=r"part=0.1 must be a function"):
        PartlyKnown(0.1)
    with pytest.raises(ValueError, match=r"termination=PartlyKnown.* is not known"):
        Recorder(BOUNDED, PUSH, termination=PartlyKnown(lambda obs, *_: obs[:, 0]))


def test_spaces_are_flattened_and_counted_from_zero():
    model = Recorder(Box(0, 9, (2, 2), dtype=np.uint8), Discrete(3, start=5))
    obs = np.arange(8, dtype=np.uint8).reshape(2, 2, 2)
    model.update(obs, [5, 7], [0, 0], obs[::-1], [0, 1])
    assert model.learned[0].shape == (2, 4)
    assert model.learned[1].tolist() == [0, 2]
    assert model.learned[2][:, 0].tolist() == [4, -4]  # no wrapping of unsigned integers
    next_obs, _, _ = model.step(obs, [6, 6])
    np.testing.assert_array_equal(next_obs, obs)
    assert next_obs.dtype == np.uint8
    discrete = Recorder(Discrete(4, start=1), PUSH)
    assert discrete.step([1, 4], [[0.5], [0.5]])[0].tolist() == [1, 4]


def test_next_observations_stay_within_the_bounds():
    class Jumping(Recorder):
        def _predict(self, states, actions):
            return np.full((len(states), self._n_targets), 1e3)

    obs, _, terminated = Jumping(MIXED, FOUR).step([[0.0, 0.0]], [1])
    assert obs.tolist() == [[1.0, 1000.0]]
    assert terminated.tolist() == [True]


def test_no_rows_are_no_change():
    model = Recorder(BOUNDED, FOUR)
    model.update(*some(transitions(5), slice(0)))
    assert model.n_transitions == 0
    assert not hasattr(model, "learned")
    next_obs, rewards, terminated = model.step(np.empty((0, 2)), [])
    assert (next_obs.shape, rewards.shape, terminated.shape) == ((0, 2), (0,), (0,))


GOOD = transitions(4)
BAD = [
    (0, GOOD[0][0], ValueError, r"obs has shape \(2,\), expected \(n, 2\).*obs\[None\]"),
    (0, GOOD[0][:, :1], ValueError, r"obs has shape \(4, 1\)"),
    (0, [[0, 1], [0, np.nan], [0, 0], [0, 0]], ValueError, r"obs contains nan at \(1, 1\)"),
    (2, np.ma.masked_array(np.zeros(4), [0, 1, 0, 0]), ValueError, "rewards has masked entries"),
    (0, [["a", "b"]] * 4, TypeError, "obs is not an array of numbers"),
    (0, GOOD[0] + 1j, TypeError, "obs is not an array of numbers"),
    (1, [0, 1, 2, 4], ValueError, "actions contains 4 in row 3, outside Discrete"),
    (1, [0, 1, 2, -1], ValueError, "actions contains -1"),
    (1, [0, 1], ValueError, "actions has 2 rows, but obs has 4"),
    (2, [0, 1, np.inf, 0], ValueError, r"rewards contains inf at \(2,\)"),
    (2, [1e60, 1e90, 1e200, 0], ValueError, r"rewards contains 1e\+200"),
    (2, [[0], [1], [2], [3]], ValueError, r"rewards has shape \(4, 1\), expected \(4,\)"),
    (3, GOOD[3][:3], ValueError, "next_obs has 3 rows, but obs has 4"),
    (3, np.full((4, 2), -np.inf), ValueError, "next_obs contains -inf"),
    (4, [0, 1, 0.5, 1], ValueError, "terminated contains values other"),
    (4, [True], ValueError, r"terminated has shape \(1,\)"),
]  # fmt: skip


@pytest.mark.parametrize("space", [BOUNDED, MIXED], ids=["bounded", "warming up"])
@pytest.mark.parametrize(("place", "value", "error", "text"), BAD, ids=[case[3] for case in BAD])
def test_a_refused_batch_leaves_the_model_as_it_was(space, place, value, error, text):
    model = model_of(space)
    model.update(*transitions(20))
    twin = copy.deepcopy(model)
    wrong = list(GOOD)
    wrong[place] = value
    with pytest.raises(error, match=text):
        model.update(*wrong)
    assert_identical(model, twin)
    if place < 2:
        with pytest.raises(error, match=text):
            model.step(*wrong[:2])


def test_an_environment_of_other_spaces_is_refused():
    model = model_of(BOUNDED, PUSH)
    with pytest.raises(ValueError, match=r"obs has shape \(1, 3\)"):
        model.step(np.zeros((1, 3)), np.zeros((1, 1)))
    with pytest.raises(ValueError, match=r"actions has shape \(1,\), expected \(n, 1\)"):
        model.step(np.zeros((1, 2)), [0])


def test_unknown_choices_are_refused():
    with pytest.raises(ValueError, match='termination=None is not known: use "learned", "never"'):
        Recorder(BOUNDED, FOUR, termination=None)
    with pytest.raises(ValueError, match='reward="never" is not known'.replace('"', "'")):
        Recorder(BOUNDED, FOUR, reward="never")
    with pytest.raises(TypeError, match="observation_space=None is not supported"):
        Recorder(None, FOUR)


def test_functions_must_answer_for_every_row():
    model = Recorder(BOUNDED, FOUR, reward=lambda *_: 0.0)
    with pytest.raises(ValueError, match=r"the result of reward has shape \(\), expected \(4,\)"):
        model.step(*GOOD[:2])
    model = Recorder(BOUNDED, FOUR, termination=lambda obs, *_: obs[:, 0])
    with pytest.raises(ValueError, match="the result of termination contains values other"):
        model.step(*GOOD[:2])


def test_a_model_without_uncertainty_says_so():
    with pytest.raises(NotImplementedError, match="Recorder does not know how sure it is"):
        Recorder(BOUNDED, FOUR).step(*GOOD[:2], return_std=True)


def test_copies_and_pickles_are_models_of_their_own():
    model = model_of()
    model.update(*GOOD)
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert_identical(other, model)
        other.update(*GOOD)
        assert (other.n_transitions, model.n_transitions) == (8, 4)
