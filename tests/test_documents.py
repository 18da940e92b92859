"""The README and the documentation: their Python runs, and their links lead somewhere."""

import json
import os
import re
import runpy
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from losse.paper import load
from losse.runs.store import read_records

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.md"))


def python_blocks(page):
    text = page.read_text(encoding="utf-8")
    return re.findall(r"^```python\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)


BLOCKS = [
    pytest.param(block, id=f"{page.name}-{i}")
    for page in PAGES
    if page not in TUTORIALS
    for i, block in enumerate(python_blocks(page))
]


def test_the_readme_has_an_example():
    assert python_blocks(ROOT / "README.md")


@pytest.mark.parametrize("name", ["forgetting", "discrete-control"])
def test_the_tables_of_the_readme_are_those_of_the_records(name):
    table = (ROOT / "results" / name / "table.md").read_text(encoding="utf-8")
    assert table in (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "name", ["random-walk", "sparsity", "forgetting", "classic-control", "continual"]
)
def test_the_documented_table_is_that_of_the_records(name):
    folder = ROOT / "results" / name
    table = load(name).table(read_records(folder)).markdown() + "\n"
    assert (folder / "table.md").read_text(encoding="utf-8") == table
    assert table in (ROOT / "docs" / "results.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("block", BLOCKS)
def test_python_runs(block, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(compile(block, "example", "exec"), {"__name__": "__main__"})


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_a_tutorial_runs_from_an_empty_file_to_its_picture(page, tmp_path, monkeypatch):
    """All blocks of a page, one after the other, as a reader would paste them."""
    monkeypatch.chdir(tmp_path)
    exec(compile("\n".join(python_blocks(page)), page.name, "exec"), {"__name__": "__main__"})
    assert (tmp_path / f"{page.stem}.png").stat().st_size > 1000
    assert f"]({page.stem}.png)" in page.read_text(encoding="utf-8")
    assert page.with_suffix(".png").exists(), "make pictures"


def test_the_site_is_built_without_a_warning(tmp_path):
    pytest.importorskip("material", reason="needs the extra docs: pip install -e '.[docs]'")
    pytest.importorskip("mkdocstrings")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", str(tmp_path)]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    built = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    reference = (tmp_path / "reference" / "regression" / "index.html").read_text(encoding="utf-8")
    assert "partial_fit" in reference
    assert (tmp_path / "results" / "forgetting" / "animation.gif").exists()
    home = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert "https://fonts" not in home  # no request to another host


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    links = re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text(encoding="utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []


def anchor(heading):
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_headings(page):
    for link, wanted in re.findall(r"\]\((?!https?:)([^)#]*)#([^)]+)", page.read_text("utf-8")):
        target = (page.parent / link if link else page).read_text("utf-8")
        assert wanted in map(anchor, re.findall(r"^#+ (.*)", target, flags=re.MULTILINE))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_prose_fits_in_100_columns(page):
    lines = page.read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if len(line) > 100 and line[0] != "|" and "](" not in line] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_names_in_pages_exist(page):
    """Every `losse.module.name` in backquotes can be imported."""
    for path in set(re.findall(r"`(losse(?:\.\w+)+)", page.read_text(encoding="utf-8"))):
        if not path.endswith(".losse"):  # a file of a model
            assert exists(path), path


def exists(path):
    try:
        import_module(path)
    except ModuleNotFoundError:
        module, _, name = path.rpartition(".")
        return bool(module) and hasattr(import_module(module), name)
    return True


@pytest.mark.parametrize("example", sorted((ROOT / "examples").glob("*.py")), ids=lambda p: p.name)
def test_examples_run(example, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if "multiprocessing" in example.read_text(encoding="utf-8"):  # its workers import it anew
        environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        subprocess.run([sys.executable, example], check=True, env=environment, timeout=300)
    else:
        monkeypatch.setattr(sys, "argv", [str(example)])
        runpy.run_path(str(example), run_name="__main__")


NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))


def test_there_are_seven_scripts_and_three_notebooks():
    assert len(list((ROOT / "examples").glob("*.py"))) >= 7
    assert len(NOTEBOOKS) >= 3


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_run_in_a_small_form_and_show_outputs(path, tmp_path, monkeypatch):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    cells = [cell for cell in json.loads(path.read_text("utf-8"))["cells"] if "outputs" in cell]
    outputs = [output for cell in cells for output in cell["outputs"]]
    assert any("image/png" in output.get("data", {}) for output in outputs)
    assert not [output for output in outputs if output["output_type"] == "error"]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LOSSE_SMALL", "1")
    code = "\n".join("".join(cell["source"]) for cell in cells)
    exec(compile(code, path.name, "exec"), {"__name__": "__main__"})
