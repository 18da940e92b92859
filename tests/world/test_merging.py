"""World models that learned apart add up."""

import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

from losse.world import PartlyKnown
from tests.world.worlds import (
    BOUNDED,
    MIXED,
    PUSH,
    assert_identical,
    model_of,
    small,
    some,
    transitions,
)


@pytest.mark.parametrize("actions", [Discrete(4), PUSH], ids=str)
@pytest.mark.parametrize("per_action", [True, False])
def test_halves_make_the_whole(actions, per_action):
    data = transitions(400, actions)
    options = {"actions": actions, "per_action": per_action, "regressor": small("dense")}
    whole, half, other = (model_of(**options) for _ in range(3))
    whole.update(*data)
    half.update(*some(data, slice(150)))
    other.update(*some(data, slice(150, None)))
    before = other.step(*data[:2])
    half.merge(other)
    assert half.n_transitions == 400
    for part, same in zip(half.step(*data[:2]), whole.step(*data[:2]), strict=True):
        np.testing.assert_allclose(part, same, atol=1e-6)
    for part, same in zip(other.step(*data[:2]), before, strict=True):
        np.testing.assert_array_equal(part, same)
    half.update(*some(data, slice(5)))  # goes on


def test_models_made_alike_share_a_learned_scaling():
    data = transitions(300)
    first = model_of(MIXED, warm_up=100)
    first.update(*some(data, slice(100)))
    second = first.like()
    assert second.n_transitions == 0
    assert second.scaled
    np.testing.assert_array_equal(second.step(*data[:2])[0], data[0])  # it knows nothing
    second.update(*some(data, slice(100, None)))
    assert first.n_transitions == 100
    first.merge(second)
    assert first.n_transitions == 300


def test_actions_that_only_the_other_has_seen_are_taken_over():
    data = transitions(200)
    left, right = data[1] < 2, data[1] >= 2
    model, other, whole = model_of(), model_of(), model_of()
    model.update(*some(data, left))
    other.update(*some(data, right))
    whole.update(*data)
    model.merge(other)
    np.testing.assert_allclose(model.step(*data[:2])[0], whole.step(*data[:2])[0], atol=0.02)
    again = other.step(*data[:2])
    model.update(*data)
    for part, same in zip(other.step(*data[:2]), again, strict=True):
        np.testing.assert_array_equal(part, same)


def warming():
    model = model_of(MIXED)
    model.update(*transitions(50))
    return model


@pytest.mark.parametrize(
    ("model", "other", "text"),
    [
        (model_of, lambda: model_of(Box(-2, 2, (2,), dtype=np.float64)), "other.observation_space"),
        (model_of, lambda: model_of(actions=Discrete(5)), "other.action_space"),
        (model_of, lambda: model_of(seed=1), "other has regressors like"),
        (model_of, lambda: model_of(regressor=small(ridge=0.1)), "other has regressors like"),
        (model_of, lambda: model_of(per_action=False), "per_action"),
        (model_of, lambda: model_of(termination="never"), "other.termination is not as"),
        (model_of, lambda: model_of(reward=PartlyKnown(max)), "other.reward is not as"),
        (model_of, lambda: model_of(reward=lambda *_: 0), "other.reward is not as"),
        (warming, warming, "the scaling of both models must be settled"),
    ],
)
def test_other_worlds_are_refused(model, other, text):
    one, two = model(), other()
    twin = model()
    with pytest.raises(ValueError, match=text):
        one.merge(two)
    assert_identical(one, twin)


def test_other_scalings_are_refused():
    one, two = (model_of(MIXED, warm_up=10) for _ in range(2))
    one.update(*transitions(20))
    two.update(*transitions(20, seed=1))
    with pytest.raises(ValueError, match=r"other scales its inputs differently.*like\(\)"):
        one.merge(two)
    with pytest.raises(TypeError, match="is not a LosseWorldModel"):
        one.merge(small())


def test_likeness_needs_a_settled_scaling():
    with pytest.raises(ValueError, match="not settled after 50 transitions"):
        warming().like()
    assert model_of(BOUNDED).like().scaled


def test_many_are_merged_at_once_or_none_of_them():
    data = transitions(300)
    whole, model = (model_of(regressor=small("dense")) for _ in range(2))
    whole.update(*data)
    parts = [model.like() for _ in range(3)]
    for k, part in enumerate(parts):
        part.update(*some(data, slice(k, None, 3)))
    stranger = model_of(per_action=False, regressor=small("dense"))
    twin = model_of(regressor=small("dense"))
    with pytest.raises(ValueError, match="per_action"):
        model.merge(*parts, stranger)
    assert_identical(model, twin)
    model.merge(*parts)
    assert model.n_transitions == 300
    assert model.settled
    np.testing.assert_allclose(model.step(*data[:2])[0], whole.step(*data[:2])[0], atol=1e-6)
