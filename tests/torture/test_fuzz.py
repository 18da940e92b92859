"""Damaged and forged files: the short version of `make torture`."""

from tests.torture.fuzz import fuzz


def test_spoilt_files_are_refused_or_harmless(tmp_path):
    outcomes = fuzz(tmp_path, seed=0, count=25)
    assert outcomes["refused"] > outcomes["used"] > 0
