"""The demo: one stream of `forgetting`, two models, live or in plain lines."""

import io

import pytest

pytest.importorskip("tyro")
pytest.importorskip("gymnasium")
pytest.importorskip("jax")

from rich.console import Console

from losse.cli import main
from losse.cli.demo import METHODS, Settings
from losse.cli.demo_view import LiveView, draw_map
from losse.paper import forgetting
from losse.paper.experiment import Run
from losse.paper.forgetting_places import CELLS, follow
from losse.records import read_records


@pytest.fixture(scope="module")
def frame():
    run = Run("forgetting", "losse", "x", 0, {"steps": 100, "epsilon": (0.5, 0.0)})
    stream = forgetting.stream_of(run)
    return next(follow(stream, forgetting.model_of(run), update_every=25, frame_every=100))


def test_the_demo_writes_records_and_figures(tmp_path, capsys):
    main(["demo", "--steps", "300", "--seed", "3", "--out", str(tmp_path)])
    records = {record.method: record for record in read_records(tmp_path)}
    assert list(records) == sorted(METHODS)
    for record in records.values():
        assert (record.experiment, record.seed) == ("forgetting", 3)
        assert [step for step, _ in record.curve] == [150, 300]
        assert len(record.details["maps"]) == 2
    for name in ("maps.png", "maps.svg", "shares.png", "animation.gif"):
        assert (tmp_path / name).stat().st_size > 1000
    out = capsys.readouterr().out
    assert "step 300: online: " in out
    assert "| losse | " in out


def test_without_a_terminal_there_are_ten_lines_at_most(frame):
    console = Console(file=io.StringIO(), force_terminal=False)
    with LiveView(console, ["losse"], steps=1000) as view:
        for step in range(10, 1001, 10):
            view.show([frame._replace(step=step)])
    lines = console.file.getvalue().splitlines()
    assert len(lines) == 10
    assert lines[-1].startswith("step 1000: losse: ")


def test_on_a_terminal_the_maps_are_shown_side_by_side(frame):
    console = Console(file=io.StringIO(), force_terminal=True, width=120, height=40)
    with LiveView(console, ["online", "losse"], steps=100) as view:
        view.show([frame, frame])
    shown = console.file.getvalue()
    assert "step 100 of 100" in shown
    assert "online: " in shown
    assert "losse: " in shown


def test_the_map_has_the_barrier_the_visits_and_the_errors(frame):
    lines = draw_map(frame).plain.splitlines()
    assert len(lines) == CELLS
    assert {len(line) for line in lines} == {2 * CELLS}
    everything = frame._replace(errors=1.0 * frame.seen)
    cells = frame.seen.reshape(-1, 4).any(axis=1).sum()
    assert draw_map(everything).plain.count("●") == cells
    nothing = frame._replace(errors=1.0 * ~frame.seen)
    assert draw_map(nothing).plain.count("●") == 0


@pytest.mark.parametrize(("option", "value"), [("steps", 0), ("seed", -1)])
def test_nonsense_is_refused(option, value):
    with pytest.raises(ValueError, match=f"{option} must be"):
        Settings(**{option: value})
