"""Pictures of the tutorials and outputs of the notebooks: runs the code of all of them anew."""

import os
import re
from pathlib import Path

import nbformat
from nbclient import NotebookClient

HERE = Path(__file__).resolve().parent
TUTORIALS, EXAMPLES = HERE / "tutorials", HERE.parent / "examples"


def draw_tutorials() -> None:
    """Run all pages in their folder; files of models that they leave are removed."""
    os.chdir(TUTORIALS)
    for page in sorted(TUTORIALS.glob("*.md")):
        text = page.read_text(encoding="utf-8")
        blocks = re.findall(r"^```python\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)
        print(page.stem, flush=True)
        exec(compile("\n".join(blocks), page.name, "exec"), {"__name__": "__main__"})
    for left in TUTORIALS.glob("*.losse"):
        left.unlink()


def run_notebooks() -> None:
    """Run all cells, and keep what they show."""
    for path in sorted(EXAMPLES.glob("*.ipynb")):
        print(path.stem, flush=True)
        notebook = nbformat.read(path, as_version=4)
        NotebookClient(notebook, timeout=600, resources={"metadata": {"path": EXAMPLES}}).execute()
        for cell in notebook.cells:
            cell.metadata.pop("execution", None)  # when it ran: another difference every time
        notebook.metadata.pop("language_info", None)
        nbformat.write(notebook, path)


if __name__ == "__main__":
    draw_tutorials()
    run_notebooks()
