"""Profile of one Dyna run: a clock that the parts of the run switch as they begin and end."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any
from unittest import mock

from losse.runs.record import Record

IMPORTS, SETUP, ACTING, REPLAY = "imports", "setup", "acting and environment", "replay, real rows"
GRADIENT, EVALUATION = "gradient steps", "evaluation"
SEARCH, POLICY = "imagination: search control", "imagination: actions"
STEP, LAYOUT = "imagination: model", "imagination: checks and layout"
LEARNING, ERRORS = "update: learning", "update: errors before it"
MODEL = (SEARCH, POLICY, STEP, LAYOUT, LEARNING, ERRORS)
"""The world model's parts."""
OTHERS = (ACTING, REPLAY, GRADIENT)
"""What an agent takes without a model."""
TRAINING = (*OTHERS, *MODEL)
"""What a share is a share of."""
PARTS = (IMPORTS, SETUP, *TRAINING, EVALUATION)
CALLED = (GRADIENT, *MODEL)
"""Parts that do the same in each call, so that the first one tells what loading costs."""

Seconds = tuple[float, float]
"""Seconds by the clock, and on the processor."""


@dataclass(frozen=True)
class Job:
    """One run to profile."""

    env: str
    model: str
    steps: int | None = None
    seed: int = 0
    core: int | None = None


class Clock:
    """Shares the time out among parts: a moment belongs to the innermost one that is under way.

    >>> clock = Clock("outer")
    >>> clock.timed("inner", len)("abc")
    3
    >>> sorted(clock.read())
    ['inner', 'outer']
    """

    def __init__(self, first: str) -> None:
        self._under_way = [first]
        self._spent: dict[str, Seconds] = {}
        self._since = _now()
        self.first: dict[str, Seconds] = {}
        """Of each part, what its first call took: there libraries load and compile."""

    def timed(self, part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The same function as one of the parts."""

        @wraps(function)
        def timed(*args: Any, **kwargs: Any) -> Any:
            self._switch()
            self._under_way.append(part)
            try:
                return function(*args, **kwargs)
            finally:
                self._switch()
                self._under_way.pop()
                self.first.setdefault(part, self._spent[part])

        return timed

    def read(self) -> dict[str, Seconds]:
        """Seconds of each part so far."""
        self._switch()
        return dict(self._spent)

    def _switch(self) -> None:
        now, part = _now(), self._under_way[-1]
        wall, cpu = self._spent.get(part, (0.0, 0.0))
        self._spent[part] = (wall + now[0] - self._since[0], cpu + now[1] - self._since[1])
        self._since = now


def measure(job: Job) -> Record:
    """Profile one run on one core."""
    clock = Clock(IMPORTS)
    from benchmarks.display import pin

    pin(job.core)
    return profile(job, clock)


def profile(job: Job, clock: Clock) -> Record:
    """Train as `losse reproduce` does; the score is the model's share.

    The details have the seconds of all parts: over the whole run, of the first call of each, and
    over the second half, in which nothing is compiled any more.
    """
    half: dict[str, Seconds] = {}
    with _hooks(clock, half, job.env):
        learned = clock.timed(SETUP, _train)(job)
    whole = clock.read()
    second = {part: _minus(spent, half.get(part, (0.0, 0.0))) for part, spent in whole.items()}
    return replace(
        learned,
        score=share(whole),
        seconds=round(sum(wall for wall, _ in whole.values()), 2),
        details={
            "parts": _rounded(whole),
            "first_calls": _rounded({p: s for p, s in clock.first.items() if p in CALLED}),
            "second_half": _rounded(second),
        }
        | dict(learned.details),
    )


def share(parts: Mapping[str, Seconds], column: int = 0) -> float:
    """The world model's share of the training, by the clock (0) or on the processor (1).

    >>> share({ACTING: (2.0, 2.0), GRADIENT: (1.0, 1.0), STEP: (1.0, 3.0), EVALUATION: (9.0, 9.0)})
    0.25
    """
    return total(parts, MODEL, column) / total(parts, TRAINING, column)


def total(parts: Mapping[str, Seconds], names: tuple[str, ...] = PARTS, column: int = 0) -> float:
    """The sum of some parts."""
    return sum(parts[name][column] for name in names if name in parts)


def _train(job: Job) -> Record:
    """One run of the experiment that a task belongs to."""
    from losse.paper.control import continuous_control, discrete_control, tasks
    from losse.runs.experiment import Run

    if job.env in continuous_control.TASKS:
        options = continuous_control.options_of(job.model, job.env, job.steps)
        run = Run("bench-dyna", job.model, job.env, job.seed, options)
        return tasks.train_preset(run, continuous_control.TASKS[job.env])
    options = tasks.options_of(job.model, job.env, job.steps, discrete_control.USUAL_RATE)
    run = Run("bench-dyna", job.model, job.env, job.seed, options)
    return tasks.train_run(run, tasks.training_of(run, job.env), tasks.TASKS[job.env])


@contextmanager
def _hooks(clock: Clock, half: dict[str, Seconds], env: str) -> Iterator[None]:
    """Let the parts of a run switch the clock; ``half`` gets what it shows amidst the run."""
    import sbx

    from losse.dyna import buffer, evaluation, imagination
    from losse.dyna.search import SEARCH_CONTROLS
    from losse.paper.control import continuous_control, tasks
    from losse.world import WorldModel

    experiment = continuous_control if env in continuous_control.TASKS else tasks
    evaluations, mean_return = 0, evaluation.mean_return

    def evaluate(*args: Any) -> float:
        nonlocal evaluations
        evaluations += 1
        if evaluations == experiment.EVALUATIONS // 2:
            half.update(clock.read())
        return mean_return(*args)

    controls = {
        name: control._replace(starts=clock.timed(SEARCH, control.starts))
        for name, control in SEARCH_CONTROLS.items()
    }
    hooks = [
        *((agent, "learn", ACTING) for agent in (sbx.DQN, sbx.SAC)),
        *((agent, "train", GRADIENT) for agent in (sbx.DQN, sbx.SAC)),
        (buffer.DynaReplayBuffer, "add", REPLAY),
        (buffer.DynaReplayBuffer, "sample", REPLAY),
        (buffer.DynaReplayBuffer, "_planned", LAYOUT),
        (imagination.Imagination, "minibatches", LAYOUT),
        (imagination.Imagination, "imagine", STEP),
        (imagination.Imagination, "_actions", POLICY),
        *((buffer, name, ERRORS) for name in ("one_step_errors", "change_error_after")),
        (WorldModel, "update", LEARNING),
    ]
    with ExitStack() as stack:
        for owner, name, part in hooks:
            changed = clock.timed(part, getattr(owner, name))
            stack.enter_context(mock.patch.object(owner, name, changed))
        stack.enter_context(mock.patch.object(imagination, "SEARCH_CONTROLS", controls))
        changed = clock.timed(EVALUATION, evaluate)
        stack.enter_context(mock.patch.object(evaluation, "mean_return", changed))
        yield


def _now() -> Seconds:
    return time.perf_counter(), time.process_time()


def _minus(a: Seconds, b: Seconds) -> Seconds:
    return a[0] - b[0], a[1] - b[1]


def _rounded(parts: Mapping[str, Seconds]) -> dict[str, Seconds]:
    return {
        name: (round(parts[name][0], 4), round(parts[name][1], 4))
        for name in PARTS
        if name in parts
    }
