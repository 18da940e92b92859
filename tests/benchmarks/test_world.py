"""The timings of world models: every model takes its turns, and promises are judged by ratios."""

import pytest

pytest.importorskip("jax")

from benchmarks.world import bench, race, report
from losse.runs.record import Record
from losse.runs.store import read_records


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
    return {m.name: m.met for m in report.judge(found)}


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
    plan = race.Plan("CartPole-v1", 5, 4, (8, 16), 2)
    monkeypatch.setitem(race.PLANS, "quick", {"discrete": plan})
    monkeypatch.setattr(race, "STATES", (1, 512))
    monkeypatch.setattr(race, "pin", lambda core: None)
    monkeypatch.setattr(
        bench, "run_jobs", lambda function, jobs, workers: [(job, function(job)) for job in jobs]
    )
    bench.run(
        bench.Settings(
            preset="quick", methods=("losse", "online"), settings=("discrete",), results=tmp_path
        )
    )
    records = read_records(tmp_path / "quick")
    assert {r.method for r in records} == {"losse", "online"}
    for made in records:
        assert [n for n, _ in made.curve] == [8, 16]
        assert [u["rows"] for u in made.details["updates"]] == [8, 8]
        assert list(made.details["steps"]) == ["1", "512"]
        assert made.score > 0
    assert "| online |" in (tmp_path / "quick" / "table.md").read_text()


def test_table_and_figure_show_all_settings(tmp_path):
    records = [
        record(method, [1e-6] * 3, setting=setting)
        for method in ("losse", "online", "si")
        for setting in ("discrete", "continuous")
    ]
    text = report.table(records)
    assert text.count("| losse |") == 4
    assert "Continuous: milliseconds per update" in text
    report.draw(records, tmp_path / "growth.png")
    assert (tmp_path / "growth.png").stat().st_size > 1000


def test_unknown_models_are_refused():
    with pytest.raises(ValueError, match="methods has 'gpt'; choose from: losse"):
        bench.Settings(methods=("gpt",))
