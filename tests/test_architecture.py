"""Habits of the source tree: private state stays private, and every module says what it is.

The import contract, which says which package may import which, is in pyproject.toml.
"""

import ast
from functools import cache
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "losse"
MODULES = sorted(SOURCE.rglob("*.py"))

ALLOWED = {
    "*": {
        "_fields": "documented attribute of NamedTuple, which has no public names",
    },
    "dyna": {
        "__dict__": "SBX's policies list the training states of their networks nowhere else",
        "_n_updates": "Stable-Baselines3 has no other count of gradient steps",
    },
    "interrupts": {"_signal": "CPython's own calls take a tenth of the time of signal's"},
    "envs": {"_dsdt": "Gymnasium's Acrobot publishes its derivative nowhere else"},
}


def package_of(path):
    """The package of `losse` that a module belongs to, or its own name."""
    return path.relative_to(SOURCE).with_suffix("").parts[0]


class Reaches(ast.NodeVisitor):
    """Finds what a module takes from the private state of objects that are not its own.

    Inside a class, `self`, `cls` and `super()` are its own, and so is a name that is visibly
    another instance: annotated with the class or `Self`, made by `cls(...)`, by the class or by
    `copy(self)`, or asserted to be one.
    """

    def __init__(self, allowed):
        self.allowed = allowed
        self.classes = []
        self.own = set()
        self.found = []

    def visit_ClassDef(self, node):
        self.classes.append(node.name)
        self.generic_visit(node)
        self.classes.pop()

    def visit_FunctionDef(self, node):
        outer = self.own
        if self.classes:
            self.own = {"self", "cls"} | outer | set(self._siblings(node))
        self.generic_visit(node)
        self.own = outer

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815 - a name of ast

    def visit_Attribute(self, node):
        private = node.attr.startswith("_") and not node.attr.endswith("__")
        if (private or node.attr == "__dict__") and not self._is_own(node.value):
            self._note(node, node.attr)
        self.generic_visit(node)

    def visit_Call(self, node):
        match node:
            case ast.Call(
                func=ast.Name("getattr" | "setattr" | "delattr" | "hasattr"),
                args=[subject, ast.Constant(str(name)), *_],
            ) if name.startswith("_") and not name.endswith("__"):
                if not self._is_own(subject):
                    self._note(node, name)
            case ast.Call(func=ast.Name("vars"), args=[subject]) if not self._is_own(subject):
                self._note(node, "__dict__")
        self.generic_visit(node)

    def visit_ImportFrom(self, node):
        for name in (alias.name for alias in node.names):
            if name.startswith("_") and name != "_kernels":
                self._note(node, name)

    def _note(self, node, name):
        if name not in self.allowed:
            self.found.append(f"line {node.lineno}: {ast.unparse(node)}")

    def _is_own(self, value):
        match value:
            case ast.Name(name):
                return name in self.own or name in self.classes
            case ast.Call(func=ast.Name("super")):
                return True
        return False

    def _siblings(self, function):
        names = {"Self", *self.classes}
        arguments = function.args
        for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
            match argument.annotation:
                case ast.Name(name) | ast.Constant(name) if name in names:
                    yield argument.arg
        for node in ast.walk(function):
            match node:
                case ast.Assign(targets=[ast.Name(name)], value=ast.Call() as call):
                    if self._makes_sibling(call):
                        yield name
                case ast.Assert(test=ast.Call(func=ast.Name("isinstance"), args=[subject, kind])):
                    if isinstance(subject, ast.Name) and ast.unparse(kind) in names:
                        yield subject.id

    def _makes_sibling(self, call):
        own = {"cls", *self.classes}
        match call.func:
            case ast.Name("copy" | "deepcopy"):
                return ast.unparse(call.args[0]) == "self"
            case ast.Name(name) | ast.Attribute(ast.Name(name)):
                return name in own
            case ast.Call(func=ast.Name("type"), args=[ast.Name("self")]):
                return True
        return False


@cache
def tree_of(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def reaches(tree, package):
    visitor = Reaches({**ALLOWED["*"], **ALLOWED.get(package, {})})
    visitor.visit(tree)
    return visitor.found


def complaints(tree, _package):
    """What is wrong with the first line of a module."""
    first = (ast.get_docstring(tree) or "").partition("\n")[0]
    if not first.endswith("."):
        return [f"{first!r} is not a sentence that ends on its line"]
    question = first.split()[0] in {"How", "What", "When", "Where", "Which", "Who", "Why", "Will"}
    return [f"{first!r} asks: say what the module is"] if question or "?" in first else []


def findings(look):
    """What ``look(tree, package)`` finds, as lists of text by package."""
    found = {}
    for path in MODULES:
        package = package_of(path)
        for text in look(tree_of(path), package):
            found.setdefault(package, []).append(f"{path.relative_to(SOURCE)}: {text}")
    return found


def test_no_module_reaches_into_private_state():
    assert findings(reaches) == {}


def test_first_lines_say_what_a_module_is():
    assert findings(complaints) == {}


def test_allowed_names_are_in_use():
    """A reason that nothing needs any more goes."""
    text = "\n".join(path.read_text(encoding="utf-8") for path in MODULES)
    assert [name for names in ALLOWED.values() for name in names if name not in text] == []


@pytest.mark.parametrize(
    "line",
    [
        "model._weights",
        "self.model._weights",
        "getattr(model, '_weights')",
        "vars(model)",
        "model.__dict__.update({})",
        "from losse.ftl import _hidden",
    ],
)
def test_reaches_are_seen(line):
    method = f"class A:\n  def f(self, model: B):\n    {line}"
    assert len(reaches(ast.parse(method), "ftl")) == 1


@pytest.mark.parametrize(
    "line",
    [
        "self._x",
        "super()._x",
        "cls._x",
        "other._x",
        "twin._x",
        "new = cls(1); new._x",
        "twin = copy(self); twin._x",
        "assert isinstance(it, A); it._x",
        "model.__class__",
        "from losse import _kernels",
    ],
)
def test_what_is_ones_own_is_no_reach(line):
    method = f"class A:\n  def f(self, other: 'A', twin: Self, it):\n    {line}"
    assert reaches(ast.parse(method), "ftl") == []


@pytest.mark.parametrize("docstring", ["", "No end", "How it is.", "Is it? It is.", "Two\nlines."])
def test_unclear_first_lines_are_seen(docstring):
    assert complaints(ast.parse(f'"""{docstring}"""'), "ftl")


def test_the_page_on_architecture_names_every_file():
    page = (SOURCE.parents[1] / "docs" / "architecture.md").read_text(encoding="utf-8")
    listed = {}
    for row in page.partition("## Every file")[2].splitlines():
        match row.split("|"):
            case ["", package, files, ""] if "`" in package:
                listed[package.strip(" `")] = {name.strip(" `") for name in files.split(",")}
    found = {}
    for path in MODULES:
        if path.stem != "__init__":
            parts = path.relative_to(SOURCE).parent.parts
            found.setdefault(".".join(parts) or "losse", set()).add(path.stem)
    assert listed == found
