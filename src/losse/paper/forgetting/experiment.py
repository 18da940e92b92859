"""Figure 1: what world models forget of the places that an agent no longer visits.

A tabular Q-learner (`q_learner`) looks for the goal of the Gridworld. Its visits are wide
at first and end on the shortest path. Every 25 steps (appendix D) each world model learns the new
transitions; it does not act on the agent, so all models see the same stream. Now and then all are
tested at the centres of all cells, with every action, against the true dynamics without noise. A
prediction is wrong if it is further than 0.05 from the true next position.

The score is the share of wrong predictions at the end, over all pairs of a cell and an action that
the agent has visited.

- `losse`: the paper's settings, 30 grids of 10 x 10 bins and the sparse update; one regressor for
  each action.
- `recommended`: what `LosseWorldModel` is by default; in the plane, the same with a ridge of 1e-4.
- `online`, `full-replay`, `si`, `coreset`: the paper's networks of 3 x 32 units.

Networks have the best learning rate, and Synaptic Intelligence the best xi and c, on streams of
other seeds. Best is the lowest mean error of predictions made just before a batch is learned, which
is what an agent would have had. The score would favour networks that hardly learn: one that
predicts no move is never wrong by more than a step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from losse.runs.experiment import SWEEP_SEED, CommonSettings, Run, best, methods_of
from losse.runs.record import Record
from losse.runs.table import Table, mean_of, mean_score
from losse.world.neural.memories import MEMORIES

if TYPE_CHECKING:
    from matplotlib.animation import Animation
    from matplotlib.figure import Figure

    from losse.paper.forgetting.places import Frame
    from losse.world.transitions import Transitions

NAME = "forgetting"
ENVIRONMENT = "losse/Gridworld-v0"
METHODS = ("online", "losse", "recommended", *(name for name in MEMORIES if name != "online"))
CONTROLS = ()
NEEDS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("losse", "recommended"), ("gymnasium",)),
    **dict.fromkeys(MEMORIES, ("gymnasium", "jax", "flax", "optax")),
}
SEEDS_AT_ONCE: Mapping[str, int] = {}

LEARNING_RATES = (1e-5, 3e-5, 1e-4, 3e-4, 1e-3)
CANDIDATES: Mapping[str, Mapping[str, Sequence[float]]] = {
    "online": {"learning_rate": LEARNING_RATES},
    "full-replay": {"learning_rate": LEARNING_RATES},
    "coreset": {"learning_rate": LEARNING_RATES},
    # With the rate that the online network does best with, which it is but for the penalty.
    "si": {"learning_rate": (3e-5,), "xi": (1e-5, 1e-3, 1e-1), "c": (1e-2, 1e-1, 1.0, 10.0)},
}
EPSILON = (0.5, 0.0)
"""The agent's share of random actions, at the first and at the last step."""
UPDATE_EVERY = 25
MAPPED_SEED = 0
"""The seed whose maps are kept and drawn."""


class Preset(NamedTuple):
    """Size of the experiment in a preset."""

    steps: int
    frame_every: int
    seeds: int
    sweep_seeds: int


PRESETS = {"quick": Preset(6000, 150, 3, 1), "paper": Preset(9000, 150, 10, 2)}


@dataclass(frozen=True, kw_only=True)
class Settings(CommonSettings):
    """Draw where world models are wrong while an agent's visits narrow (figure 1)."""

    steps: int | None = None
    """Steps of the agent; by default those of the preset."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.steps is not None and self.steps < 1:
            raise ValueError(f"steps must be at least 1, got {self.steps}")


def sweep(settings: Settings) -> list[Run]:
    """All candidates of the networks, on seeds of their own."""
    preset = PRESETS[settings.preset]
    return [
        Run(
            NAME, method, ENVIRONMENT, SWEEP_SEED + k,
            options_of(settings) | dict(zip(grid, values, strict=True)), swept=tuple(grid),
        )
        for method in methods_of(settings, METHODS)
        for grid in [CANDIDATES.get(method, {})]
        if grid
        for values in product(*grid.values())
        for k in range(preset.sweep_seeds)
    ]  # fmt: skip


def final(settings: Settings, swept: list[Record]) -> list[Run]:
    """All methods and seeds, with what the sweep chose."""
    runs = []
    for method in methods_of(settings, METHODS):
        options = options_of(settings)
        if method in CANDIDATES:
            options |= best(swept, method, None, tuple(CANDIDATES[method]))
        else:
            options |= {"regressor": "paper" if method == "losse" else None}
        seeds = settings.seeds or PRESETS[settings.preset].seeds
        runs += [Run(NAME, method, ENVIRONMENT, seed, options) for seed in range(seeds)]
    return runs


def execute(settings: Settings, runs: Sequence[Run]) -> list[Record]:
    """Let a model learn the stream of each seed, and test it everywhere along the way."""
    from losse.paper.forgetting.places import follow

    records = []
    for run in runs:
        frames = list(
            follow(
                stream_of(run),
                model_of(run),
                update_every=run.options["update_every"],
                frame_every=run.options["frame_every"],
            )
        )
        records.append(record_of(run, frames, with_maps=run.seed == MAPPED_SEED))
    return records


def table(records: Sequence[Record]) -> Table:
    """The shares of wrong predictions at the end.

    Times of updates are in the records, but not here: `losse bench world` measures them in peace.
    """
    columns = ("method", "wrong where it was", "where it is now", "everywhere", "by half a step")
    rows = []
    for method in METHODS:
        own = [record for record in records if record.method == method]
        if own:
            now, everywhere = (
                mean_of([r.details[name][-1][1] for r in own]) for name in ("recent", "all")
            )
            strict = mean_of([record.details["strict"] for record in own])
            rows.append((method, mean_score(own, method), now, everywhere, strict))
    return Table(columns, rows)


def draw(records: Sequence[Record]) -> dict[str, Figure | Animation]:
    """Figure 1, in print and moving, and the shares of wrong predictions over time."""
    from losse.paper.forgetting.figures import animate, draw_maps, draw_shares

    pair = [record for record in records if record.method in METHODS[:2]] or records
    drawn: dict[str, Figure | Animation] = {"shares": draw_shares(records)}
    if mapped(pair):
        drawn |= {"maps": draw_maps(pair), "animation": animate(pair)}
    if len(mapped(records)) > len(mapped(pair)):
        drawn["maps-all"] = draw_maps(records)
    return drawn


def options_of(settings: Settings) -> dict[str, Any]:
    """Options that decide the stream, and when models learn and are tested."""
    preset = PRESETS[settings.preset]
    return {
        "steps": settings.steps or preset.steps,
        "epsilon": EPSILON,
        "update_every": UPDATE_EVERY,
        "frame_every": preset.frame_every,
    }


def stream_of(run: Run) -> Transitions:
    """Transitions of the agent of this seed, the same for all methods."""
    from losse.envs import Gridworld
    from losse.paper.forgetting.places import CELLS
    from losse.paper.forgetting.q_learner import explore

    # Without rewards on the way and without a limit, the agent explores until it finds the goal.
    env = Gridworld(reward="sparse")
    options = run.options
    return explore(env, options["steps"], cells=CELLS, epsilon=options["epsilon"], seed=run.seed)


def model_of(run: Run) -> Any:
    """The world model of a run's method, with its hyperparameters."""
    from losse.envs import Gridworld
    from losse.world import make_world_model

    env = Gridworld()
    names = ("learning_rate", "xi", "c", "regressor")
    chosen = {name: run.options[name] for name in names if name in run.options}
    method = "losse" if run.method == "recommended" else run.method
    return make_world_model(
        method, env.observation_space, env.action_space, seed=run.seed, **chosen
    )


def record_of(run: Run, frames: Sequence[Frame], *, with_maps: bool) -> Record:
    """The shares over time, and the maps behind them if they are to be drawn."""
    shares = [frame.shares for frame in frames]
    steps = [frame.step for frame in frames]
    seconds = [second for frame in frames for second in frame.update_seconds]
    surprise = float(np.mean([error for frame in frames for error in frame.surprises]))
    if run.swept:
        return run.record(surprise, seconds=round(sum(seconds), 3))
    details: dict[str, Any] = {
        "update_ms": round(1e3 * float(np.median(seconds)), 4),
        "surprise": surprise,
        "strict": shares[-1]["strict"],
    }
    for name in ("recent", "all"):
        details[name] = [(step, round(s[name], 4)) for step, s in zip(steps, shares, strict=True)]
    if with_maps:
        details["maps"] = [{"step": frame.step, **frame.maps} for frame in frames]
    curve = [(step, round(s["seen"], 4)) for step, s in zip(steps, shares, strict=True)]
    return run.record(shares[-1]["seen"], seconds=round(sum(seconds), 3), curve=curve,
                      details=details)  # fmt: skip


def mapped(records: Sequence[Record]) -> list[Record]:
    """Those records that hold maps, in the order of the methods."""
    own = {record.method: record for record in records if "maps" in record.details}
    return [own[method] for method in METHODS if method in own]
