import json

import pytest

pytest.importorskip("tyro")

from losse.cli import main
from losse.cli.demo import METHODS, Settings, learn_stream
from losse.cli.demo_figure import draw
from losse.records import read_records

TINY = ["--samples", "150", "--period", "50", "--checkpoints", "5"]


def test_the_demo_writes_records_and_the_figure_from_them(tmp_path, capsys):
    main(["demo", *TINY, "--seeds", "2", "--out", str(tmp_path)])
    records = read_records(tmp_path)
    assert sorted({record.method for record in records}) == sorted(METHODS)
    assert len(records) == 2 * len(METHODS)
    for record in records:
        assert record.experiment == "demo"
        assert record.curve[-1][0] == 150
        assert record.curve[-1][1] == record.score
        assert record.seconds > 0
        assert record.settings["period"] == 50
    assert "mean squared error" in capsys.readouterr().out

    files = [tmp_path / "drifting_stream.png", tmp_path / "drifting_stream.svg"]
    assert draw(records, tmp_path / "again") == [tmp_path / "again" / f.name for f in files]
    assert files[0].read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "again" / files[1].name).read_text() == files[1].read_text()


def test_a_seed_fixes_every_learner():
    settings = Settings(samples=60, period=20, checkpoints=3)
    one, same = (learn_stream(settings, 7, lambda *_: None) for _ in range(2))
    assert [record.curve for record in one] == [record.curve for record in same]


def test_a_seed_may_be_large(tmp_path):
    learn_stream(Settings(samples=2, checkpoints=1), 2**31, lambda *_: None)


@pytest.mark.parametrize("option", ["samples", "seeds", "checkpoints"])
def test_nonsense_is_refused(option):
    with pytest.raises(ValueError, match=f"{option} must be at least 1, got 0"):
        Settings(**{option: 0})


def test_more_checkpoints_than_samples_are_no_harm(tmp_path):
    main(["demo", "--samples", "3", "--seeds", "1", "--checkpoints", "9", "--out", str(tmp_path)])
    lines = [json.loads(path.read_text())["curve"] for path in tmp_path.glob("*.json")]
    assert all([x for x, _ in curve] == [1, 2, 3] for curve in lines)
