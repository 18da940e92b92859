"""Imagined episodes are chains of single steps."""

import numpy as np
import pytest

from losse.world import Rollout
from tests.world.test_model import Recorder
from tests.world.worlds import BOUNDED, FOUR, PUSH, model_of, small, transitions


@pytest.fixture(scope="module")
def model():
    model = model_of(regressor=small(ridge=1e-4))
    model.update(*transitions(1500))
    return model


def right(obs):
    return np.ones(len(obs), dtype=np.int64)


def test_one_step_is_a_step(model):
    obs = transitions(20, seed=3)[0]
    rollout = model.rollout(obs, right, 1)
    np.testing.assert_array_equal(rollout.obs, obs)
    np.testing.assert_array_equal(rollout.actions, right(obs))
    for part, expected in zip(
        (rollout.next_obs, rollout.rewards, rollout.terminated),
        model.step(obs, right(obs)),
        strict=True,
    ):
        np.testing.assert_array_equal(part, expected)
    assert (rollout.step == 0).all()
    np.testing.assert_array_equal(rollout.start, np.arange(20))


def test_rows_go_on_where_they_were_until_they_terminate(model):
    obs = transitions(30, seed=3)[0]
    rollout = model.rollout(obs, right, 12)
    assert rollout.terminated.any()
    assert len(rollout) < 30 * 12
    for row in range(30):
        mine = rollout.start == row
        np.testing.assert_array_equal(rollout.step[mine], np.arange(mine.sum()))
        np.testing.assert_array_equal(rollout.obs[mine][1:], rollout.next_obs[mine][:-1])
        assert not rollout.terminated[mine][:-1].any()
        assert rollout.terminated[mine][-1] or mine.sum() == 12


def test_unsure_steps_are_left_out(model):
    obs = np.array([[-0.5, 0.0], [0.0, 0.0]])
    _, _, _, std = model.step(obs, right(obs), return_std=True)
    between = std.max(axis=1).mean()
    sure = int(np.argmin(std.max(axis=1)))
    assert set(model.rollout(obs, right, 1, max_std=between).start) == {sure}
    assert len(model.rollout(obs, right, 3, max_std=1e-9)) == 0
    generous = model.rollout(obs, right, 3, max_std=[1e9, 1e9])
    np.testing.assert_array_equal(generous.next_obs, model.rollout(obs, right, 3).next_obs)


def test_actions_never_taken_are_unsure():
    model = model_of()
    model.update([[0.0, 0.0]] * 5, [0] * 5, [0.0] * 5, [[0.1, 0.0]] * 5, [False] * 5)
    assert len(model.rollout([[0.0, 0.0]], right, 2, max_std=1e300)) == 0


@pytest.mark.parametrize("actions", [FOUR, PUSH], ids=str)
def test_no_starts_give_no_transitions_of_the_right_kind(actions):
    rollout = model_of(actions=actions).rollout(np.empty((0, 2)), lambda obs: 1 / 0, 3)
    assert isinstance(rollout, Rollout)
    assert len(rollout) == 0
    assert rollout.next_obs.shape == (0, 2)
    assert rollout.actions.shape == (0, *actions.shape)
    model = model_of(actions=actions)
    model.update(
        rollout.obs, rollout.actions, rollout.rewards, rollout.next_obs, rollout.terminated
    )


def test_what_was_imagined_can_be_learned(model):
    rollout = model.rollout(transitions(10)[0], right, 3)
    pupil = model_of()
    pupil.update(
        rollout.obs, rollout.actions, rollout.rewards, rollout.next_obs, rollout.terminated
    )
    assert pupil.n_transitions == len(rollout)


def test_wrong_arguments(model):
    obs = [[0.0, 0.0]]
    with pytest.raises(ValueError, match="horizon=0 must be"):
        model.rollout(obs, right, 0)
    with pytest.raises(ValueError, match=r"max_std=\[1, 2, 3\] must be a number above 0, or 2"):
        model.rollout(obs, right, 1, max_std=[1, 2, 3])
    with pytest.raises(ValueError, match="max_std=0 must be"):
        model.rollout(obs, right, 1, max_std=0)
    with pytest.raises(ValueError, match="actions contains 7"):
        model.rollout(obs, lambda obs: np.full(len(obs), 7), 1)
    with pytest.raises(NotImplementedError, match="how sure"):
        Recorder(BOUNDED, FOUR).rollout(obs, right, 1, max_std=1.0)
