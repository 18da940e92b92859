"""An agent of Stable-Baselines3 or SBX with a world model, in one call."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any, TypeVar, overload

from gymnasium import spaces
from stable_baselines3.common.base_class import maybe_make_env
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.type_aliases import TrainFrequencyUnit

from losse.dyna.agents import require_suitable_agent
from losse.dyna.buffer import DynaReplayBuffer
from losse.dyna.conversion import require_observations
from losse.dyna.dict_buffer import buffer_class
from losse.dyna.imagination import require_together
from losse.dyna.models import MODEL_FREE, check_model, model_for
from losse.dyna.options import DynaOptions
from losse.world import WorldModel

Agent = TypeVar("Agent", bound=OffPolicyAlgorithm)
MULTI_INPUT = "MultiInputPolicy"


@overload
def make_dyna(
    agent_class: type[Agent],
    env: Any,
    world_model: WorldModel | str = "losse",
    *,
    model_options: Mapping[str, Any] | None = None,
    policy: Any = None,
    options: DynaOptions | None = None,
    **arguments: Any,
) -> Agent: ...
@overload
def make_dyna(
    agent_class: type[Agent],
    policy: Any,
    env: Any,
    world_model: WorldModel | str = "losse",
    *,
    model_options: Mapping[str, Any] | None = None,
    options: DynaOptions | None = None,
    **arguments: Any,
) -> Agent: ...


def make_dyna(
    agent_class: type[Agent],
    *positional: Any,
    model_options: Mapping[str, Any] | None = None,
    options: DynaOptions | None = None,
    **arguments: Any,
) -> Agent:
    """Make an ordinary off-policy agent that also learns from an imagined world (Algorithm 3).

    Every training call takes ``1 + planning_steps`` gradient steps, with real and imagined
    transitions; meanwhile the world model learns from the real ones.

    ``make_dyna(agent_class, env, world_model)`` is the usual form. A policy may stand before the
    environment, as in ``agent_class(policy, env)``.

    Parameters
    ----------
    agent_class
        Any off-policy agent: DQN, SAC, TD3, DDPG, TQC, CrossQ, QRDQN of Stable-Baselines3, its
        contributions or SBX.
    env
        A Gymnasium environment, its id, or a `VecEnv`. With `VecNormalize` the world model learns
        unnormalised data; the agent sees what it imagines normalised, like all the rest.
    world_model
        ``"losse"``, one of the neural baselines ``"full-replay"``, ``"online"``, ``"si"``,
        ``"coreset"``, or a `WorldModel`. ``"jax"`` is ``"losse"`` in its functional form: an agent
        of SBX then imagines on JAX's device. ``"model-free"`` is the agent alone, with one gradient
        step per training call. ``"model-free-matched"`` takes as many as with planning, all on
        real transitions: what a model has to beat. ``"oracle"`` is the truth about ``env``
        instead of a model, for those in `losse.envs.true_dynamics.KNOWN`.
    model_options
        Further arguments of the model that ``world_model`` names, such as ``{"termination":
        "never"}``.
    policy
        Policy of the agent, as its class takes it; by default ``"MlpPolicy"``, or
        ``"MultiInputPolicy"`` for a Dict of observations.
    options
        `DynaOptions`, whole. Its fields can also be given one by one.
    **arguments
        Fields of `DynaOptions`: ``planning_steps`` (16), ``update_every`` (25), ``search_control``
        (``"uniform"``), ``horizon`` (1), ``real_share`` (``"auto"``), ``greedy_share`` (0.5),
        ``sure_share`` (None), ``pool_steps`` (``"auto"``), ``pool_rows`` (100),
        ``target_update_gradient_steps`` (100). All others go to ``agent_class``; its
        ``gradient_steps`` takes precedence over the number above.

    Returns
    -------
    An instance of ``agent_class``: `learn`, `predict` and `save` as usual. Its world model is
    ``agent.replay_buffer.world_model``. `save_run` and `load_run` keep both together.

    Examples
    --------
    >>> from stable_baselines3 import DQN
    >>> from losse.dyna import make_dyna
    >>> agent = make_dyna(DQN, "CartPole-v1", world_model="losse", planning_steps=4, seed=0)
    >>> agent = agent.learn(200)
    >>> agent.replay_buffer.world_model.n_transitions
    200
    """
    _require_off_policy(agent_class)
    policy, env, world_model = _in_order(agent_class, positional, arguments)
    check_model(world_model, model_options)
    options, agent_arguments = DynaOptions.taken_from(arguments, options)
    _refuse(agent_arguments)
    env = maybe_make_env(env, agent_arguments.get("verbose", 0))
    if not hasattr(env, "observation_space"):
        raise TypeError(f"env={env!r} is no environment: give one of Gymnasium's, or its id.")
    require_observations(env.observation_space)
    require_suitable_agent(agent_class.__name__.lower(), env.action_space)
    require_together(agent_class, world_model, env.observation_space)
    policy = _suitable_policy(agent_class, policy, env.observation_space)
    n_gradient_steps = 1 if world_model == "model-free" else 1 + options.planning_steps
    agent_arguments.setdefault("gradient_steps", n_gradient_steps)
    if world_model in MODEL_FREE:
        options = replace(options, planning_steps=0)
    agent = agent_class(
        policy,
        env,
        replay_buffer_class=buffer_class(env.observation_space),
        replay_buffer_kwargs=asdict(options),  # plain values, which every version can read
        **agent_arguments,
    )
    discrete = isinstance(agent.action_space, spaces.Discrete)
    if discrete and "target_update_interval" not in agent_arguments:
        _pace_target(agent, options.target_update_gradient_steps)
    buffer = agent.replay_buffer
    assert isinstance(buffer, DynaReplayBuffer)
    buffer.bind(agent, model_for(agent, world_model, model_options))
    return agent


def _in_order(
    agent_class: Any, positional: tuple[Any, ...], arguments: dict[str, Any]
) -> tuple[Any, Any, Any]:
    """Policy, environment and world model, given by name or by position; names are taken out."""
    names = ["env", "world_model"]
    if positional and _is_policy(agent_class, positional[0]):
        names.insert(0, "policy")
    if len(positional) > len(names):
        raise TypeError(
            f"{positional[len(names)]!r} is too many: after make_dyna({agent_class.__name__}, "
            f"{', '.join(names)} all further arguments are named."
        )
    for name, value in zip(names, positional, strict=False):
        if name in arguments:
            raise TypeError(f"{name} was given twice: {value!r} and {arguments[name]!r}.")
        arguments[name] = value
    if "env" not in arguments:
        raise TypeError("make_dyna needs env: an environment, its id or a VecEnv.")
    policy = arguments.pop("policy", None)
    return policy, arguments.pop("env"), arguments.pop("world_model", "losse")


def _suitable_policy(agent_class: Any, policy: Any, space: spaces.Space[Any]) -> Any:
    """Policy that was given, or else the usual one for such observations."""
    if not isinstance(space, spaces.Dict):
        return policy or "MlpPolicy"
    if MULTI_INPUT not in agent_class.policy_aliases:
        raise TypeError(
            f"{agent_class.__module__.partition('.')[0]}'s {agent_class.__name__} takes no Dict of "
            "observations: use Stable-Baselines3's, or put gymnasium.wrappers.FlattenObservation "
            "around the environment."
        )
    if policy == "MlpPolicy":
        raise ValueError(
            f"policy='MlpPolicy' takes no Dict of observations: use {MULTI_INPUT!r}, or put "
            "gymnasium.wrappers.FlattenObservation around the environment."
        )
    return policy or MULTI_INPUT


def _is_policy(agent_class: Any, value: Any) -> bool:
    if inspect.isclass(value):
        return issubclass(value, BasePolicy)
    return isinstance(value, str) and value in agent_class.policy_aliases


def _require_off_policy(agent_class: Any) -> None:
    if not (inspect.isclass(agent_class) and issubclass(agent_class, OffPolicyAlgorithm)):
        raise TypeError(
            f"agent_class={agent_class!r} is not an off-policy agent of Stable-Baselines3 or SBX: "
            "imagined transitions come from a replay buffer, which on-policy agents such as PPO "
            "do not have. Use DQN, QRDQN, SAC, TD3, TQC or CrossQ."
        )


def _refuse(agent_kwargs: Mapping[str, Any]) -> None:
    for name in ("replay_buffer_class", "replay_buffer_kwargs"):
        if agent_kwargs.get(name) is not None:
            raise ValueError(
                f"{name}={agent_kwargs[name]!r} cannot be given: make_dyna uses DynaReplayBuffer. "
                "Its options are arguments of make_dyna."
            )
    if agent_kwargs.get("n_steps", 1) != 1:
        raise ValueError(
            f"n_steps={agent_kwargs['n_steps']} is not possible with Dyna: imagined transitions "
            "are single steps, and so must be the real ones beside them. Use n_steps=1."
        )


def _pace_target(agent: Any, gradient_steps: int) -> None:
    """Set how often the target network is updated, in the steps that the agent counts."""
    if agent.train_freq.unit is not TrainFrequencyUnit.STEP:
        return  # how many steps there are to a training call is not known
    per_call = agent.gradient_steps if agent.gradient_steps > 0 else agent.train_freq.frequency
    calls = max(1, round(gradient_steps / per_call * agent.train_freq.frequency))
    # SBX has divided the interval by the number of environments already, SB3 divides when it asks.
    own = type(agent).__module__.startswith("sbx.")
    agent.target_update_interval = calls if own else calls * agent.n_envs
