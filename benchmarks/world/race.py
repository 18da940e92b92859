"""A race of world models: all of them take turns at learning and at imagining."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, get_args

import gymnasium
import numpy as np

from benchmarks.display import live_line, pin
from benchmarks.timing import Contender, Timings, clock
from losse import FTLRegressor, LosseEncoder
from losse.runs.record import Record
from losse.world import WorldModel, make_world_model
from losse.world.transitions import Transitions

Setting = Literal["discrete", "continuous"]
SETTINGS: tuple[Setting, ...] = get_args(Setting)
WINDOW_ONLY = ("online", "si")
"""Models that know nothing but the latest transitions: untimed, they get no more than these."""
WINDOW = 256
STATES = (1, 512, 100_000)
"""Parallel states of imagination."""


class Plan(NamedTuple):
    """One setting of the paper."""

    env_id: str
    n_grids: int
    batch: int
    sizes: tuple[int, ...]
    """Transitions learned before the timed updates."""
    updates: int
    """Timed at each size."""


PLANS: dict[str, dict[Setting, Plan]] = {
    "full": {
        "discrete": Plan("Acrobot-v1", 30, 25, (500, 1_000, 2_500, 5_000, 10_000, 20_000), 20),
        "continuous": Plan("Hopper-v5", 300, 250, (1_000, 2_500, 10_000), 2),
    },
    "quick": {
        "discrete": Plan("Acrobot-v1", 30, 25, (100, 200), 2),
        "continuous": Plan("Hopper-v5", 30, 25, (50, 100), 1),
    },
}


def collect(env: gymnasium.Env[Any, Any], n: int, seed: int) -> Transitions:
    """Transitions of a random policy."""
    env.action_space.seed(seed)
    obs, _ = env.reset(seed=seed)
    rows = []
    for _ in range(n):
        action = env.action_space.sample()
        following, reward, terminated, truncated, _ = env.step(action)
        rows.append((obs, action, float(reward), following, terminated))
        obs = env.reset()[0] if terminated or truncated else following
    return Transitions.from_steps(rows)


def make(method: str, env: gymnasium.Env[Any, Any], plan: Plan, seed: int) -> WorldModel:
    """A model with the paper's settings."""
    options: dict[str, Any] = {}
    if method == "losse":
        encoder = LosseEncoder(plan.n_grids, n_bins=10, grid_dim=2)
        solver = "sparse" if plan.n_grids == 30 else "auto"
        options["regressor"] = FTLRegressor(encoder, solver=solver, ridge=1e-5)
    return make_world_model(method, env.observation_space, env.action_space, seed=seed, **options)


class Race:
    """All models of one setting, side by side."""

    def __init__(
        self, plan: Plan, methods: Sequence[str], seed: int, step: Callable[[str], None]
    ) -> None:
        self.plan = plan
        self._step = step
        env = gymnasium.make(self.plan.env_id)
        n = self.plan.sizes[-1] + (self.plan.updates + 1) * self.plan.batch
        self.rows = collect(env, n, seed)
        self.models: dict[str, WorldModel] = {m: make(m, env, plan, seed) for m in methods}
        env.close()

    def _part(self, first: int, last: int) -> Transitions:
        return self.rows.take(slice(first, last))

    def learn(self) -> dict[str, list[Timings]]:
        """Timings of the updates at every size."""
        plan = self.plan
        timings: dict[str, list[Timings]] = {name: [] for name in self.models}
        done = 0
        for turn, size in enumerate(plan.sizes):
            last = size + plan.updates * plan.batch
            for name, model in self.models.items():
                self._step(f"{name} to {size:,}")
                first = max(done, size - WINDOW) if name in WINDOW_ONLY else done
                model.update(*self._part(first, size))
                if turn == 0:  # the first call of this length compiles
                    model.update(*self._part(last, last + plan.batch))
                timings[name].append(Timings())
            contenders = [self._learning(name) for name in self.models]
            for update in range(plan.updates):
                self._step(f"{size:,} transitions, update {update + 1}")
                begin = size + update * plan.batch
                for contender in contenders if update % 2 == 0 else reversed(contenders):
                    clock(contender, begin, begin + plan.batch, timings[contender.name][-1])
            done = last
        return timings

    def imagine(self) -> dict[str, dict[int, Timings]]:
        """Timings of single steps from many states at once."""
        timings: dict[str, dict[int, Timings]] = {name: {} for name in self.models}
        for n in STATES:
            chosen = np.random.default_rng(0).integers(0, len(self.rows.obs), n)
            obs, actions = self.rows.obs[chosen], self.rows.actions[chosen]
            repeats = 3 if n > 1_000 else 30
            for model in self.models.values():
                model.step(obs, actions)
            for name in self.models:
                timings[name][n] = Timings()
            for _ in range(repeats):
                for name, model in self.models.items():
                    self._step(f"{name} imagines {n:,} states")
                    clock(_stepping(name, model, obs, actions), 0, n, timings[name][n])
        return timings

    def _learning(self, name: str) -> Contender:
        model = self.models[name]
        return Contender(name, lambda i, j: model.update(*self._part(i, j)), self.plan.batch)


def _stepping(name: str, model: WorldModel, obs: Any, actions: Any) -> Contender:
    return Contender(name, lambda i, j: model.step(obs, actions), len(obs))


def measure(
    preset: str, methods: Sequence[str], seed: int, core: int | None, setting: Setting
) -> list[Record]:
    """Records of all models in one setting."""
    pin(core)
    begin = time.perf_counter()
    plan = PLANS[preset][setting]
    with live_line(setting) as step:
        race = Race(plan, methods, seed, step)
        learned, imagined = race.learn(), race.imagine()
    seconds = time.perf_counter() - begin
    records = []
    for name in race.models:
        updates = [t.summary() for t in learned[name]]
        per_update = [u["median_seconds_per_row"] * plan.batch for u in updates]
        records.append(
            Record(
                experiment="bench-world",
                method=name,
                setting=setting,
                seed=seed,
                score=per_update[-1],
                curve=list(zip(map(float, plan.sizes), per_update, strict=True)),
                settings={"preset": preset, "methods": methods} | plan._asdict(),
                seconds=seconds,
                details={
                    "updates": updates,
                    "steps": {n: t.summary() for n, t in imagined[name].items()},
                },
            )
        )
    return records
