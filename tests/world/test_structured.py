"""World models of environments whose observations and actions have several parts."""

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.utils.env_checker import check_env, data_equivalence

from losse import FTLRegressor, LosseEncoder
from losse.world import ImaginedEnv, LosseWorldModel, NeuralWorldModel, Transitions, evaluate
from losse.world.transitions import stack, take

ROOM = spaces.Dict(
    {"door": spaces.Discrete(2), "lamps": spaces.MultiBinary(2), "place": spaces.Box(-1, 1, (1,))}
)
ACTIONS = {
    "MultiDiscrete": spaces.MultiDiscrete([2, 2], start=[0, 5]),
    "MultiBinary": spaces.MultiBinary(2),
    "Tuple": spaces.Tuple([spaces.Box(0, 1, (1,)), spaces.Discrete(2)]),
    "Discrete": spaces.Discrete(4),
}


def meaning(actions):
    """Whether to go right, and whether to use the door."""
    if isinstance(actions, tuple):
        return actions[0][:, 0] > 0.5, actions[1] == 1
    if actions.ndim == 1:
        return actions % 2 == 1, actions > 1
    return actions[:, 0] == 1, actions[:, 1] % 5 == 1


def happened(n, action_space, seed=0):
    """Steps to the left and right; the door is toggled, and lights the first lamp."""
    ROOM.seed(seed)
    action_space.seed(seed)
    obs = stack([ROOM.sample() for _ in range(n)])
    actions = stack([action_space.sample() for _ in range(n)])
    right, used = meaning(actions)
    moved = np.clip(obs["place"] + np.where(right, 0.2, -0.2)[:, None], -1, 1).astype(np.float32)
    door = obs["door"] ^ used
    lamps = np.stack([door, obs["lamps"][:, 1]], axis=1).astype(np.int8)
    next_obs = {"door": door, "lamps": lamps, "place": moved}
    return Transitions(obs, actions, moved[:, 0].astype(float), next_obs, moved[:, 0] > 0.9)


def losse(actions, **options):
    regressor = FTLRegressor(LosseEncoder(30, 3, 2), solver="dense", ridge=1e-5)
    return LosseWorldModel(ROOM, actions, regressor=regressor, **options)


@pytest.fixture(scope="module", params=ACTIONS)
def learned(request):
    model = losse(ACTIONS[request.param])
    data = happened(600, model.action_space)
    for first in range(0, 600, 200):
        model.update(*data.take(slice(first, first + 200)))
    return model


def assert_knows(model, share=0.97, error=0.08):
    test = happened(300, model.action_space, seed=1)
    next_obs, rewards, _ = model.step(test.obs, test.actions)
    assert (next_obs["door"] == test.next_obs["door"]).mean() > share
    assert (next_obs["lamps"] == test.next_obs["lamps"]).mean() > share
    assert np.abs(next_obs["place"] - test.next_obs["place"]).mean() < error
    assert np.abs(rewards - test.rewards).mean() < error
    assert all(ROOM.contains(take(next_obs, row)) for row in range(300))


def test_parts_are_learned(learned):
    assert_knows(learned)


def test_neural_models_learn_them_too():
    model = NeuralWorldModel(ROOM, ACTIONS["MultiDiscrete"], hidden=(32, 32))
    model.update(*happened(600, model.action_space))
    assert_knows(model, share=0.95, error=0.1)


def test_a_loaded_model_goes_on_bit_for_bit(learned, tmp_path):
    learned.save(tmp_path / "model", progress=False)
    loaded = LosseWorldModel.load(
        tmp_path / "model", observation_space=ROOM, action_space=learned.action_space
    )
    test = happened(50, learned.action_space, seed=2)
    mine, same = (model.step(test.obs, test.actions) for model in (learned, loaded))
    assert data_equivalence(mine, same, exact=True)
    loaded.update(*test)


def test_rollouts_are_chains_of_steps(learned):
    start = happened(20, learned.action_space, seed=3)
    rollout = learned.rollout(
        start.obs, lambda obs: take(start.actions, slice(len(obs["door"]))), 4
    )
    first = rollout.take(rollout.step == 0)
    assert data_equivalence(first.obs, start.obs, exact=True)
    stepped = learned.step(start.obs, start.actions)
    assert data_equivalence(first.next_obs, stepped[0], exact=True)
    for row in range(20):
        mine = rollout.take(rollout.start == row)
        assert data_equivalence(
            take(mine.obs, slice(1, None)), take(mine.next_obs, slice(-1)), exact=True
        )
    other = losse(learned.action_space)
    other.update(*rollout)
    assert other.n_transitions == len(rollout)
    nothing = learned.rollout(take(start.obs, slice(0)), lambda obs: 1 / 0, 3)
    assert len(nothing) == 0
    other.update(*nothing)


def test_functions_see_the_parts():
    model = losse(
        ACTIONS["Tuple"],
        reward=lambda obs, actions, next_obs: obs["place"][:, 0] + actions[1],
        termination=lambda obs, actions, next_obs: next_obs["door"] == obs["door"],
    )
    obs = {"door": [0, 1], "lamps": [[0, 0], [1, 1]], "place": [[0.5], [0.25]]}
    _, rewards, terminated = model.step(obs, ([[0.5], [0.5]], [1, 0]))
    assert rewards.tolist() == [1.5, 0.25]
    assert terminated.all()


def test_evaluation_knows_the_parts(learned):
    test = happened(100, learned.action_space, seed=4)
    result = evaluate(learned, *test, horizons=[1])
    assert result.rmse.shape == (1, 2 + 2 + 1)
    assert (result.rmse < 0.5 * result.persistence)[0, [0, 1, 2, 4]].all()


@pytest.mark.filterwarnings("ignore:.*(Casting input x|is infinity|not same as|deprecat)")
def test_the_imagined_environment_is_one(learned):
    starts = happened(5, learned.action_space, seed=5).obs
    env = ImaginedEnv(learned, starts, num_envs=3, max_episode_steps=4)
    check_env(env.single(), skip_render_check=True)
    env.action_space.seed(0)
    obs, _ = env.reset(seed=0)
    for _ in range(12):
        assert env.observation_space.contains(obs)
        obs, *_ = env.step(env.action_space.sample())


def test_steps_of_an_environment_become_transitions():
    env = gymnasium.make("Blackjack-v1")
    env.action_space.seed(0)
    obs, _ = env.reset(seed=0)
    steps = []
    for _ in range(60):
        action = env.action_space.sample()
        next_obs, reward, terminated, truncated, _ = env.step(action)
        steps.append((obs, action, reward, next_obs, terminated))
        obs = env.reset()[0] if terminated or truncated else next_obs
    data = Transitions.from_steps(steps)
    assert len(data) == 60
    assert isinstance(data.obs, tuple)
    model = LosseWorldModel(env.observation_space, env.action_space)
    model.update(*data)
    whole = Transitions.concatenate([data.take(slice(20)), data.take(np.arange(20, 60))])
    assert data_equivalence(tuple(whole), tuple(data), exact=True)
    assert model.step(data.obs, data.actions)[0][0].shape == (60,)
