"""A toy experiment: it counts its runs, and fails where it is told to."""

from dataclasses import dataclass

from matplotlib.figure import Figure

from losse.runs.experiment import CommonSettings, Run, best, methods_of
from losse.runs.table import Table, mean_score

NAME = "toy"
METHODS = ("good", "bad", "lucky")
CONTROLS = ()
NEEDS = {"lucky": ("no_such_package",)}
SEEDS_AT_ONCE = {"good": 2}

executed = []
failing = set()


@dataclass(frozen=True, kw_only=True)
class Settings(CommonSettings):
    """A toy."""

    size: int = 10
    """How large."""


def sweep(settings):
    return [
        Run("toy", "bad", "x", 100, {"size": settings.size, "rate": rate}, swept=("rate",))
        for rate in (0.1, 0.2)
        if "bad" in methods_of(settings, METHODS)
    ]


def final(settings, swept):
    return [
        Run("toy", method, "x", seed, {"size": settings.size} | chosen)
        for method in methods_of(settings, METHODS)
        for chosen in [best(swept, method, "x", ["rate"]) if method == "bad" else {}]
        for seed in range(settings.seeds or 3)
    ]


def execute(settings, runs):
    executed.extend(run.name for run in runs)
    if any(run.name in failing for run in runs):
        raise ArithmeticError("told to fail")
    return [
        run.record(run.seed + run.options.get("rate", 0), seconds=0.5, curve=[(1, 2.0)])
        for run in runs
    ]


def table(records):
    methods = sorted({record.method for record in records})
    return Table(("method", "x"), [(method, mean_score(records, method)) for method in methods])


def draw(records):
    figure = Figure()
    figure.subplots().plot([record.score for record in records])
    return {"scores": figure}
