import json
import math
import subprocess
from dataclasses import asdict

import numpy as np
import pytest

from losse import records
from losse.records import Record, provenance, read_records, write_json, write_record

KEYS = {
    "experiment",
    "method",
    "setting",
    "seed",
    "score",
    "curve",
    "settings",
    "seconds",
    "versions",
    "revision",
}


def make(**changes):
    values = {"experiment": "toy", "method": "losse", "setting": 0.5, "seed": 1, "score": 0.25}
    return Record(**(values | changes))


def test_a_record_survives_writing_and_reading(tmp_path):
    record = make(curve=[(1.0, 2.0), (2.0, 1.0)], settings={"n": 3}, details={"note": "x"})
    write_record(record, tmp_path)
    assert asdict(read_records(tmp_path)[0]) == asdict(record)


def test_a_file_has_all_keys_and_is_strict_json(tmp_path):
    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    path = write_record(make(score=np.float64("nan"), curve=np.array([[1.0, np.inf]])), tmp_path)
    assert json.loads(path.read_text(), parse_constant=refuse).keys() >= KEYS
    (record,) = read_records(tmp_path)
    assert math.isnan(record.score)
    assert math.isnan(record.curve[0][1])


def test_runs_of_one_experiment_have_different_files(tmp_path):
    for setting in ("Hopper-v5", "a/b c"):
        for seed in range(2):
            write_record(make(setting=setting, seed=seed), tmp_path)
    assert len(read_records(tmp_path)) == 4


def test_writing_again_replaces_the_run(tmp_path):
    write_record(make(score=1.0), tmp_path)
    write_record(make(score=2.0), tmp_path)
    assert [record.score for record in read_records(tmp_path)] == [2.0]


@pytest.mark.parametrize("value", [{"a": object()}, {"a": 1j}])
def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, value):
    path = write_json(tmp_path / "x.json", {"a": 1})
    with pytest.raises(TypeError):
        write_json(path, value)
    assert json.loads(path.read_text()) == {"a": 1}
    assert list(tmp_path.iterdir()) == [path]


def test_an_interrupted_replacement_leaves_the_old_file(tmp_path, monkeypatch):
    path = write_json(tmp_path / "x.json", {"a": 1})

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(records.os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_json(path, {"a": 2})
    assert json.loads(path.read_text()) == {"a": 1}
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"score": 1}'])
def test_a_damaged_or_foreign_file_is_named(tmp_path, text):
    (tmp_path / "bad.json").write_text(text)
    with pytest.raises(ValueError, match=r"bad\.json is not a record"):
        read_records(tmp_path)


def test_an_empty_folder_has_no_records(tmp_path):
    assert read_records(tmp_path) == []


def test_provenance_names_the_versions_in_use():
    versions = provenance().versions
    assert versions["numpy"] == np.__version__
    assert {"python", "losse", "numba", "scikit-learn"} <= versions.keys()
    assert provenance().cpu


def test_revision_is_none_outside_a_checkout(monkeypatch):
    def no_git(*_, **__):
        raise FileNotFoundError("git")

    monkeypatch.setattr(subprocess, "run", no_git)
    assert records._git_revision() is None


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A small git checkout in the place of this one."""
    package = tmp_path / "src" / "losse"
    package.mkdir(parents=True)
    (package / "records.py").write_text("")
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
    for arguments in (["init", "-q"], ["add", "."], [*identity, "commit", "-qm", "first"]):
        subprocess.run(["git", *arguments], cwd=tmp_path, check=True)
    monkeypatch.setattr(records, "__file__", str(package / "records.py"))
    return tmp_path


def test_revision_marks_changed_code_but_not_new_results(checkout):
    clean = records._git_revision()
    assert clean is not None
    assert len(clean) == 40
    (checkout / "results").mkdir()
    (checkout / "results" / "x.json").write_text("{}")
    assert records._git_revision() == clean
    (checkout / "src" / "losse" / "records.py").write_text("pass\n")
    assert records._git_revision() == f"{clean}-dirty"


def test_a_package_inside_another_checkout_has_no_revision(checkout, monkeypatch):
    elsewhere = checkout / "lib" / "losse" / "records.py"
    elsewhere.parent.mkdir(parents=True)
    monkeypatch.setattr(records, "__file__", str(elsewhere))
    assert records._git_revision() is None
