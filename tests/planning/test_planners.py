"""Planners find the best actions where these are known, in any units, and repeat themselves."""

import itertools

import numpy as np
import pytest
from gymnasium import spaces

from losse.planning import CEM, ICEM, MPPI, BeamSearch, Objective, RandomShooting
from losse.planning.noise import coloured
from losse.world import LosseWorldModel, WorldModel
from tests.planning.worlds import A, B, LinearModel, Q, R, best_return

START = np.array([1.0, 0.0])
CONTINUOUS = [MPPI, CEM, ICEM]
EVERY = [*CONTINUOUS, RandomShooting]


@pytest.mark.parametrize(
    ("planner", "tolerance"),
    [
        (CEM(10, 300, 30, least_spread=1e-3), 0.01),
        (ICEM(10, 300, 30, least_spread=1e-3, noise_exponent=1.0), 0.01),
        (MPPI(10, 1000, 60, spread=0.1, noise_exponent=1.0), 0.05),
    ],
    ids=lambda value: type(value).__name__,
)
def test_the_linear_quadratic_regulator_is_found(planner, tolerance):
    action, plan = planner(LinearModel(), START)
    best_action, best = best_return(START, 10)
    assert best * (1 + tolerance) <= plan.value <= best * (1 - 1e-9)
    assert action == pytest.approx(best_action, abs=0.05 * abs(best_action[0]))


def test_another_mppi_decides_the_same():
    """pytorch-mppi in the same world, from white noise of its own and in its own units."""
    torch = pytest.importorskip("torch")
    other_mppi = pytest.importorskip("pytorch_mppi").MPPI
    torch.manual_seed(0)
    move, push, cost = map(torch.tensor, (A, B, Q))

    def step(states, actions):
        return states @ move.T + actions @ push.T

    def spent(states, actions):
        after = step(states, actions)
        return ((after @ cost) * after).sum(-1) + R[0, 0] * actions[..., 0] ** 2

    bound, variance = torch.tensor([20.0], dtype=torch.float64), torch.tensor([[4.0]]).double()
    other = other_mppi(
        step, spent, 2, variance, num_samples=1000, horizon=10, lambda_=0.05, u_min=-bound,
        u_max=bound,
    )  # fmt: skip
    for _ in range(60):
        expected = other.command(torch.tensor(START), shift_nominal_trajectory=False)
    action, _ = MPPI(10, 1000, 60, spread=0.1, noise_exponent=1.0)(LinearModel(), START)
    assert action == pytest.approx(expected.numpy(), rel=0.05)


@pytest.mark.parametrize("kind", CONTINUOUS)
def test_planning_at_every_step_is_as_good_as_the_regulator(kind):
    planner = kind(10, 200, 5, spread=0.2)
    model, state, plan, cost = LinearModel(), START, None, 0.0
    best, regulated = 0.0, START
    for _ in range(25):
        action, plan = planner(model, state, previous=plan)
        (state,), (reward,), _ = model.step(state[None], action[None])
        cost += reward
        choice, _ = best_return(regulated, 10)
        (regulated,), (reward,), _ = model.step(regulated[None], choice[None])
        best += reward
    assert cost > 1.1 * best  # both are negative


@pytest.mark.parametrize("kind", CONTINUOUS)
def test_bounds_are_kept_and_reached(kind):
    model = LinearModel(low=-0.5, high=1.5)
    _, plan = kind(5, 100, 5)(model, 10 * START)  # far away: push back as hard as possible
    assert (plan.actions >= -0.5).all()
    assert plan.actions[0] < -0.4


@pytest.mark.parametrize("kind", EVERY)
def test_rewards_in_other_units_give_the_same_plan(kind):
    planner, model = kind(5, 50), LinearModel()
    rewards = [
        lambda obs, actions, next_obs, scale=scale, shift=shift: scale * next_obs[:, 0] + shift
        for scale, shift in [(1.0, 0.0), (64.0, 0.0), (1.0, -8.0)]
    ]
    plans = [planner(model, START, Objective(reward=reward))[1].actions for reward in rewards]
    np.testing.assert_allclose(plans[1], plans[0], rtol=1e-9)
    np.testing.assert_allclose(plans[2], plans[0], rtol=1e-6)


@pytest.mark.parametrize("kind", [CEM, ICEM])
def test_where_all_sequences_gain_the_same_the_mean_stays_in_the_middle(kind):
    flat = Objective(reward=lambda obs, actions, next_obs: np.zeros(len(obs)))
    _, plan = kind(5, 1000)(LinearModel(-1.0, 1.0), START, flat)
    assert np.abs(plan.actions).max() < 0.1  # not the mean of any tenth of them


@pytest.mark.parametrize("kind", EVERY)
def test_the_same_seed_gives_the_same_plan(kind):
    def plan(seed):
        return kind(5, 20, seed=seed)(LinearModel(), START)[1].actions

    np.testing.assert_array_equal(plan(3), plan(3))
    assert not np.array_equal(plan(3), plan(4))


@pytest.mark.parametrize("kind", [ICEM, RandomShooting])
def test_a_plan_is_never_worse_than_the_one_before_shifted(kind):
    planner, model, wish = kind(8, 20, seed=1), LinearModel(), Objective()
    state, plan = START, None
    for _ in range(10):
        action, new = planner(model, state, previous=plan)
        if plan is not None:
            shifted = np.concatenate([plan.actions[1:], plan.actions[-1:]])
            assert new.value >= wish.returns(model, state, shifted[None])[0] - 1e-9
            assert new.age == plan.age + 1
        (state,), _, _ = model.step(state[None], action[None])
        plan = new


def test_a_single_sample_is_the_plan_before_shifted():
    planner = RandomShooting(4, 1)
    _, plan = planner(LinearModel(), START)
    _, shifted = planner(LinearModel(), START, previous=plan)
    np.testing.assert_array_equal(shifted.actions, plan.actions[[1, 2, 3, 3]])


@pytest.mark.parametrize("kind", [*EVERY, BeamSearch])
def test_a_plan_says_where_it_leads(kind):
    model = LinearModel() if kind is not BeamSearch else Tree()
    obs = START if kind is not BeamSearch else np.zeros(1)
    action, plan = kind(6, 30)(model, obs)
    assert plan.observations.shape == (7, *obs.shape)
    np.testing.assert_array_equal(action, plan.actions[0])
    gained = 0.0
    for step, chosen in enumerate(plan.actions):
        (reached,), (reward,), _ = model.step(plan.observations[step][None], chosen[None])
        np.testing.assert_array_equal(reached, plan.observations[step + 1])
        gained += reward
    assert plan.value == pytest.approx(gained)


class Tree(WorldModel):
    """Position x; three actions, numbered from 5, whose reward depends on where they are taken."""

    def __init__(self, ends_at=None):
        super().__init__(
            spaces.Box(-np.inf, np.inf, (1,), dtype=np.float64), spaces.Discrete(3, start=5)
        )
        self.ends_at = ends_at

    def _learn(self, states, actions, targets):
        pass

    def _predict(self, states, actions):
        change = actions[:, None] - 0.7 * states
        reward = np.sin(3.0 * states[:, 0] + 2.0 * actions)
        ended = (states + change)[:, 0] > (np.inf if self.ends_at is None else self.ends_at)
        return np.column_stack([change, reward, ended])


def brute_force(model, horizon):
    wish = Objective()
    sequences = np.array(list(itertools.product([5, 6, 7], repeat=horizon)))
    return wish.returns(model, np.zeros(1), sequences).max()


@pytest.mark.parametrize("ends_at", [None, 1.5])
def test_a_wide_beam_is_exhaustive(ends_at):
    model = Tree(ends_at)
    _, plan = BeamSearch(horizon=5, width=3**5)(model, np.zeros(1))
    assert plan.value == pytest.approx(brute_force(model, 5))


def test_a_beam_of_one_is_greedy_and_a_wider_one_gains_more():
    model = Tree()
    values = [BeamSearch(6, width)(model, np.zeros(1))[1].value for width in (1, 100)]
    state, gained = np.zeros(1), 0.0
    for _ in range(6):
        after, rewards, _ = model.step(np.repeat(state[None], 3, axis=0), np.array([5, 6, 7]))
        state, gained = after[rewards.argmax()], gained + rewards.max()
    assert values[0] == pytest.approx(gained)
    assert values[1] > values[0]


def test_actions_of_any_shape_and_dtype():
    space = spaces.Box(np.float32([[-1, 0], [2, -3]]), np.float32([[1, 5], [4, 3]]))
    model = LosseWorldModel(spaces.Box(0, 1, (1,)), space)
    wish = Objective(reward=lambda obs, actions, next_obs: actions.sum(axis=(1, 2)))
    for kind in CONTINUOUS:
        action, plan = kind(4, 100, 8)(model, [0.5], wish)
        assert action in space
        assert plan.actions.shape == (4, 2, 2)
        assert action.sum() > 0.75 * space.high.sum()


@pytest.mark.parametrize("planner", [*(kind() for kind in EVERY), BeamSearch()])
def test_unsuitable_actions_are_refused(planner):
    model = LinearModel()
    model.action_space = spaces.Box(-np.inf, np.inf, (1,))
    with pytest.raises(TypeError, match=f"{type(planner).__name__} cannot plan the actions Box"):
        planner(model, START)


@pytest.mark.parametrize("kind", CONTINUOUS)
def test_discrete_actions_need_another_planner(kind):
    with pytest.raises(TypeError, match="BeamSearch"):
        kind()(Tree(), np.zeros(1))


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        *((kind, {"horizon": 0}) for kind in [*EVERY, BeamSearch]),
        *((kind, {"n_samples": 0}) for kind in EVERY),
        *((kind, {"n_iterations": 0}) for kind in CONTINUOUS),
        *((kind, {"spread": 0.0}) for kind in CONTINUOUS),
        (CEM, {"noise_exponent": -1.0}),
        (CEM, {"elite_share": 0.0}),
        (CEM, {"elite_share": 1.5}),
        (CEM, {"momentum": -0.1}),
        (ICEM, {"kept_share": 2.0}),
        (ICEM, {"decay": 0.5}),
        (MPPI, {"temperature": 0.0}),
        (BeamSearch, {"width": 0}),
        (BeamSearch, {"seed": -1}),
    ],
)
def test_bad_options_are_refused(kind, options):
    ((name, value),) = options.items()
    with pytest.raises(ValueError, match=f"{name}={value}"):
        kind(**options)


def test_a_plan_of_another_horizon_is_refused():
    _, plan = CEM(5)(LinearModel(), START)
    with pytest.raises(ValueError, match="horizon of 5"):
        CEM(6)(LinearModel(), START, previous=plan)


@pytest.mark.parametrize("horizon", [1, 2, 7, 20])
@pytest.mark.parametrize("exponent", [0.0, 1.0, 2.0])
def test_noise_of_any_colour_has_unit_variance(horizon, exponent):
    noise = coloured(np.random.default_rng(0), exponent, 20_000, horizon, 2)
    assert noise.shape == (20_000, horizon, 2)
    np.testing.assert_allclose(noise.var(axis=0), 1.0, rtol=0.06)


def test_the_power_of_noise_falls_as_it_should():
    noise = coloured(np.random.default_rng(0), 2.0, 20_000, 32, 1)[:, :, 0]
    power = (np.abs(np.fft.rfft(noise, axis=1)) ** 2).mean(axis=0)
    np.testing.assert_allclose(power[2] / power[8], 16.0, rtol=0.1)
