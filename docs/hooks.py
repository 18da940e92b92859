"""Hooks of the documentation site: pages and figures of the repository that lie outside docs."""

import re
from pathlib import Path, PurePosixPath

from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parents[1]
PAGES = {
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "README.md": "index.md",
}
SHOWN = {".png", ".gif", ".svg", ".md", ".csv"}
LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:|#)([^)#\s]+)(#[^)]*)?\)")


def on_files(files, config):
    """Add the pages of the root, and the tables and figures of the results."""
    for name, place in PAGES.items():
        if name != "README.md":
            files.append(File.generated(config, place, content=moved(name)))
    for path in sorted((ROOT / "results").rglob("*")):
        if path.suffix in SHOWN and "quick" not in path.parts:
            name = path.relative_to(ROOT).as_posix()
            if path.suffix == ".md":
                title = f"# {path.parent.relative_to(ROOT / 'results').as_posix()}\n\n"
                files.append(File.generated(config, name, content=title + path.read_text("utf-8")))
            else:
                files.append(File.generated(config, name, abs_src_path=str(path)))
    return files


def moved(name):
    """A page of the root whose links are as seen from docs."""
    text = (ROOT / name).read_text(encoding="utf-8")
    return LINK.sub(lambda found: rewritten(found, PurePosixPath(name)), text)


def on_page_markdown(markdown, page, config, files):
    """Links that leave docs lead to the same thing in the site, or become plain text."""
    source = PurePosixPath("docs") / page.file.src_uri
    if page.file.src_uri in PAGES.values() and page.file.src_uri != "index.md":
        return markdown  # done
    return LINK.sub(lambda found: rewritten(found, source), markdown)


def on_page_content(html, page, config, files):
    """Formulas of docstrings, which are written for other tools, become code."""
    html = html.replace(":math:<code>", "<code>")
    return re.sub(r"\.\. math::\s*(.*?)</p>", r"<code>\1</code></p>", html, flags=re.DOTALL)


def rewritten(found, source):
    """A link of a page as the site needs it; ``source`` is the page's path in the repository."""
    picture, text, target, anchor = found.groups()
    path = normal(source.parent / target)
    inside = path.parts[:1] == ("docs",)
    if inside and source.parts[0] == "docs":
        return found.group()
    if inside:
        place = "/".join(path.parts[1:])
    elif str(path) in PAGES:
        place = PAGES[str(path)]
    elif path.parts[0] == "results" and path.suffix in SHOWN:
        place = str(path)
    else:
        return text  # a folder or a source file, which the site has not
    depth = len(source.parts) - 2 if source.parts[0] == "docs" else 0
    return f"{picture}[{text}]({'../' * depth}{place}{anchor or ''})"


def normal(path):
    """A path without steps up."""
    parts = []
    for part in path.parts:
        if part == "..":
            parts.pop()
        else:
            parts.append(part)
    return PurePosixPath(*parts)
