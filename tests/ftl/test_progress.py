"""Progress is one line on a terminal, and silence elsewhere."""

import io
import sys

import pytest

from losse.ftl import checkpoint
from losse.ftl.checkpoint import byte_progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def clock(monkeypatch):
    """A clock that moves by hand."""
    now = [100.0]
    monkeypatch.setattr(checkpoint.time, "monotonic", lambda: now[0])
    return now


def run(clock, stream, monkeypatch, seconds):
    monkeypatch.setattr(sys, "stderr", stream)
    report = byte_progress("Saving")
    for done in range(1, 5):
        clock[0] += seconds
        report(done * 10**9, 4 * 10**9)
    return stream.getvalue()


def test_a_terminal_shows_one_line_that_ends(clock, monkeypatch):
    text = run(clock, Terminal(), monkeypatch, seconds=2.0)
    assert [line.rstrip() for line in text.split("\r")] == [
        "",
        "Saving:  25 % of 4.00 GB, 0.50 GB/s",
        "Saving:  50 % of 4.00 GB, 0.50 GB/s",
        "Saving:  75 % of 4.00 GB, 0.50 GB/s",
        "Saving: 100 % of 4.00 GB, 0.50 GB/s",
    ]
    assert text.count("\n") == 1
    assert text.endswith("\n")


def test_what_is_done_at_once_shows_nothing(clock, monkeypatch):
    assert run(clock, Terminal(), monkeypatch, seconds=0.01) == ""


def test_a_file_or_pipe_gets_nothing(clock, monkeypatch):
    assert run(clock, io.StringIO(), monkeypatch, seconds=2.0) == ""


def test_nothing_to_do(clock, monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    report = byte_progress("Saving")
    clock[0] += 1
    report(0, 0)
    assert sys.stderr.getvalue().rstrip() == "\rSaving: 100 % of 0.00 GB, 0.00 GB/s"
