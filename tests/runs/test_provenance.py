"""The code behind a record: its versions and its commit, or the patch that makes it."""

import subprocess
from pathlib import Path

import numpy as np
import pytest

from losse.runs import provenance
from losse.runs.provenance import Environment, environment, git_revision, source_patch


def git(folder, *arguments):
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
    command = ["git", *identity, *arguments]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A small git checkout in the place of this one."""
    package = tmp_path / "src" / "losse"
    (package / "runs").mkdir(parents=True)
    (package / "code.py").write_text("one\n")
    for arguments in (["init", "-q"], ["add", "."], ["commit", "-qm", "first"]):
        git(tmp_path, *arguments)
    monkeypatch.setattr(provenance, "__file__", str(package / "runs" / "provenance.py"))
    return tmp_path


def test_the_versions_in_use_are_named():
    versions = environment().versions
    assert versions["numpy"] == np.__version__
    assert {"python", "losse", "numba", "scikit-learn"} <= versions.keys()
    assert environment().cpu


def test_an_id_tells_environments_apart():
    one = Environment({"a": "1", "b": "2"}, "0123", "x")
    assert one.id == Environment({"b": "2", "a": "1"}, "0123", "x").id
    assert one.id != Environment({"a": "1", "b": "2"}, "0124", "x").id
    assert not one.is_dirty


def test_changed_code_makes_a_revision_dirty_but_new_results_do_not(checkout):
    clean = git_revision()
    assert len(clean) == 40
    (checkout / "results").mkdir()
    (checkout / "results" / "x.json").write_text("{}")
    assert git_revision() == clean
    assert source_patch() == ""
    (checkout / "src" / "losse" / "code.py").write_text("two\n")
    assert git_revision() == f"{clean}-dirty"


def test_the_patch_makes_the_code_out_of_its_commit(checkout):
    code = checkout / "src" / "losse" / "code.py"
    new = checkout / "benchmarks" / "new.py"
    code.write_text("two\n")
    new.parent.mkdir()
    new.write_text("three\n")
    patch = source_patch()
    code.write_text("one\n")
    new.unlink()
    (checkout / "the.patch").write_text(patch)
    git(checkout, "apply", "the.patch")
    assert (code.read_text(), new.read_text()) == ("two\n", "three\n")


def test_without_git_or_outside_a_checkout_there_is_no_revision(checkout, monkeypatch):
    elsewhere = checkout / "lib" / "losse" / "runs" / "provenance.py"
    elsewhere.parent.mkdir(parents=True)
    monkeypatch.setattr(provenance, "__file__", str(elsewhere))
    assert git_revision() is None
    monkeypatch.setattr(provenance, "__file__", str(Path(__file__)))

    def no_git(*_, **__):
        raise FileNotFoundError("git")

    monkeypatch.setattr(subprocess, "run", no_git)
    assert git_revision() is None
    assert source_patch() == ""
