"""`Guarded`: an object with a lock, which copies and pickles wait for, but predictions do not."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from copy import deepcopy
from threading import RLock
from typing import Any, Self, TypeVar

Result = TypeVar("Result")
UNCOPIED = ("_lock", "_published", "_past", "_checked_parameters")
"""Attributes that copies do not have."""
PATIENCE = 2e-4
"""Seconds between two looks at whether something was published."""


class Guarded:
    """An object that one thread at a time changes, reads or copies.

    Its methods hold `lock` while they change or read what it knows. A copy (shallow copies are
    deep ones, too, since two objects with two locks must not share anything) or a pickle is that of
    one moment: it never holds half of a change that another thread is making. A pickle is made of a
    copy, and so takes the memory of the object twice for a while.

    Examples
    --------
    >>> class Counter(Guarded):
    ...     def __init__(self):
    ...         self.counts = [0, 0]
    ...     def count(self):
    ...         with self.lock:
    ...             self.counts[0] += 1
    ...             self.counts[1] += 1
    >>> counter = Counter()
    >>> counter.count()
    >>> other = deepcopy(counter)
    >>> other.counts, other.lock is counter.lock
    ([1, 1], False)
    """

    @property
    def lock(self) -> RLock:
        """Held by whoever changes or reads the object: a lock that its owner may take again."""
        lock: RLock | None = self.__dict__.get("_lock")
        return self.__dict__.setdefault("_lock", RLock()) if lock is None else lock

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Hold the lock for a change, while other threads read what was there before.

        What they read is `_snapshot`, which is made only if there are other threads.
        """
        with self.lock:
            outermost = self.__dict__.get("_published") is None
            if outermost and threading.active_count() > 1:
                self._published = self._snapshot()
            try:
                yield
            finally:
                if outermost:
                    self._published = None

    def read(self, how: Callable[[Any], Result]) -> Result:
        """What a function makes of the object; while it is being changed, of its last snapshot.

        Never waits for a change, unless it began when there was no other thread.
        """
        lock = self.lock
        while not lock.acquire(timeout=PATIENCE):
            if (snapshot := self.__dict__.get("_published")) is not None:
                return how(snapshot)
        try:
            return how(self._live())
        finally:
            lock.release()

    def _snapshot(self) -> Any:
        """What other threads read during a change: it stays as it is. None: they wait."""
        return None

    def _live(self) -> Any:
        """The same as it is now, while the lock is held."""
        return self

    def __getstate__(self) -> dict[str, Any]:
        return self._copied({})

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        cls = type(self)
        copied = cls.__new__(cls)
        memo[id(self)] = copied
        copied.__dict__.update(self._copied(memo))
        return copied

    def _copied(self, memo: dict[int, Any]) -> dict[str, Any]:
        with self.lock:
            own = {name: value for name, value in vars(self).items() if name not in UNCOPIED}
            return deepcopy(own, memo)


@contextmanager
def locked(*objects: Guarded) -> Iterator[None]:
    """Hold the locks of several objects, in an order in which no two threads block each other."""
    with ExitStack() as stack:
        for each in sorted(objects, key=id):
            stack.enter_context(each.lock)
        yield
