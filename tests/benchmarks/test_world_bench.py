"""The timings of world models: every model takes its turns, and promises are judged by ratios."""

import pytest

pytest.importorskip("jax")

from benchmarks.world import Settings

from benchmarks import world_report, world_worker
from losse.runs.record import Record
from losse.runs.store import read_records, write_record


def record(method, per_row, cpu=None, setting="discrete"):
    """A record of updates with these seconds per row."""
    sizes = [500, 2_500, 20_000]
    updates = [{"median_seconds_per_row": s, "mean_cpu_seconds_per_row": cpu or s} for s in per_row]
    steps = {n: updates[0] for n in ("1", "512", "100000")}
    return Record(
        experiment="bench-world", method=method, setting=setting, seed=0, score=per_row[-1],
        curve=list(zip(sizes, per_row, strict=True)),
        settings={
            "sizes": sizes, "batch": 25, "env_id": "Acrobot-v1", "n_grids": 30, "updates": 3,
        },
        details={"updates": updates, "steps": steps},
    )  # fmt: skip


def verdicts(*records):
    found = {(str(r.setting), r.method): r for r in records}
    return {m.name: m.met for m in world_report.judge(found)}


def test_a_slow_machine_does_not_change_the_verdict():
    fast = verdicts(record("losse", [1e-6, 1e-6, 1e-6]), record("online", [1e-5] * 3))
    slower = verdicts(record("losse", [1e-6, 1e-6, 3e-6]), record("online", [1e-5, 1e-5, 3e-5]))
    assert all(fast.values())
    assert fast == slower


def test_growth_and_slowness_are_seen():
    grown = verdicts(record("losse", [1e-6, 1e-6, 2e-6]), record("online", [1e-5] * 3))
    assert [name for name, met in grown.items() if not met] == [
        "update of Losse after 20,000 transitions / after 2,500"
    ]
    slow = verdicts(record("losse", [5e-6] * 3), record("online", [1e-5] * 3))
    assert sum(not met for met in slow.values()) == 4  # and 512 states take 2.6 ms


def test_processor_time_counts_too():
    wasteful = verdicts(record("losse", [1e-6] * 3, cpu=9e-6), record("online", [1e-5] * 3))
    assert not any(met for name, met in wasteful.items() if name.startswith("update of 25"))


def test_every_model_is_timed_at_every_size(tmp_path, monkeypatch):
    plan = world_worker.Plan("CartPole-v1", 5, 4, (8, 16), 2)
    monkeypatch.setitem(world_worker.PLANS, "quick", {"discrete": plan})
    monkeypatch.setattr(world_worker, "STATES", (1, 6))
    settings = Settings(preset="quick", methods=("losse", "online"), results=tmp_path)
    seen = []
    for made in world_worker.measure(settings, "discrete", seen.append):
        write_record(made, tmp_path)
    records = read_records(tmp_path)
    assert {r.method for r in records} == {"losse", "online"}
    for made in records:
        assert [n for n, _ in made.curve] == [8, 16]
        assert [u["rows"] for u in made.details["updates"]] == [8, 8]
        assert list(made.details["steps"]) == ["1", "6"]
        assert made.score > 0
    assert any("16 transitions" in text for text in seen)


def test_table_and_figure_show_all_settings(tmp_path):
    records = [
        record(method, [1e-6] * 3, setting=setting)
        for method in ("losse", "online", "si")
        for setting in ("discrete", "continuous")
    ]
    text = world_report.table(records)
    assert text.count("| losse |") == 4
    assert "Continuous: milliseconds per update" in text
    world_report.draw(records, tmp_path / "growth.png")
    assert (tmp_path / "growth.png").stat().st_size > 1000
