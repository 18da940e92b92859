"""An animated episode: what happened, and beside it what the agent had planned."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gymnasium
import matplotlib as mpl
import numpy as np
import numpy.typing as npt
from gymnasium.envs.classic_control import PendulumEnv
from matplotlib.animation import FuncAnimation, PillowWriter
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from stable_baselines3.common.callbacks import BaseCallback

from losse.runs.style import BLACK, BLUE, RC, VERMILION

if TYPE_CHECKING:
    from losse.planning import PlanningAgent
    from losse.planning.options import PlanningOptions

MOST_FRAMES = 120
MOST_LINES = 4
"""Numbers of an observation that are drawn."""
FRAMES_PER_SECOND = 12
_SEED = 2_000_000  # of the episode: neither one of training nor of an evaluation

Rows = npt.NDArray[Any]


@dataclass(frozen=True)
class Episode:
    """One episode of an agent that plans.

    Attributes
    ----------
    obs
        (steps + 1, width), flattened.
    rewards
        (steps,).
    plans
        Where each plan was expected to lead, (horizon + 1, width) each.
    pictures
        One per step as the environment renders it; none if it cannot.
    """

    obs: Rows
    rewards: Rows
    plans: list[Rows]
    pictures: list[Rows]


def animate(agent: PlanningAgent, options: PlanningOptions, path: Path) -> Path:
    """Let an agent act for one more episode, learning as before, and draw it as a GIF."""
    env = _drawable(options)
    try:
        agent.set_env(env)
        agent.envs.seed(_SEED + options.seed)
        recorder = Recorder()
        agent.learn(sys.maxsize, callback=recorder, reset_num_timesteps=False)
    finally:
        env.close()
    with mpl.rc_context(RC):
        pendulum = isinstance(env.unwrapped, PendulumEnv)
        draw(recorder.episode(), path, title=options.env, pendulum=pendulum)
    return path


class Recorder(BaseCallback):
    """Keeps the first episode of a planning agent, and ends learning with it."""

    def _on_training_start(self) -> None:
        self._obs: list[Rows] = []
        self._rewards: list[float] = []
        self._plans: list[Rows] = []
        self._pictures: list[Rows] = []
        self._look()

    def _on_step(self) -> bool:
        told = self.locals
        ended = bool(told["dones"][0])
        reached = told["infos"][0]["terminal_observation"] if ended else told["new_obs"][0]
        plan = self.model.plans[0]  # type: ignore[attr-defined]
        here = told["obs"][0]
        self._obs += [reached] if self._obs else [here, reached]
        self._rewards.append(float(told["rewards"][0]))
        self._plans.append(_flat(here[None] if plan is None else plan.observations))
        if not ended:
            self._look()
        return not ended

    def episode(self) -> Episode:
        """The episode so far."""
        seen = _flat(np.stack(self._obs))
        return Episode(seen, np.array(self._rewards), self._plans, self._pictures)

    def _look(self) -> None:
        if self.training_env.render_mode == "rgb_array":
            self._pictures.append(np.asarray(self.training_env.render()))


def draw(episode: Episode, path: Path, *, title: str, pendulum: bool = False) -> None:
    """Write an episode as a GIF: at most `MOST_FRAMES` frames, and `MOST_LINES` numbers."""
    n, width = len(episode.rewards), episode.obs.shape[1]
    shown = min(width, MOST_LINES)
    pictured = pendulum or bool(episode.pictures)
    columns = 2 if pictured else 1
    figure = Figure(figsize=(4 + 3.2 * (columns - 1), 3.4), layout="constrained")
    grid = figure.add_gridspec(shown, columns, width_ratios=[1, 1.4][-columns:])
    left = figure.add_subplot(grid[:, 0]) if pictured else None
    panels = [figure.add_subplot(grid[i, columns - 1]) for i in range(shown)]
    reach = max(len(plan) for plan in episode.plans)
    happened, planned = [], []
    for i, axes in enumerate(panels):
        low, high = episode.obs[:, i].min(), episode.obs[:, i].max()
        margin = 0.1 * max(high - low, 1e-6)
        axes.set(xlim=(0, n + reach), ylim=(low - margin, high + margin), ylabel=f"obs {i}")
        axes.tick_params(labelbottom=i == shown - 1)
        happened += axes.plot([], [], color=BLUE, label="happened")
        planned += axes.plot([], [], color=VERMILION, linestyle="--", label="planned")
    panels[-1].set_xlabel("step")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower right", ncols=2)

    figure.suptitle(title)
    figure.draw_without_rendering()
    figure.set_layout_engine("none")  # laid out once: it takes longer than the drawing

    def frame(step: int) -> list[Any]:
        for i in range(shown):
            happened[i].set_data(np.arange(step + 1), episode.obs[: step + 1, i])
            plan = episode.plans[step]
            planned[i].set_data(step + np.arange(len(plan)), plan[:, i])
        if left is not None:
            left.clear()
            left.set_axis_off()
            if pendulum:
                _hang(left, episode.obs[step], episode.plans[step])
            else:
                left.imshow(episode.pictures[step])
        figure.suptitle(f"{title}, step {step}: return {episode.rewards[:step].sum():.1f}")
        return []

    steps = np.unique(np.linspace(0, n - 1, min(n, MOST_FRAMES)).astype(int))
    film = FuncAnimation(figure, frame, frames=[int(step) for step in steps])
    film.save(path, writer=PillowWriter(fps=FRAMES_PER_SECOND), dpi=80)


def _hang(axes: Axes, now: Rows, plan: Rows) -> None:
    """A pendulum, and in fading strokes where the plan would bring it."""
    axes.set(xlim=(-1.2, 1.2), ylim=(-1.2, 1.2), aspect="equal")
    for i, (up, left, _) in enumerate(plan[1:]):
        fade = 0.5 * (1 - i / len(plan))
        axes.plot([0, -left], [0, up], color=VERMILION, alpha=fade, linewidth=2)
    axes.plot([0, -now[1]], [0, now[0]], color=BLUE, linewidth=7, solid_capstyle="round")
    axes.plot([0], [0], "o", color=BLACK, markersize=5)


def _drawable(options: PlanningOptions) -> gymnasium.Env[Any, Any]:
    """The environment, which renders pictures if it can; a pendulum is drawn without them."""
    env = gymnasium.make(options.env, **options.env_options)
    if isinstance(env.unwrapped, PendulumEnv):
        return env
    try:
        drawable = gymnasium.make(options.env, render_mode="rgb_array", **options.env_options)
        drawable.reset(seed=0)
        drawable.render()
    except Exception:  # whatever is missing, a package or a display: there are no pictures then
        return env
    env.close()
    return drawable


def _flat(rows: Rows) -> Rows:
    return rows.reshape(len(rows), -1)
