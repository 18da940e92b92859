"""Tables of speed on pages of the documentation: some measures, machine beside machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.pages import fill
from benchmarks.targets import ORDER
from losse.runs.record import Record
from losse.runs.store import Store
from losse.runs.table import Table

MACHINES = {"Xeon": ".", "EPYC": "epyc"}
"""Machines with published records, and the folders of these below that of the benchmark."""


class Row(NamedTuple):
    """A row of a table: one measure or several, whose figures stand beside each other."""

    title: str
    measures: tuple[str, ...]
    unit: str = ""


def _both(name: str) -> tuple[str, str]:
    return tuple(name.format(dtype) for dtype in ("float64", "float32"))  # type: ignore[return-value]


_ROW_BY_ROW = Row(
    "update, 30 grids, one row per call: doubles / floats",
    _both("update, 30 grids, {}, row by row"),
    "x",
)
_ONE_CALL = Row(
    "update, 30 grids, one call for all rows: doubles / floats",
    _both("update, 30 grids, {}, one call"),
    "x",
)
_PREDICT = Row(
    "predictions, 30 grids, batches of 1000 / 100,000",
    tuple(f"predict, 30 grids, float64, batches of {n}" for n in ("1,000", "100,000")),
    "x",
)
_LARGE = Row(
    "update, 300 grids, batches of 250, after 5250 rows: doubles / floats",
    _both("300 grids, batches of 250, {}, after 5,250 rows"),
    "x",
)
_RECOMMENDED = Row(
    "recommended model, batches of 25, 30,000 rows with all builds, time relative",
    (
        "recommended model, batches of 25, all rows, with every build of the encoder, "
        "processor time",
    ),
)
_KERNELS = {
    "block update": "sparse block update",
    "sums of A": "accumulate, square",
    "encoding": "encode",
    "predictions from inputs": "predict from inputs",
}
TABLES: Mapping[str, Sequence[Row]] = {
    "speed in short": (_ROW_BY_ROW, _ONE_CALL, _PREDICT, _LARGE, _RECOMMENDED),
    "speed": (
        _ROW_BY_ROW,
        _ONE_CALL,
        _PREDICT,
        *(
            Row(f"share of the machine's limit: {title}", (f"kernel: {name}, share of the "
                "machine's limit",))
            for title, name in _KERNELS.items()
        ),
        _RECOMMENDED,
        Row(
            "recommended model, predictions in batches of 1000, microseconds a row",
            ("recommended model, predict, batches of 1,000, microseconds for a row",),
        ),
        Row(
            "the same relative to a network of 4 x 400 units in JAX",
            ("recommended model, predict / network of 4 x 400 in JAX, batches of 1,000",),
        ),
        Row(
            "recommended model, `return_std` relative to `predict`, batches of 1000",
            ("recommended model, return_std / predict, batches of 1,000",),
        ),
        Row(
            "start-up to the first prediction, relative to NumPy's and scikit-learn's",
            ("start-up to the first prediction, beyond NumPy and scikit-learn",),
        ),
        Row(
            "recommended model, usual threads of linear algebra relative to one",
            ("recommended model, threads as they are / one thread, by the clock",),
        ),
        _LARGE,
        Row(
            "memory at 300 grids, doubles / floats, relative to 5.6 / 3.0 GB",
            _both("300 grids, {}, peak memory / promised limit"),
        ),
        Row(
            "test error at 300 grids after 6000 rows, relative",
            ("300 grids, float64, test error after 6,000 rows",),
        ),
        Row(
            "cost of a row at 1.4 million rows over that at 10,000: `sparse` / `exact` / `dense`",
            tuple(
                f"growth, 30 grids, {name}, 1,381,600 / 10,000 rows"
                for name in ("sparse, row by row", "exact, batches of 25", "dense, batches of 25")
            ),
        ),
        Row(
            "`exact`, batches of 25: worst objective / optimum up to 8000 rows",
            ("exact, 30 grids, worst objective / optimum to 8,000 rows",),
        ),
        Row(
            "`exact`, batches of 25, time relative",
            ("exact, 30 grids, batches of 25, cost / yardstick's cost",),
        ),
    ),
}  # fmt: skip
"""The tables by name, as pages ask for them."""


def renew(pages: Sequence[Path], results: Path) -> None:
    """Put the tables of all machines into pages that ask for them."""
    found = {name: Store(results / folder).read() for name, folder in MACHINES.items()}
    tables = {name: table(rows, found).markdown() for name, rows in TABLES.items()}
    for page in pages:
        page.write_text(fill(page.read_text(encoding="utf-8"), tables), encoding="utf-8")


def table(rows: Sequence[Row], found: Mapping[str, Sequence[Record]]) -> Table:
    """A column for each machine and instruction set with records, and the targets."""
    measures: dict[tuple[str, str], dict[str, Mapping[str, Any]]] = {}
    for machine, records in found.items():
        for instructions in ORDER:
            own = [r for r in records if r.settings["instructions"] == instructions]
            if own:
                known = {m["name"]: m for record in own for m in record.details["measures"]}
                measures[machine, instructions] = known
    columns = [f"{machine}, {instructions}" for machine, instructions in measures]
    cells = [
        (row.title, *(_figures(row, own) for own in measures.values()), _targets(row, measures))
        for row in rows
    ]
    return Table(("", *columns, "target"), cells)


def _figures(row: Row, known: Mapping[str, Mapping[str, Any]]) -> str:
    own = [known.get(name) for name in row.measures]
    if not any(own):
        return ""
    return " / ".join("" if m is None else f"{_judged(m):.3g}{row.unit}" for m in own)


def _judged(measure: Mapping[str, Any]) -> float:
    """The ratio of times by the clock or of processor times, whichever is less favourable."""
    ratios = [r for r in (measure["ratio"], measure["total_ratio"]) if r is not None]
    return float(min(ratios) if measure["target"].startswith(">=") else max(ratios))


def _targets(row: Row, measures: Mapping[Any, Mapping[str, Mapping[str, Any]]]) -> str:
    """What the latest records say."""
    latest: dict[str, str] = {}
    for known in measures.values():
        latest |= {name: m["target"] for name, m in known.items() if name in row.measures}
    bounds = [latest.get(name, "").split(" ")[-1] for name in row.measures]
    if not any(bounds):
        return ""
    return " / ".join(bound and bound + row.unit for bound in dict.fromkeys(bounds))
