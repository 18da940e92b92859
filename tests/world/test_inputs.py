"""States and actions are brought to comparable units."""

import numpy as np
from gymnasium.spaces import Box, Discrete

from losse.world.losse.inputs import Inputs
from losse.world.spaces import flat


def inputs_of(observations, actions=None, **options):
    read = flat("action_space", actions or Discrete(2))
    return Inputs(flat("observation_space", observations), read, **options)


def test_bounds_go_to_three():
    inputs = inputs_of(Box(np.array([0.0, -5.0]), np.array([1.0, 5.0]), dtype=np.float64))
    assert inputs.bounded
    states = np.array([[0.0, 5.0], [0.5, 0.0], [2.0, -50.0]])
    scaled = inputs.matrix(states, np.zeros(3, int))[:, :2]
    np.testing.assert_allclose(scaled, [[-3, 3], [0, 0], [3, -3]])


def test_without_bounds_warm_up_data_are_standardised():
    inputs = inputs_of(Box(-np.inf, np.inf, (3,), dtype=np.float64))
    assert not inputs.bounded
    rng = np.random.default_rng(0)
    states = rng.uniform(size=(200, 3)) * [1.0, 1e6, 0.0] + [5.0, -3.0, 7.0]
    inputs.learn(states, np.zeros(200, int))
    scaled = inputs.matrix(states, np.zeros(200, int))[:, :3]
    np.testing.assert_allclose(scaled.mean(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(scaled.std(axis=0), [1, 1, 0], atol=1e-9)


def test_any_spread_and_any_distance_are_scaled():
    inputs = inputs_of(Box(-np.inf, np.inf, (2,), dtype=np.float64))
    actions = np.zeros(2, int)
    inputs.learn(np.array([[1e-90, 1e-300], [3e-90, 2e-300]]), actions)
    scaled = inputs.matrix(np.array([[1e-90, 0.0], [1e99, -1e99]]), actions)[:, :2]
    np.testing.assert_allclose(scaled, [[-1, 0], [3, -3]], atol=1e-9)


def test_limits_of_a_number_format_are_no_bounds():
    largest = float(np.finfo(np.float32).max)
    assert not inputs_of(Box(-largest, largest, (1,))).bounded
    assert not inputs_of(Box(0, 2**31 - 1, (1,), dtype=np.int32)).bounded
    assert inputs_of(Box(0, 255, (1,), dtype=np.uint8)).bounded


def test_a_number_of_one_value_does_no_harm():
    inputs = inputs_of(Box(np.array([0.0, 2.0]), np.array([1.0, 2.0]), dtype=np.float64))
    assert np.isfinite(inputs.matrix(np.array([[0.5, 2.0]]), np.zeros(1, int))).all()


def test_one_hot_entries_have_mean_square_one():
    inputs = inputs_of(Discrete(25), Discrete(4))
    states = np.eye(25)
    matrix = inputs.matrix(states, np.arange(25) % 4)
    assert matrix.shape == (25, inputs.width) == (25, 29)
    np.testing.assert_allclose((matrix[:, :25] ** 2).mean(axis=1), 1)
    np.testing.assert_allclose((matrix[:, 25:] ** 2).mean(axis=1), 1)


def test_continuous_actions_are_scaled_beside_the_state():
    inputs = inputs_of(Box(-1, 1, (2,)), Box(0, 4, (1,)))
    matrix = inputs.matrix(np.zeros((1, 2)), np.array([[4.0]]))
    np.testing.assert_allclose(matrix, [[0, 0, 3]])
    alone = inputs_of(Box(-1, 1, (2,)), Discrete(3), with_actions=False)
    assert alone.width == 2
