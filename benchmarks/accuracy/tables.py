"""Tables of `losse bench accuracy`, drawn from its records.

Of transitions, a row per contender and a column per environment; a cell with several figures has
one for each number of rows that its title names.  Of tables, a row per table, and a column per
contender with its figure at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from benchmarks import pages
from benchmarks.accuracy import summary
from benchmarks.accuracy.contenders.entries import ENTRIES, TRAINED_AT_CHECKPOINTS
from benchmarks.accuracy.contenders.leaders import VARIANTS
from benchmarks.accuracy.measure import LEVELS
from benchmarks.accuracy.plan import WHERE, environment_of
from benchmarks.accuracy.streams.cache import Kind
from benchmarks.accuracy.streams.tabular import TABLES
from losse.runs.record import Record
from losse.runs.table import Cell, Mean, Table, mean_of

KINDS: dict[Kind, str] = {
    "random": "Random policy",
    "changing": "Changing policy",
    "tasks": "Sequence of tasks",
    "tables": "Tables",
}
SHOWN: dict[Kind, tuple[int, ...]] = {
    "random": (1000, 3000, 10_000, 50_000),
    "changing": (1000, 3000, 10_000, 20_000),
    "tasks": (20_000,),
}
PARTS = ("state", "reward", "termination")
Value = Callable[[Sequence[Record]], Cell]
_CALIBRATION = f"Test targets within intervals of {' / '.join(f'{x:.0%}' for x in LEVELS)}, %"


def document(records: Sequence[Record]) -> str:
    """All tables, in Markdown."""
    parts = ["# Accuracy", "Drawn from the records in this folder by `losse bench accuracy`."]
    for kind, heading in KINDS.items():
        own = tables(records, kind)
        parts += [f"## {heading}"] * bool(own)
        parts += [f"{title}\n\n{table}" for title, table in own.values()]
    return "\n\n".join(parts) + "\n"


def fill(page: str, records: Sequence[Record]) -> str:
    """Put tables into the places of a page that ask for `kind name`, if there are records."""
    known = {f"{kind} {name}": text for kind in KINDS
             for name, (_, text) in tables(records, kind).items()}  # fmt: skip
    return pages.fill(page, known)


def tables(records: Sequence[Record], kind: Kind) -> dict[str, tuple[str, str]]:
    """Titles and tables about one kind of stream, by a short name."""
    if kind == "tables":
        return _of_tables([r for r in records if str(r.setting).endswith(" tables")])
    own = [r for r in records if str(r.setting).endswith(f" {kind}")]
    rows = " / ".join(f"{n:,}" for n in SHOWN[kind])
    wanted: dict[str, tuple[str, Value]] = {
        "test": (f"Test nmse after {rows} rows", _tests(kind)),
        **{p: (f"Test nmse of the {p} after {rows} rows", _part(p, kind)) for p in PARTS},
        "prequential": (f"Prequential nmse of the first {rows} rows", _prequential(kind)),
        "ratio": (
            "Test nmse, as a multiple of the full-replay network's with the same seed: median",
            _ratio(own, kind),
        ),
        "forgetting": (
            "Largest rise of the error on a finished task, %: above that when it was finished / "
            "above the least since",
            _forgetting,
        ),
        "variants": (f"Test nmse of variants after {rows} rows", _tests(kind)),
        "time": ("Processor time of learning, ms per row", _time),
        "memory": ("Memory, MB", _memory),
        "calibration": (_CALIBRATION, _coverage),
    }
    variants = (
        ("recommended", "adaptive", *VARIANTS) if {r.method for r in own} & set(VARIANTS) else ()
    )
    drawn = {
        name: (
            title,
            _by_environment(own, kind, value, variants if name == "variants" else tuple(ENTRIES)),
        )
        for name, (title, value) in wanted.items()
    }
    return {name: (title, table) for name, (title, table) in drawn.items() if table}


def long_table(records: Sequence[Record]) -> Table:
    """Everything, a line per stream, contender and checkpoint."""
    lines: list[tuple[Cell, ...]] = []
    for setting in sorted({str(r.setting) for r in records}):
        environment, kind = setting.split()
        for contender in (*ENTRIES, *VARIANTS):
            own = summary.of(records, contender, setting)
            test = summary.series(own, "test")
            ahead, seconds = summary.prequential(own), summary.series(own, "seconds")
            memory = summary.series(own, "nbytes")
            parts = [summary.part(own, name) for name in PARTS]
            lines += [
                (kind, environment, contender, n, test.get(n),
                 *(part.get(n) for part in parts), ahead[n],
                 1e3 * seconds[n].mean / n, memory[n].mean / 1e6)
                for n in ahead
            ]  # fmt: skip
    errors = (f"{name} nmse" for name in ("test", *PARTS, "prequential"))
    columns = ("stream", "environment", "contender", "rows", *errors, "ms per row", "MB")
    return Table(columns, lines)


def _of_tables(records: Sequence[Record]) -> dict[str, tuple[str, str]]:
    """Titles and tables about tables, with the least errors in bold."""
    names = list(dict.fromkeys([*TABLES, *sorted(_name(r) for r in records)]))
    names = [name for name in names if any(_name(r) == name for r in records)]
    contenders = [c for c in (*ENTRIES, *VARIANTS) if any(r.method == c for r in records)]
    groups = {(n, c): summary.of(records, c, f"{n} tables") for n in names for c in contenders}

    def drawn(value: Callable[[Sequence[Record]], float | None], *, bold: bool) -> str:
        lines: list[tuple[Cell, ...]] = []
        for name in names:
            found = [value(groups[name, c]) if groups[name, c] else None for c in contenders]
            texts = [None if v is None else short(v) for v in found]
            least = min((v for v in found if v is not None), default=None)
            best = None if least is None else short(least)
            marked = [f"**{t}**" if bold and t is not None and t == best else t for t in texts]
            if best is not None:
                lines.append((name, *marked))
        return Table(("table", *contenders), lines).markdown() if lines else ""

    def multiple(group: Sequence[Record]) -> float | None:
        ours = groups.get((_name(group[0]), "recommended"))
        if not ours or group[0].method == "recommended":
            return None
        return mean_of([r.score for r in ours]).mean / mean_of([r.score for r in group]).mean

    found = {
        "about": ("Rows, inputs, and what is predicted", _about(groups)),
        "test": ("Test nmse", drawn(_last_test, bold=True)),
        "prequential": ("Prequential nmse", drawn(_last_ahead, bold=True)),
        "ratio": (
            "Error of the recommended model, as a multiple of others': test nmse, or prequential "
            "nmse where rows have an order",
            drawn(multiple, bold=False),
        ),
        "time": ("Processor time of learning, ms per row", drawn(_milliseconds, bold=False)),
        "calibration": (_CALIBRATION, _coverages(names, groups)),
    }
    return {name: (title, table) for name, (title, table) in found.items() if table}


def _coverages(names: Sequence[str], groups: Mapping[tuple[str, str], Sequence[Record]]) -> str:
    """How many targets intervals hold, a line per table; contenders without any are left out."""
    cells = {at: _coverage(group) for at, group in groups.items() if group}
    contenders = [c for c in (*ENTRIES, *VARIANTS) if any(cells.get((n, c)) for n in names)]
    lines = [(name, *(cells.get((name, c)) for c in contenders)) for name in names]
    lines = [line for line in lines if any(line[1:])]
    return Table(("table", *contenders), lines).markdown() if lines else ""


def _name(record: Record) -> str:
    return environment_of(record.setting)


def _about(groups: Mapping[tuple[str, str], Sequence[Record]]) -> str:
    """What the tables are that the benchmark has itself, and how many seeds have records."""
    lines: list[tuple[Cell, ...]] = []
    for name, table in TABLES.items():
        seeds = {len(group) for (where, _), group in groups.items() if where == name and group}
        order = "yes" if table.in_order else "no"
        if seeds:
            number = "-".join(str(n) for n in sorted({min(seeds), max(seeds)}))
            lines.append((name, table.n_learned, table.inputs, order, number, table.about))
    columns = ("table", "rows learned", "inputs", "in order", "seeds", "what is predicted")
    return Table(columns, lines).markdown() if lines else ""


def _last_test(records: Sequence[Record]) -> float | None:
    last = summary.final(summary.series(records, "test"))
    return last.mean if last else None


def _last_ahead(records: Sequence[Record]) -> float | None:
    last = summary.final(summary.prequential(records))
    return last.mean if last else None


def _milliseconds(records: Sequence[Record]) -> float:
    return summary.milliseconds(records).mean


def _by_environment(
    records: Sequence[Record], kind: Kind, value: Value, contenders: Sequence[str]
) -> str:
    """A table of one figure; rows without any are left out."""
    known = {str(r.setting) for r in records if r.method in contenders}
    environments = [e for e in WHERE[kind] if f"{e} {kind}" in known]
    lines: list[tuple[Cell, ...]] = []
    for contender in contenders:
        groups = [summary.of(records, contender, f"{e} {kind}") for e in environments]
        cells = [value(group) if group else None for group in groups]
        if any(cell is not None for cell in cells):
            lines.append((contender, *cells))
    return Table(("contender", *environments), lines).markdown() if lines else ""


def _tests(kind: Kind) -> Value:
    return lambda records: _joined(summary.series(records, "test"), kind)


def _part(name: str, kind: Kind) -> Value:
    return lambda records: _joined(summary.part(records, name), kind) or None


def _prequential(kind: Kind) -> Value:
    def value(records: Sequence[Record]) -> Cell:
        # What is trained at checkpoints only has no predictions ahead that are worth the name.
        if records[0].method in TRAINED_AT_CHECKPOINTS:
            return None
        return _joined(summary.prequential(records), kind)

    return value


def _ratio(everyone: Sequence[Record], kind: Kind) -> Value:
    """Median over seeds that both have: one that the network fails at would decide a mean."""

    def value(records: Sequence[Record]) -> Cell:
        network = summary.of(everyone, "full-replay", str(records[0].setting))
        seeds = {record.seed: summary.series([record], "test") for record in network}
        found: dict[int, list[float]] = {}
        for record in records:
            theirs = seeds.get(record.seed, {})
            for n, ours in summary.series([record], "test").items():
                if n in theirs:
                    found.setdefault(n, []).append(ours.mean / theirs[n].mean)
        common = {n: Mean(float(np.median(ratios)), 0, 1) for n, ratios in found.items()}
        return _joined(common, kind) if common and records[0].method != "full-replay" else None

    return value


def _joined(values: summary.Series, kind: Kind) -> str:
    shown = [short(values[n].mean) if n in values else "-" for n in SHOWN[kind]]
    while shown and shown[-1] == "-":
        shown.pop()
    return " / ".join(shown)


def short(value: float) -> str:
    """Two significant digits, and three decimals at most; one digit of what would be zero.

    >>> short(0.0386), short(0.1386), short(1.386), short(13.86), short(0.0000211)
    ('.039', '.139', '1.4', '14', '2e-05')
    """
    if 0 < value < 0.0005:
        return f"{value:.0e}"
    text = f"{value:.3f}" if value < 1 else f"{value:.2g}" if value < 100 else f"{value:.3g}"
    return text.removeprefix("0")


def _time(records: Sequence[Record]) -> Cell:
    return f"{summary.milliseconds(records).mean:.3g}"


def _memory(records: Sequence[Record]) -> Cell:
    return f"{summary.megabytes(records).mean:.3g}"


def _forgetting(records: Sequence[Record]) -> Cell:
    return " / ".join(f"{rise.mean:.2g}" for rise in summary.forgetting(records)) or None


def _coverage(records: Sequence[Record]) -> Cell:
    """Shares of the targets, with standard errors if there are several seeds."""
    shares = summary.coverage(records)
    errors = [f" ± {share.error:.1f}" if share.n > 1 else "" for share in shares]
    pairs = zip(shares, errors, strict=True)
    return " / ".join(f"{share.mean:.0f}{error}" for share, error in pairs) or None
