"""Calls that signals cannot split: Ctrl-C waits until a change is complete."""

from __future__ import annotations

import signal
import threading
from importlib import import_module
from typing import Any

SIGNALS = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGALRM") if hasattr(signal, name)
)
"""Signals whose handlers commonly raise."""

try:  # without the conversion to enumerations, which costs more than the rest
    _plain: Any = import_module("_signal")
except ImportError:  # not CPython
    _plain = signal
_get, _set = _plain.getsignal, _plain.signal


class deferred_interrupts:  # noqa: N801  # used like a function
    """Hold signals back while a block changes state; their handlers run when it is through.

    Python runs signal handlers between any two steps of the main thread. One that raises, as that
    of Ctrl-C does, would leave a change half made. In other threads there is nothing to hold back.

    Examples
    --------
    >>> import signal
    >>> done = []
    >>> try:
    ...     with deferred_interrupts():
    ...         signal.raise_signal(signal.SIGINT)
    ...         done.append("all of it")
    ... except KeyboardInterrupt:
    ...     print(*done)
    all of it
    """

    __slots__ = ("_arrived", "_handlers")

    def __enter__(self) -> None:
        self._arrived: list[tuple[Any, ...]] = []
        self._handlers: list[tuple[int, Any]] = []
        if threading.current_thread() is not threading.main_thread():
            return
        try:
            for number in SIGNALS:
                handler = _get(number)
                if callable(handler):
                    self._handlers.append((number, handler))
                    _set(number, self._hold)
        except BaseException:  # a signal came before all were held back
            self._release()
            raise

    def __exit__(self, *error: object) -> None:
        self._release()
        handlers = dict(self._handlers)
        for call in self._arrived:
            handlers[call[0]](*call)

    def _hold(self, *call: Any) -> None:
        self._arrived.append(call)

    def _release(self) -> None:
        for number, handler in self._handlers:
            _set(number, handler)
