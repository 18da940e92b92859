"""Agents of the demo: a DQN with Losse and one without a model, in the Gridworld."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from rich.console import Console
from stable_baselines3.common.callbacks import BaseCallback

from losse.cli.demo.views import AgentView
from losse.dyna.buffer import DynaReplayBuffer
from losse.dyna.options import Training
from losse.dyna.progress import TrainingProgress
from losse.dyna.training import train
from losse.envs import Gridworld
from losse.paper.control import tasks as control
from losse.paper.control.discrete_control import NAME, USUAL_RATE
from losse.runs.experiment import Run
from losse.world import make_world_model
from losse.world.transitions import Transitions

ENVIRONMENT = "losse/Gridworld-v0"
METHODS = ("losse", "model-free-matched")
EVALUATIONS = 40
"""Twice as many as in the experiment: there is something to see every second."""


class Trained(NamedTuple):
    """An agent's training, what came of it, and every step that it took."""

    training: Training
    result: TrainingProgress
    stream: Transitions


def train_agents(steps: int, seed: int, console: Console) -> Iterator[Trained]:
    """Train one agent after the other, with the settings of `losse reproduce discrete-control`."""
    console.print("Getting ready; the first time, Losse is compiled.")
    warm_up()
    for method in METHODS:
        options = control.options_of(method, ENVIRONMENT, steps, USUAL_RATE)
        run = Run(NAME, method, ENVIRONMENT, seed, options)
        training = control.training_of(run, ENVIRONMENT)
        training = replace(training, eval_every=max(1, steps // EVALUATIONS))
        memory = Memory()
        with AgentView(console, training) as view, warnings.catch_warnings():
            warnings.filterwarnings("ignore", category=DeprecationWarning)
            result = train(training, observer=view, callbacks=[memory])
        yield Trained(training, result, memory.stream())


def warm_up() -> None:
    """Use a world model once: what is compiled or loaded then is not the model's time later."""
    env, rng = Gridworld(), np.random.default_rng(0)
    obs, actions = rng.random((50, 2)), rng.integers(4, size=50)
    model = make_world_model(
        "losse", env.observation_space, env.action_space, **control.MODELS["losse"]
    )
    model.update(obs, actions, np.zeros(50), obs, np.zeros(50, dtype=bool))
    model.step(obs, actions)


class Memory(BaseCallback):
    """Callback that keeps hold of the agent, for the transitions in its replay buffer."""

    def _on_step(self) -> bool:
        return True

    def stream(self) -> Transitions:
        """All that the replay buffer holds, the oldest first, with positions from 0 to 1."""
        buffer = getattr(self.model, "replay_buffer", None)
        assert isinstance(buffer, DynaReplayBuffer)
        rows = np.roll(np.arange(buffer.size()), -buffer.pos)
        obs, actions, rewards, next_obs, terminated = buffer.transitions(rows)
        return Transitions(
            positions(obs),
            actions,
            rewards.astype(np.float64),
            positions(next_obs),
            terminated,
        )


def positions(rescaled: NDArray[np.floating]) -> NDArray[np.float32]:
    """Observations from -1 to 1, as the agent has them, in the environment's own units.

    >>> positions(np.array([[-1.0, 0.5]]))
    array([[0.  , 0.75]], dtype=float32)
    """
    space = Gridworld().observation_space
    assert isinstance(space, spaces.Box)
    share = (np.clip(rescaled, -1, 1) + 1) / 2
    return (space.low + share * (space.high - space.low)).astype(np.float32)
