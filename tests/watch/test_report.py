"""The report: one file with everything in it, whatever the runs contain."""

import re
from html.parser import HTMLParser

import pytest

pytest.importorskip("tyro")
pytest.importorskip("gymnasium")

from losse.cli import main
from losse.runs.store import Store
from tests.watch import folders


class Tags(HTMLParser):
    """Collects tags with their attributes, and text."""

    def __init__(self, text):
        super().__init__()
        self.found, self.said = [], ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.said += data


def written(root, tmp_path):
    main(["report", str(root), "-o", str(tmp_path / "report.html")])
    return (tmp_path / "report.html").read_text(encoding="utf-8")


def test_a_report_has_figures_tables_settings_and_versions(tmp_path, capsys):
    runs = [folders.record(s, m) for m in ("losse", "model-free") for s in range(2)]
    Store(tmp_path / "runs").add(runs)
    folders.failing_sweep(tmp_path / "runs")
    text = written(tmp_path / "runs", tmp_path)
    assert capsys.readouterr().out.strip().endswith("report.html")
    page = Tags(text)
    assert [tag for tag, _ in page.found].count("svg") == 1
    assert "Losse" in page.said
    assert "ValueError: the rate is negative" in page.said
    assert '"CartPole-v1"' in page.said
    assert "numpy" in page.said


def test_a_report_needs_nothing_else(tmp_path):
    Store(tmp_path / "runs").add([folders.record()])
    page = Tags(written(tmp_path / "runs", tmp_path))
    assert not {"script", "link", "img", "iframe"} & {tag for tag, _ in page.found}
    for _, attributes in page.found:
        for name in ("src", "href", "xlink:href"):
            assert (attributes.get(name) or "#").startswith("#")


def test_words_of_a_record_are_not_markup(tmp_path):
    Store(tmp_path / "runs").add([folders.record(setting="<script>alert(1)</script>")])
    text = written(tmp_path / "runs", tmp_path)
    assert "<script" not in text
    assert "&lt;script&gt;" in text


def test_many_runs_are_means_and_broken_lines_are_named(tmp_path):
    store = Store(tmp_path / "runs")
    store.add([folders.record(seed) for seed in range(15)])
    with store.path().open("a") as file:
        file.write("broken\n")
    text = written(tmp_path / "runs", tmp_path)
    assert "Means of seeds" in text
    assert re.search("runs.jsonl, line 16: not a record", text)


def test_without_runs_there_is_no_report(tmp_path, capsys):
    with pytest.raises(SystemExit) as stop:
        main(["report", str(tmp_path), "-o", str(tmp_path / "report.html")])
    assert stop.value.code == 2
    assert "no runs in" in capsys.readouterr().err
    assert not (tmp_path / "report.html").exists()
