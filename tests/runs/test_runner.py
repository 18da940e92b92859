"""Runs become records once, failures stay alone, and figures need nothing but records."""

import contextlib
import os
import shlex
import signal
import subprocess
import sys
import time
from itertools import pairwise

import pytest

pytest.importorskip("tyro")

import losse.paper
from losse.cli import main
from losse.runs import runner
from losse.runs.experiment import CommonSettings, Run
from losse.runs.provenance import Environment
from losse.runs.runner import Job, group, reproduce
from losse.runs.store import Store, read_records
from losse.runs.workers import ONE_THREAD, Failure, run_jobs

from . import toy as toy_module

ALL = {f"good_x_seed{k}" for k in range(3)} | {f"bad_x_seed{k}" for k in range(3)}
SWEPT = {"bad_x_rate=0.1_seed100", "bad_x_rate=0.2_seed100"}


@pytest.fixture
def toy(monkeypatch):
    monkeypatch.setitem(losse.paper.EXPERIMENTS, "toy", losse.paper.Entry("toy", "a toy"))
    monkeypatch.setitem(sys.modules, "losse.paper.toy", toy_module)
    monkeypatch.setattr(runner, "environment", lambda: Environment({}, "0123", "x"))
    monkeypatch.setattr(toy_module, "executed", [])
    monkeypatch.setattr(toy_module, "failing", set())
    return toy_module


def run(folder, *options):
    given = ["--methods", "good", "bad", "--workers", "0", "--out", str(folder), *options]
    main(["reproduce", "toy", *given])


def names(folder, stage="runs"):
    """The records by readable names."""
    found = set()
    for record in Store(folder).read(stage):
        swept = f"_rate={record.settings['rate']}" if stage == "sweep" else ""
        found.add(f"{record.method}_{record.setting}{swept}_seed{record.seed}")
    return found


def test_a_run_becomes_one_record_with_the_sweep_apart(toy, tmp_path):
    run(tmp_path)
    assert names(tmp_path) == ALL
    assert names(tmp_path, "sweep") == SWEPT
    record = next(r for r in read_records(tmp_path) if r.method == "bad")
    assert record.settings == {"size": 10, "rate": 0.1}  # the better of the two
    assert record.experiment == "toy"
    assert record.seconds == 0.5


def test_a_finished_run_is_never_computed_again(toy, tmp_path):
    run(tmp_path)
    assert sorted(toy.executed) == sorted(ALL | SWEPT)
    toy.executed.clear()
    run(tmp_path)
    assert toy.executed == []
    Store(tmp_path).drop(lambda record: (record.method, record.seed) == ("good", 1))
    run(tmp_path, "--seeds", "4")
    assert sorted(toy.executed) == ["bad_x_seed3", "good_x_seed1", "good_x_seed3"]


def test_an_engine_changes_nothing_but_the_place(toy, tmp_path, monkeypatch):
    used = []

    def elsewhere(function, jobs, workers):
        used.append(len(jobs))
        yield from run_jobs(function, jobs, workers=0)

    monkeypatch.setattr(runner, "run_jobs_on_ray", elsewhere)
    monkeypatch.setattr(runner, "require", lambda *_, **__: None)
    toy.failing.add("bad_x_seed1")
    with pytest.raises(SystemExit):
        run(tmp_path, "--engine", "ray")
    toy.failing.clear()
    toy.executed.clear()
    run(tmp_path)  # goes on where the other has stopped
    assert toy.executed == ["bad_x_seed1"]
    assert len(used) == 2  # the sweep and the final runs
    assert names(tmp_path) == ALL


def test_a_failure_is_told_and_stops_nothing_else(toy, tmp_path, capsys):
    toy.failing.add("bad_x_seed1")
    with pytest.raises(SystemExit) as stop:
        run(tmp_path)
    assert stop.value.code == 1
    out, err = capsys.readouterr()
    assert "ArithmeticError: told to fail" in out
    assert "Traceback" in out
    assert "1 runs failed: bad_x_seed1" in err
    assert names(tmp_path) == ALL - {"bad_x_seed1"}
    assert (tmp_path / "scores.png").exists()

    toy.failing.clear()
    toy.executed.clear()
    run(tmp_path)
    assert toy.executed == ["bad_x_seed1"]


def test_a_method_whose_sweep_failed_has_no_final_runs(toy, tmp_path, capsys):
    toy.failing.add("bad_x_rate=0.1_seed100")
    with pytest.raises(SystemExit) as stop:
        run(tmp_path)
    assert stop.value.code == 1
    assert "bad_x_rate=0.1_seed100" in capsys.readouterr().err
    assert {record.method for record in read_records(tmp_path)} == {"good"}


def test_records_of_other_settings_are_not_mixed_in(toy, tmp_path, capsys):
    run(tmp_path)
    toy.executed.clear()
    with pytest.raises(SystemExit) as stop:
        run(tmp_path, "--size", "20")
    assert stop.value.code == 2
    err = capsys.readouterr().err
    assert "size 10, now 20" in err
    assert "--out" in err
    assert toy.executed == []
    while "`" in err:  # what it tells to do helps: the sweep first, then the final runs
        main(shlex.split(err.split("`")[1])[1:])
        with contextlib.suppress(SystemExit):
            run(tmp_path, "--size", "20")
        err = capsys.readouterr().err
    assert names(tmp_path) == ALL
    assert {record.settings["size"] for record in read_records(tmp_path)} == {20}


def test_a_record_that_is_not_of_its_run_is_refused(toy, tmp_path, monkeypatch, capsys):
    honest = toy.execute
    monkeypatch.setattr(toy, "execute", lambda settings, runs: honest(settings, runs)[::-1])
    with pytest.raises(SystemExit):
        run(tmp_path, "--methods", "good")
    assert "not those of its runs" in capsys.readouterr().out
    assert names(tmp_path) == {"good_x_seed2"}  # the one that is alone in its job


def test_the_plot_needs_nothing_but_the_records(toy, tmp_path, monkeypatch):
    run(tmp_path)
    files = ["table.md", "table.csv", "scores.svg", "scores.png"]
    first = [(tmp_path / name).read_bytes() for name in files]
    for name in files:
        (tmp_path / name).unlink()
    monkeypatch.delattr(toy, "execute")
    main(["plot", "toy", "--out", str(tmp_path)])
    assert [(tmp_path / name).read_bytes() for name in files] == first
    assert b"| good | 1 \xc2\xb1 0.58 |" in first[0]


def test_seeds_are_computed_together_as_far_as_the_experiment_takes_them(toy):
    runs = [Run("toy", method, "x", seed) for method in ("bad", "good") for seed in range(3)]
    assert [len(job.runs) for job in group(runs, toy.SEEDS_AT_ONCE)] == [1, 1, 1, 2, 1]
    assert str(Job(tuple(runs[3:5]))) == "good_x_seed0 to 1"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["reproduce", "nothing"], "choose from: denoising, random-walk, sparsity"),
        (["plot", "nothing"], "choose from: denoising, random-walk, sparsity"),
        (["reproduce", "toy", "--methods", "ugly"], "choose from: good, bad, lucky"),
        (["reproduce", "toy", "--methods", "lucky"], "pip install 'losse[all]'"),
        (["plot", "toy"], "no records of toy in results"),
    ],
)
def test_nonsense_is_refused_in_one_line(toy, arguments, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2
    err = capsys.readouterr().err
    assert message in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("option", [{"seeds": 0}, {"workers": -1}])
def test_nonsense_settings_are_refused(option):
    with pytest.raises(ValueError, match=f"{next(iter(option))} must be"):
        CommonSettings(**option)


def test_help_names_the_experiments(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["reproduce", "--help"])
    assert stop.value.code == 0
    out = capsys.readouterr().out
    assert all(name in out for name in losse.paper.EXPERIMENTS)


def test_by_default_the_two_presets_do_not_meet(toy, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for preset in ("quick", "paper"):
        main(["reproduce", "toy", "--preset", preset, "--methods", "good", "--workers", "0"])
    assert names(tmp_path / "results" / "toy") == names(tmp_path / "results" / "quick" / "toy")


def test_workers_have_one_thread_and_fail_alone():
    jobs = [
        "1 + 1",
        "1 / 0",
        "__import__('os')._exit(3)",
        "__import__('os').kill(__import__('os').getpid(), 9)",
        "dict(__import__('os').environ)",
        "2 + 2",
        "None",
    ]
    results = dict(run_jobs(eval, jobs, workers=2))
    assert results["1 + 1"] == 2
    assert results["2 + 2"] == 4
    assert results["None"] is None
    assert results["1 / 0"].reason == "ZeroDivisionError: division by zero"
    assert results[jobs[2]] == Failure("its process ended with exit code 3")
    assert results[jobs[3]] == Failure("its process ended by SIGKILL")
    assert results[jobs[4]].items() >= ONE_THREAD.items()


def test_workers_end_with_a_parent_that_is_killed(tmp_path):
    count = tmp_path / "count"
    job = (
        f"[(__import__('pathlib').Path({str(count)!r}).write_text(str(k)), "
        "__import__('time').sleep(0.05)) for k in range(4000)]"
    )
    code = f"from losse.runs.workers import run_jobs; list(run_jobs(eval, [{job!r}], workers=1))"
    parent = subprocess.Popen([sys.executable, "-c", code])
    try:
        _wait_for(lambda: count.exists() and count.read_text() not in ("", "0"))
    finally:
        parent.kill()
        parent.wait()

    def stands_still():
        before = count.read_text()
        time.sleep(1.0)
        return count.read_text() == before

    _wait_for(stands_still)


def _wait_for(condition, seconds=100):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_leaving_early_ends_the_workers():
    jobs = ["__import__('os').getpid()", *["__import__('time').sleep(600)"] * 2]
    runs = run_jobs(eval, jobs, workers=2)
    _, pid = next(runs)
    runs.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_an_interrupted_experiment_goes_on_where_it_was(tmp_path):
    command = [
        sys.executable, "-c", "from losse.cli import main\nif __name__ == '__main__': main()",
        "reproduce", "sparsity", "--methods", "losse", "--samples", "200", "--workers", "1",
        "--seeds", "200", "--out", str(tmp_path),
    ]  # fmt: skip
    # With a group of its own, Ctrl-C reaches the workers as it does on a terminal.
    process = subprocess.Popen(command, text=True, stdout=subprocess.PIPE, process_group=0)
    while process.poll() is None and len(read_records(tmp_path)) < 3:
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "The same command goes on from here." in out
    before = Store(tmp_path).path().read_bytes()
    assert 3 <= len(read_records(tmp_path)) < 200 * 9

    main(["reproduce", "sparsity", "--methods", "losse", "--samples", "200", "--workers", "0",
          "--seeds", "1", "--out", str(tmp_path)])  # fmt: skip
    assert Store(tmp_path).path().read_bytes().startswith(before)


def test_time_left_weighs_methods_by_their_own_cost(monkeypatch):
    from losse.cli import progress

    clock = iter([0.0, 10.0, 11.0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    slow, quick = (
        [Job((Run("toy", method, 0, k),)) for k in range(3)] for method in ("slow", "quick")
    )
    left = progress.TimeLeft([*slow, *quick])
    left.after(slow[0])
    assert left.after(quick[0]) == pytest.approx(2 * 10.0 + 2 * 1.0)


def test_runs_of_a_sweep_have_names_of_their_own():
    runs = [
        Run("toy", "nn", 0.5, 1, {"rate": rate, "size": 3}, swept=swept)
        for swept in (("rate",), ())
        for rate in (0.1, 0.01)
    ]
    one, two, *final = [run.name for run in runs]
    assert one != two
    assert set(final) == {"nn_0.5_seed1"}
    assert all(a != b for a, b in pairwise([one, two, final[0]]))


def test_reproduce_can_be_called_without_a_command_line(toy, tmp_path):
    class Silent:
        def stage(self, *_): ...
        def finished(self, *_): ...
        def failed(self, *_): ...

    settings = toy.Settings(methods=("good",), workers=0, out=tmp_path)
    assert isinstance(settings, CommonSettings)
    assert reproduce(toy, settings, Silent()) == []
    assert len(read_records(tmp_path)) == 3


class TestCode:
    """The paper preset is for code that has a commit."""

    @pytest.fixture
    def dirty(self, monkeypatch):
        here = Environment({}, "0123-dirty", "x", patch="abcd")
        monkeypatch.setattr(runner, "environment", lambda: here)
        monkeypatch.setattr(runner, "source_patch", lambda: "the difference")

    def test_uncommitted_changes_are_refused(self, toy, dirty, tmp_path, capsys):
        with pytest.raises(SystemExit) as stop:
            run(tmp_path, "--preset", "paper")
        assert stop.value.code == 2
        assert "uncommitted changes" in capsys.readouterr().err
        assert toy.executed == []

    def test_or_their_patch_is_stored(self, toy, dirty, tmp_path):
        run(tmp_path, "--preset", "paper", "--allow-dirty")
        assert (tmp_path / "abcd.patch").read_text() == "the difference"
        run(tmp_path, "--preset", "paper")  # nothing is left to compute, so nothing to refuse

    def test_a_quick_look_is_free(self, toy, dirty, tmp_path):
        run(tmp_path)
        assert names(tmp_path) == ALL
        assert not list(tmp_path.glob("*.patch"))


def test_help_has_columns(capsys):
    known = losse.paper.EXPERIMENTS
    for command in ("reproduce", "plot"):
        with pytest.raises(SystemExit):
            main([command, "--help"])
        lines = capsys.readouterr().out.splitlines()
        listed = [line for line in lines if line.split()[:1] and line.split()[0] in known]
        starts = {line.index(known[line.split()[0]].summary) for line in listed}
        assert len(listed) == len(known)
        assert len(starts) == 1
