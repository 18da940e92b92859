"""Pictures of the tutorials and outputs of the notebooks: runs the code of all of them anew."""

import os
import re
from pathlib import Path

import nbformat
import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from nbclient import NotebookClient

from losse import LosseEncoder

HERE = Path(__file__).resolve().parent
TUTORIALS, EXAMPLES, IMAGES = HERE / "tutorials", HERE.parent / "examples", HERE / "images"
BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "0.75"


def draw_encoding() -> None:
    """An input in three grids, and the features that it has."""
    grids, bins = 3, 4
    encoder = LosseEncoder(grids, bins, 2, scaling=None, seed=3).fit([[0.0, 0.0]])
    x = np.array([[0.9, -0.6]])
    positions = bins / (1 + np.exp(-np.einsum("ni,igk->gk", x, encoder.projection_)))
    phi = encoder.transform(x).toarray()[0]
    figure = Figure(figsize=(9, 3.1), layout="constrained")
    axes = figure.subplots(1, grids + 1, width_ratios=[1] * grids + [1.5])
    nodes = np.arange(bins + 1)
    for g, panel in enumerate(axes[:grids]):
        panel.hlines(nodes, 0, bins, GREY, linewidth=0.8)
        panel.vlines(nodes, 0, bins, GREY, linewidth=0.8)
        weights = phi.reshape(grids, bins + 1, bins + 1)[g]
        i, k = np.nonzero(weights)
        panel.scatter(i, k, 350 * weights[i, k] + 5, BLUE, zorder=2)
        panel.plot(*positions[g], "x", color=ORANGE, markersize=9, markeredgewidth=2, zorder=3)
        panel.set(title=f"grid {g + 1}", xticks=[], yticks=[], aspect="equal")
        panel.set_xlabel(f"$\\sigma(p_{{{2 * g + 1}}} x)$")
        panel.set_ylabel(f"$\\sigma(p_{{{2 * g + 2}}} x)$")
        panel.spines[:].set_visible(False)
    active = np.flatnonzero(phi)
    axes[-1].vlines(active, 0, phi[active], BLUE, linewidth=2)
    axes[-1].vlines(np.arange(1, grids) * (bins + 1) ** 2, 0, 1, GREY, linestyle=":")
    axes[-1].set(title="$\\phi(x)$", xlabel="feature", ylim=(0, 1), xlim=(0, len(phi)))
    figure.savefig(IMAGES / "encoding.png", dpi=120)


def draw_update() -> None:
    """The parts of A, B and W that a row touches."""
    size, active = 24, [2, 3, 9, 10, 19, 20]
    figure = Figure(figsize=(8, 3.3), layout="constrained")
    titles = ("A", "B", "W")
    axes = figure.subplots(1, 3, width_ratios=[size, 6, 6])
    for panel, title, width in zip(axes, titles, (size, 4, 4), strict=True):
        panel.add_patch(Rectangle((0, 0), width, size, facecolor="0.95", edgecolor="0.5"))
        for row in active:
            color = ORANGE if title == "W" else "#9ecae1"
            panel.add_patch(Rectangle((0, row), width, 1, facecolor=color))
            if title == "A":
                for column in active:
                    panel.add_patch(Rectangle((column, row), 1, 1, facecolor=BLUE))
        panel.set(title=title, xlim=(0, width), ylim=(size, 0), xticks=[], yticks=[])
        panel.set_aspect("equal")
        panel.spines[:].set_visible(False)
    axes[0].set_xlabel("dark: grows with the row; dark and light: read")
    axes[1].set_xlabel("grows")
    axes[2].set_xlabel("solved for")
    figure.savefig(IMAGES / "update.png", dpi=120)


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
    draw_encoding()
    draw_update()
    draw_tutorials()
    run_notebooks()
