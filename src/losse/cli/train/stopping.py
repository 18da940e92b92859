"""Requests to stop a training: Ctrl-C and SIGTERM."""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType
from typing import Any, Self

SIGNALS = (signal.SIGINT, signal.SIGTERM)
REQUEST = b"\nStopping: the run is saved when the present step is done. Once more stops at once.\n"


class StopRequest:
    """A request to stop, by Ctrl-C or SIGTERM, which waits until it is asked for.

    Before anybody has asked, and when it comes a second time, it raises `KeyboardInterrupt` at
    once.

    >>> with StopRequest() as request:
    ...     before = request.made()
    ...     signal.raise_signal(signal.SIGTERM)
    ...     before, request.made(), request.exit_code
    (False, True, 143)
    """

    def __init__(self) -> None:
        self._received: signal.Signals | None = None
        self._heard = False

    def __enter__(self) -> Self:
        self._before: dict[signal.Signals, Any] = {}
        for one in SIGNALS:
            self._before[one] = signal.signal(one, self._receive)
        return self

    def __exit__(self, *error: object) -> None:
        for one, handler in self._before.items():
            signal.signal(one, handler)

    def made(self) -> bool:
        """Whether there is a request. From now on requests wait for the next such question."""
        self._heard = True
        return self._received is not None

    @property
    def name(self) -> str:
        """What stops the training, in words."""
        return "SIGTERM" if self._received == signal.SIGTERM else "Ctrl-C"

    @property
    def exit_code(self) -> int:
        """Exit code of a command that this request ended, as shells have it."""
        return 128 + (self._received or signal.SIGINT)

    def _receive(self, number: int, frame: FrameType | None) -> None:
        again = self._received is not None
        self._received = signal.Signals(number)
        if again or not self._heard:
            raise KeyboardInterrupt
        os.write(sys.__stderr__.fileno() if sys.__stderr__ else 2, REQUEST)  # safe in a handler
