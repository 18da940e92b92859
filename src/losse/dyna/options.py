"""Options of Dyna and of a whole training: one set of names, defaults and checks.

`make_dyna`, `DynaReplayBuffer`, `Training` and the command line take `DynaOptions` whole. A new
option is a new field here: it is then an argument of all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, fields, replace
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from losse.checks import check_count
from losse.dyna.agents import AGENTS, BACKENDS
from losse.dyna.models import MODELS
from losse.dyna.search import SEARCH_CONTROLS
from losse.envs.rewards import control_cost, known_reward
from losse.envs.terminations import known_termination
from losse.world.known import PartlyKnown
from losse.world.registry import MODELS as WORLD_MODELS

ALTERNATE = "alternate"
AUTO = "auto"
MBPO_SHARE = 0.05
MBPO_POOL_STEPS = 1000

if TYPE_CHECKING:
    AgentName: TypeAlias = str
    BackendName: TypeAlias = str
    ModelName: TypeAlias = str
    SearchName: TypeAlias = str
else:  # the command line reads its choices from these
    AgentName = Literal[tuple(AGENTS)]
    BackendName = Literal[BACKENDS]
    ModelName = Literal[MODELS]
    SearchName = Literal[tuple(SEARCH_CONTROLS)]


@dataclass(frozen=True, kw_only=True)
class DynaOptions:
    """Options of an agent that learns from imagined transitions, beside its world model.

    Parameters
    ----------
    planning_steps
        Gradient steps per training call beyond the first.
    update_every
        Environment steps between two updates of the world model.
    search_control
        Where imagination starts: uniform (over all visited states, as in the paper), on-policy,
        prioritised or hill-climbing.
    horizon
        Imagined steps from each start; or four numbers, as MBPO has them: from the first number
        of environment steps to the second, the horizon grows from the third to the fourth.
    real_share
        Share of real rows in each minibatch, from 0 to 1; or alternate: one real minibatch per
        training call, then planning_steps imagined ones; or auto, as in the paper: alternate for
        discrete actions, 0.05 for continuous ones.
    greedy_share
        Share of imagined actions that are the agent's, if its policy is deterministic; others are
        drawn uniformly. Stochastic policies draw theirs by themselves.
    sure_share
        Share of the newest visited states at which the model counts as sure, from 0 to 1: imagined
        rows end before a step where its standard deviation is larger than there. Needs a model that
        knows its deviations, which is losse, and takes half as long again for a prediction. None:
        rows end by termination and horizon alone.
    pool_steps
        Environment steps for which imagined rows are kept in a pool, from which minibatches are
        drawn; the pool gets new rows after each update of the model. 0 imagines all rows of each
        training call anew; auto is 0 for discrete actions, as in the paper, and 1000 for continuous
        ones, as in MBPO.
    pool_rows
        Imagined rows per environment step, if there is a pool.
    target_update_gradient_steps
        Gradient steps between updates of the target network, for DQN and its kind made by
        `make_dyna`. Their own target_update_interval counts environment steps; it is used instead
        if it is given, or if the agent trains after whole episodes.

    Examples
    --------
    >>> DynaOptions(planning_steps=4).planning_steps
    4
    >>> DynaOptions(horizon=0)
    Traceback (most recent call last):
    ...
    ValueError: horizon=0 must be an integer of at least 1.
    """

    planning_steps: int = 16
    update_every: int = 25
    search_control: SearchName = "uniform"
    horizon: int | tuple[int, int, int, int] = 1
    real_share: float | str = AUTO
    greedy_share: float = 0.5
    sure_share: float | None = None
    pool_steps: int | str = AUTO
    pool_rows: int = 100
    target_update_gradient_steps: int = 100

    def __post_init__(self) -> None:
        check_count("planning_steps", self.planning_steps, at_least=0)
        for name in ("update_every", "pool_rows", "target_update_gradient_steps"):
            check_count(name, getattr(self, name))
        _check_horizon(self.horizon)
        if self.pool_steps != AUTO:
            check_count("pool_steps", self.pool_steps, at_least=0)
        if self.real_share not in (ALTERNATE, AUTO):
            check_share("real_share", self.real_share, f' or "{ALTERNATE}" or "{AUTO}"')
        check_share("greedy_share", self.greedy_share)
        if self.sure_share is not None:
            check_share("sure_share", self.sure_share, " or None")
        check_choice("search_control", self.search_control, SEARCH_CONTROLS)

    @classmethod
    def taken_from(
        cls, arguments: Mapping[str, Any], base: DynaOptions | None = None
    ) -> tuple[DynaOptions, dict[str, Any]]:
        """Options among named arguments, which change those of ``base``, and all other arguments.

        >>> options, others = DynaOptions.taken_from({"horizon": 3, "learning_rate": 0.1})
        >>> options.horizon, others
        (3, {'learning_rate': 0.1})
        """
        names = {part.name for part in fields(cls)}
        own = {name: value for name, value in arguments.items() if name in names}
        others = {name: value for name, value in arguments.items() if name not in names}
        return replace(base or cls(), **own), others

    def resolved(self, *, discrete: bool) -> DynaOptions:
        """Options in which "auto" has become the paper's setting for such actions."""
        share, pool = self.real_share, self.pool_steps
        if share == AUTO:
            share = ALTERNATE if discrete else MBPO_SHARE
        if pool == AUTO:
            pool = 0 if discrete else MBPO_POOL_STEPS
        return replace(self, real_share=share, pool_steps=pool)

    def horizon_at(self, steps: int) -> int:
        """Imagined steps from each start after some environment steps.

        >>> [DynaOptions(horizon=(20, 120, 1, 11)).horizon_at(n) for n in (0, 20, 75, 120, 500)]
        [1, 1, 6, 11, 11]
        """
        if isinstance(self.horizon, int):
            return self.horizon
        first, last, shortest, longest = self.horizon
        return int(np.interp(steps, (first, last), (shortest, longest)))

    def imagined(self, first: int, n_minibatches: int, batch_size: int) -> npt.NDArray[np.bool_]:
        """Whether each row of consecutive minibatches is imagined.

        Some agents draw all minibatches of a training call at once and cut them apart, others one
        by one: ``first`` is the number of minibatches that this call has drawn before.

        >>> alternate = DynaOptions(planning_steps=2, real_share="alternate")
        >>> alternate.imagined(0, 3, 4).reshape(3, 4).astype(int)
        array([[0, 0, 0, 0],
               [1, 1, 1, 1],
               [1, 1, 1, 1]])
        >>> mixed = DynaOptions(planning_steps=2, real_share=0.25)
        >>> mixed.imagined(0, 3, 4).reshape(3, 4).astype(int)
        array([[0, 1, 1, 1],
               [0, 1, 1, 1],
               [0, 1, 1, 1]])
        """
        rows = np.zeros((n_minibatches, batch_size), dtype=bool)
        if self.planning_steps == 0:
            return rows.reshape(-1)
        if isinstance(self.real_share, str):
            rounds = np.arange(first, first + n_minibatches) % (1 + self.planning_steps)
            rows[rounds > 0] = True
        else:
            # A share above zero means at least one row, also of a small minibatch.
            n_real = int(np.ceil(round(self.real_share * batch_size, 6)))
            rows[:, n_real:] = True
        return rows.reshape(-1)


@dataclass(frozen=True, kw_only=True)
class Training:
    """Everything that decides the result of a training, apart from the machine.

    All values are plain: they can be written as JSON.

    Parameters
    ----------
    env
        Id of a Gymnasium environment, such as losse/Gridworld-v0, MountainCar-v0 or Hopper-v5.
    agent
        Agent: dqn or qrdqn for discrete actions, one of the others for continuous ones.
    backend
        Library of the agent: auto is SBX (JAX) where it has the agent, else SB3 (PyTorch).
    model
        World model; jax is losse in its functional form, for agents of SBX. Without one: model-free
        takes one gradient step per training call, model-free-matched as many as with planning. With
        oracle the model is the truth, for environments in which it is known.
    termination
        Whether the model learns how episodes end, or knows the rule of the environment.
    reward
        Whether the model learns the reward, knows it, or knows the cost of actions in it and learns
        the rest.
    steps
        Environment steps.
    seed
        Seed of agent, model and environment.
    n_envs
        Environments that run side by side.
    dyna
        How the agent learns from imagined transitions.
    rescale_obs
        Map observations to [-1, 1] by their bounds: agents learn small numbers much faster so.
    exploring_starts
        Start episodes of training anywhere, in the environments of discrete control.
    train_limit
        Steps of an episode of training; by default as the environment has it.
    eval_every
        Environment steps between evaluations.
    eval_episodes
        Episodes of an evaluation.
    eval_limit
        Steps of an episode of an evaluation; by default as the environment has it.
    agent_options, model_options, env_options
        Further arguments of agent, world model and environment.

    Examples
    --------
    >>> training = Training(env="CartPole-v1", dyna=DynaOptions(planning_steps=4))
    >>> training.agent, training.dyna.planning_steps
    ('dqn', 4)
    """

    env: str
    agent: AgentName = "dqn"
    backend: BackendName = "auto"
    model: ModelName = "losse"
    termination: Literal["learned", "known"] = "learned"
    reward: Literal["learned", "known", "partly-known"] = "learned"
    steps: int = 15_000
    seed: int = 0
    n_envs: int = 1
    dyna: DynaOptions = field(default_factory=DynaOptions)
    rescale_obs: bool = False
    exploring_starts: bool = False
    train_limit: int | None = None
    eval_every: int = 500
    eval_episodes: int = 5
    eval_limit: int | None = None
    agent_options: Mapping[str, Any] = field(default_factory=dict)
    model_options: Mapping[str, Any] = field(default_factory=dict)
    env_options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("steps", "n_envs", "eval_every", "eval_episodes"):
            check_count(name, getattr(self, name))
        check_count("seed", self.seed, at_least=0)
        for name in ("train_limit", "eval_limit"):
            if getattr(self, name) is not None:
                check_count(name, getattr(self, name))
        check_choice("agent", self.agent, AGENTS)
        check_choice("backend", self.backend, BACKENDS)
        check_choice("model", self.model, MODELS)
        check_choice("termination", self.termination, ("learned", "known"))
        check_choice("reward", self.reward, ("learned", "known", "partly-known"))
        self.rules()  # raises where they are not known

    def rules(self) -> dict[str, Any]:
        """What the world model is told about the environment: arguments of its class.

        >>> Training(env="Pendulum-v1", termination="known").rules()
        {'termination': 'never'}
        """
        rules: dict[str, Any] = {}
        if self.model not in WORLD_MODELS:
            return rules
        if self.termination == "known":
            rules["termination"] = known_termination(self.env)
        if self.reward == "known":
            rules["reward"] = known_reward(self.env)
        elif self.reward == "partly-known":
            rules["reward"] = PartlyKnown(control_cost(self.env, self.env_options))
        return rules

    def arguments(self) -> dict[str, Any]:
        """Named arguments of `make_dyna` for this training, beside agent and environment.

        >>> Training(env="CartPole-v1", steps=2000).arguments()["buffer_size"]
        2000
        """
        return {
            "world_model": self.model,
            "options": self.dyna,
            "model_options": (self.rules() | dict(self.model_options)) or None,
            "seed": self.seed,
            "buffer_size": min(1_000_000, max(self.steps, self.dyna.update_every)),
            **deepcopy(dict(self.agent_options)),  # agents add to their policy_kwargs
        }

    def make_env(self, limit: int | None = None) -> gymnasium.Env[Any, Any]:
        """One environment as agents see it; ``limit`` is that of an episode's steps."""
        env = gymnasium.make(self.env, limit, **self.env_options)
        return rescaled(env) if self.rescale_obs else env


def rescaled(env: gymnasium.Env[Any, Any]) -> gymnasium.Env[Any, Any]:
    """An environment whose observations go from -1 to 1.

    >>> rescaled(gymnasium.make("MountainCar-v0")).observation_space
    Box(-1.0, 1.0, (2,), float32)
    """
    space = env.observation_space
    if not (isinstance(space, spaces.Box) and space.is_bounded()):
        raise ValueError(
            f"rescale_obs=True needs observations with finite bounds, not {space}: leave it out, "
            "or normalise by what is seen, with VecNormalize."
        )
    return gymnasium.wrappers.RescaleObservation(env, np.float32(-1), np.float32(1))


def _check_horizon(horizon: Any) -> None:
    if isinstance(horizon, int):
        check_count("horizon", horizon)
        return
    if not isinstance(horizon, Sequence) or len(horizon) != 4:
        raise TypeError(
            f"horizon={horizon!r} must be a number of steps, or four: the environment steps from "
            "and until which it grows, and its first and last value."
        )
    for value in horizon:
        check_count("horizon", value, at_least=0)
    if horizon[0] >= horizon[1] or not min(horizon[2:]) >= 1:
        raise ValueError(
            f"horizon={horizon!r} must grow over at least one environment step, from at least 1."
        )


def check_share(name: str, value: Any, others: str = "") -> None:
    """Raise unless ``value`` is a number from 0 to 1."""
    message = f"{name}={value!r} must be a number from 0 to 1{others}."
    if isinstance(value, bool | str) or not isinstance(value, Real):
        raise (ValueError if isinstance(value, str) else TypeError)(message)
    if not 0 <= float(value) <= 1:
        raise ValueError(message)


def check_choice(name: str, value: Any, choices: Any) -> None:
    """Raise `ValueError` unless ``value`` is one of the names in ``choices``."""
    if value not in choices:
        raise ValueError(f"{name}={value!r} is not known: use one of {', '.join(choices)}.")
