"""`Fleet`: many workers that act in their own environments and share one world model."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

import ray

from losse.checks import check_count
from losse.distributed.cluster import DEATHS, connected, first_line
from losse.distributed.explorer import Environment, Explorer, Policy
from losse.distributed.increments import Header, Ledger
from losse.interrupts import deferred_interrupts
from losse.world import LosseWorldModel
from losse.world.transitions import Transitions

FAN_IN = 4
"""Increments that are added up at once, with all of them in memory."""


class Sync(NamedTuple):
    """What happened in one round."""

    n_transitions: int
    n_workers: int
    """Workers whose increments were counted."""
    n_deaths: int
    seconds: float


class _Task(NamedTuple):
    """A round's work of one worker: references to what it returns."""

    header: Any
    content: Any
    sums: bool


@dataclass
class _Worker:
    """One worker as its fleet sees it."""

    number: int
    actor: Any
    ready: Any
    """Reference to the spaces of its environment, when it has one."""
    checked: bool = False
    informed: bool = False
    """Whether it has the encoders of the merged model."""
    deaths: int = field(default=0, kw_only=True)
    """Since an increment of it was counted."""


class Fleet:
    """Workers in environments of their own that learn one world model together.

    Work goes in rounds. In each, every worker takes some steps. Then what they have learned since
    the round before travels and is added to ``world_model``, which comes back to them if their
    policy uses it. The sums are exact: ``world_model`` is that of one agent which has seen all
    transitions. An increment counts entirely or not at all, and once: if a worker dies, the
    transitions of its unfinished round are lost, and another worker takes its place.

    As long as the scaling and the encoders of the world model are not settled, the transitions
    themselves travel.

    Parameters
    ----------
    env_id
        Id of a registered environment, also as ``"module:id"``; or a function that makes one.
    world_model
        The model to add to; it may have learned before.
    n_workers
        Number of workers to begin with.
    policy
        A function of an observation and the worker's world model to an action; workers import it
        by its name. This model is the merged one and all that the worker has seen since. None:
        random actions, and no model comes back.
    steps_per_sync
        Steps of each worker in a round.
    travel
        ``"sums"``: workers learn, and their sums travel. ``"rows"``: transitions travel, and are
        learned where the fleet is; for increments of few transitions that are fewer bytes.
    env_kwargs
        Arguments to make the environment with.
    seed
        Seed of environments and random actions.
    max_restarts
        Times that a worker may die in a row, before any of its increments count.
    cpus_per_worker
        Processors that a worker occupies, which may be a fraction.
    start_timeout
        Seconds to wait in a round until a first worker is there, however many die on the way.
    address
        As for `losse.distributed.cluster.connected`: by default the cluster in use, or a local Ray,
        which ends when the fleet is closed.

    Attributes
    ----------
    world_model
        The model that has learned what all workers saw.
    ledger
        Which increments were counted.

    Examples
    --------
    >>> import gymnasium
    >>> from losse.distributed import Fleet
    >>> from losse.world import LosseWorldModel
    >>> env = gymnasium.make("CartPole-v1")
    >>> model = LosseWorldModel(env.observation_space, env.action_space)
    >>> with Fleet("CartPole-v1", model, n_workers=2) as fleet:  # doctest: +SKIP
    ...     fleet.run(10_000)
    ...     fleet.add_workers(2)
    ...     fleet.run(10_000)
    >>> model.n_transitions  # doctest: +SKIP
    20000
    """

    def __init__(
        self,
        env_id: Environment,
        world_model: LosseWorldModel,
        n_workers: int,
        *,
        policy: Policy | None = None,
        steps_per_sync: int = 500,
        travel: str = "sums",
        env_kwargs: Mapping[str, Any] | None = None,
        seed: int = 0,
        max_restarts: int = 3,
        cpus_per_worker: float = 1.0,
        start_timeout: float = 120.0,
        address: str | None = None,
    ) -> None:
        if not isinstance(world_model, LosseWorldModel):
            raise TypeError(
                f"world_model={world_model!r} is not a LosseWorldModel: only those can be merged."
            )
        if travel not in ("sums", "rows"):
            raise ValueError(f'travel={travel!r} is not known: use "sums" or "rows".')
        check_count("n_workers", n_workers)
        check_count("steps_per_sync", steps_per_sync)
        check_count("seed", seed, at_least=0)
        check_count("max_restarts", max_restarts, at_least=0)
        self.world_model = world_model
        self.ledger = Ledger()
        self._explorer = env_id, dict(env_kwargs or {}), policy, seed
        self._uses_model = policy is not None
        self._steps = steps_per_sync
        self._travel = travel
        self._max_restarts = max_restarts
        self._cpus = cpus_per_worker
        self._start_timeout = start_timeout
        self._workers: dict[int, _Worker] = {}
        self._tasks: dict[int, _Task] = {}
        self._faults: list[Exception] = []
        self._empty: Any = None
        self._n_started = self._n_deaths = 0
        self._stack = ExitStack()
        self._stack.enter_context(connected(address, n_workers))
        try:
            self.add_workers(n_workers)
        except BaseException:
            self.close()
            raise

    @property
    def workers(self) -> list[int]:
        """Numbers of the workers."""
        return list(self._workers)

    def add_workers(self, n: int) -> list[int]:
        """Let more workers join from the next round on; return their numbers.

        They take part as soon as the cluster has room for them.
        """
        check_count("n", n)
        numbers = list(range(self._n_started, self._n_started + n))
        self._n_started += n
        for number in numbers:
            self._start(number)
        return numbers

    def remove_workers(self, numbers: Sequence[int]) -> None:
        """Let workers leave; all that they have learned is counted already."""
        unknown = [number for number in numbers if number not in self._workers]
        if unknown:
            raise ValueError(f"numbers={unknown} are not workers: there are {self.workers}.")
        for number in numbers:
            self.ledger.end(number)
            self._tasks.pop(number, None)
            ray.kill(self._workers.pop(number).actor)

    def run(self, n_transitions: int) -> list[Sync]:
        """Go on for as many rounds as it takes to learn so many transitions more, or a few more."""
        check_count("n_transitions", n_transitions)
        syncs: list[Sync] = []
        while sum(sync.n_transitions for sync in syncs) < n_transitions:
            syncs.append(self.sync())
        return syncs

    def wait(self, n_workers: int | None = None, timeout: float = 120.0) -> int:
        """Wait until so many workers, by default all, can take part; return how many can."""
        self._faults = []
        return len(self._able(len(self._workers) if n_workers is None else n_workers, timeout))

    def sync(self) -> Sync:
        """Let every worker take its steps, and count what it has learned: one round.

        Workers that die are replaced. An error in an environment or a policy is raised, with the
        number of the worker, after all other increments of the round have been counted. A round
        that was interrupted is completed by the next call.
        """
        began = time.perf_counter()
        before = self.world_model.n_transitions
        self._faults, self._n_deaths = [], 0
        self._hand_out()
        rounds = [number for number in sorted(self._tasks) if self._arrived(number)]
        self._count_sums([number for number in rounds if self._tasks[number].sums])
        for number in [number for number in rounds if number in self._tasks]:
            self._count(number)
        if self._faults:
            raise self._faults[0]
        gained = self.world_model.n_transitions - before
        return Sync(gained, len(rounds), self._n_deaths, time.perf_counter() - began)

    def close(self) -> None:
        """End all workers, and the local Ray if there is one."""
        for worker in self._workers.values():
            ray.kill(worker.actor)
        self._workers.clear()
        self._stack.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _start(self, number: int, deaths: int = 0) -> None:
        """Start a worker, or its next incarnation."""
        incarnation = self.ledger.begin(number)
        remote = ray.remote(Explorer).options(num_cpus=self._cpus, max_restarts=0)
        actor = remote.remote(number, incarnation, *self._explorer)
        self._workers[number] = _Worker(number, actor, actor.begin.remote(), deaths=deaths)

    def _replace(self, number: int, error: Exception) -> None:
        """Begin a worker anew, because it died or did something wrong."""
        self._tasks.pop(number, None)
        worker = self._workers[number]
        ray.kill(worker.actor)
        died = isinstance(error, DEATHS)
        self._n_deaths += died
        self._start(number, worker.deaths + died)
        if not died:
            self._faults.append(error)
        elif worker.deaths >= self._max_restarts:
            self._faults.append(
                RuntimeError(
                    f"worker {number} died {worker.deaths + 1} times in a row before an increment "
                    f"of it was counted ({first_line(error)}). If it was out of memory, use fewer "
                    "workers or a smaller encoder. All other increments have been counted."
                )
            )

    def _able(self, wanted: int, timeout: float) -> list[_Worker]:
        """Workers that can take part, of which so many are waited for.

        Those that died while they started are begun anew, and waited for.
        """
        if not self._workers:
            raise ValueError("the fleet has no workers: add some by add_workers.")
        wanted = min(wanted, len(self._workers))
        deadline = time.monotonic() + timeout
        while True:
            ready = self._ready(wanted, max(0.0, deadline - time.monotonic()))
            able = [worker for worker in ready if self._suits(worker)]
            if len(able) >= wanted or self._faults or time.monotonic() >= deadline:
                return able

    def _ready(self, wanted: int, timeout: float) -> list[_Worker]:
        """Workers that have begun, or failed to, of which so many are waited for."""
        by_reference = {worker.ready: worker for worker in self._workers.values()}
        wanted = min(max(1, wanted), len(by_reference))
        ray.wait(list(by_reference), num_returns=wanted, timeout=timeout)
        done, _ = ray.wait(list(by_reference), num_returns=len(by_reference), timeout=0)
        return [by_reference[reference] for reference in done]

    def _hand_out(self) -> None:
        """Give a round's work to all workers that are there and have none."""
        sums = self.world_model.settled and self._travel == "sums"
        full = ray.put(self.world_model) if self._uses_model else None
        for worker in self._able(1, self._start_timeout):
            if worker.number in self._tasks:
                continue
            given = full
            if full is None and sums and not worker.informed:
                self._empty = self._empty or ray.put(self.world_model.like())
                given, worker.informed = self._empty, True
            explore = worker.actor.explore.options(num_returns=2)
            header, content = explore.remote(given, self._steps, sums)
            self._tasks[worker.number] = _Task(header, content, sums)
        if not self._tasks and not self._faults:
            raise TimeoutError(
                f"none of {len(self._workers)} workers could start within {self._start_timeout} s: "
                f"each needs {self._cpus} CPU, and the cluster has "
                f"{ray.available_resources().get('CPU', 0):g} left."
            )

    def _suits(self, worker: _Worker) -> bool:
        """Whether a worker's environment has the spaces of the model; if not, that is a fault."""
        if worker.checked:
            return True
        try:
            spaces = self._got(worker.number, worker.ready)
        except (ValueError, *DEATHS) as error:
            self._replace(worker.number, error)
            return False
        mine = self.world_model.observation_space, self.world_model.action_space
        if spaces != mine:
            raise ValueError(f"env_id has the spaces {spaces}, but world_model {mine}.")
        worker.checked = True
        return True

    def _arrived(self, number: int) -> bool:
        """Wait for a worker's increment; whether it is the one that counts next."""
        try:
            header: Header = self._got(number, self._tasks[number].header)
        except (ValueError, *DEATHS) as error:
            self._replace(number, error)
            return False
        return self.ledger.accepts(header)

    def _count_sums(self, numbers: list[int]) -> None:
        """Add up the sums of many workers, and count them together; if any is lost, none."""
        parts = [self._tasks[number].content for number in numbers]
        try:
            while len(parts) > FAN_IN:
                groups = (parts[k : k + FAN_IN] for k in range(0, len(parts), FAN_IN))
                parts = [_added.options(num_cpus=0).remote(group) for group in groups]
            models = ray.get(parts)
            self._commit(numbers, lambda: self.world_model.merge(*models))
        except (ray.exceptions.RayTaskError, ValueError, *DEATHS):
            return  # each is then counted by itself, or named

    def _count(self, number: int) -> None:
        """Count the increment of one worker."""
        try:
            content = self._got(number, self._tasks[number].content)
            if isinstance(content, Transitions):
                self._commit([number], lambda: self.world_model.update(*content))
            else:
                self._commit([number], lambda: self.world_model.merge(content))
        except DEATHS as error:
            self._replace(number, error)
        except ValueError as error:
            fault = ValueError(f"worker {number}: its increment cannot be learned: {error}")
            self._replace(number, fault)

    def _commit(self, numbers: list[int], learn: Callable[[], None]) -> None:
        """Learn increments and note that they count: both, or neither."""
        headers = [ray.get(self._tasks[number].header) for number in numbers]
        assert all(map(self.ledger.accepts, headers)), headers
        with deferred_interrupts():
            learn()
            self.ledger.commit(headers)
            for number in numbers:
                del self._tasks[number]
                self._workers[number].deaths = 0

    @staticmethod
    def _got(number: int, reference: Any) -> Any:
        """The value behind a reference, with errors of the environment or policy named."""
        try:
            return ray.get(reference)
        except ray.exceptions.RayTaskError as error:
            cause = error.cause
            raise ValueError(f"worker {number}: {type(cause).__name__}: {cause}") from cause


@ray.remote
def _added(references: list[Any]) -> LosseWorldModel:
    """One increment that holds what those behind some references do."""
    first, *others = ray.get(references)
    whole: LosseWorldModel = first
    whole.merge(*others)
    return whole
