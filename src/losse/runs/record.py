"""The record of a run: its score and curve, and everything that decided them."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from losse.runs.provenance import Environment, environment
from losse.storage.jsonfile import plain


class Key(NamedTuple):
    """Key of a run within its experiment; `options` is a digest of all options."""

    method: str
    setting: str | float
    seed: int
    options: str

    @property
    def order(self) -> tuple[Any, ...]:
        """A value to sort by: numbers before names, as both may be settings."""
        return self.method, isinstance(self.setting, str), self.setting, self.seed, self.options


def key_of(method: str, setting: str | float, seed: int, options: Mapping[str, Any]) -> Key:
    """The key of a run, the same whatever the order of its options.

    >>> key_of("nn", 0.5, 3, {"rate": 0.1, "samples": 100})
    Key(method='nn', setting=0.5, seed=3, options='8a1daa215e')
    """
    text = json.dumps(plain(options), sort_keys=True)
    return Key(method, setting, seed, hashlib.sha256(text.encode()).hexdigest()[:10])


@dataclass(frozen=True, kw_only=True)
class Record:
    """Result of one run.

    `setting` is what the experiment varies (correlation level, environment id, ...), `score` the
    figure that a table summarises, `curve` a list of (x, y), `settings` all options of the run,
    `details` whatever else is worth keeping. The environment fills itself in.

    >>> record = Record(experiment="toy", method="losse", setting=0.5, seed=3, score=0.1)
    >>> record.key.seed, record.environment.cpu == environment().cpu
    (3, True)
    """

    experiment: str
    method: str
    setting: str | float
    seed: int
    score: float
    curve: Sequence[tuple[float, float]] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    seconds: float = 0.0
    details: Mapping[str, Any] = field(default_factory=dict)
    environment: Environment = field(default_factory=environment)

    @property
    def key(self) -> Key:
        """Key of the run within its experiment."""
        return key_of(self.method, self.setting, self.seed, self.settings)

    def line(self) -> str:
        """The record as one line of strict JSON, which names the environment by its id."""
        fields = {name: getattr(self, name) for name in FIELDS}
        return json.dumps(plain(fields | {"environment": self.environment.id}), allow_nan=False)


FIELDS = tuple(Record.__dataclass_fields__)


def record_of(line: str, environments: Mapping[str, Environment]) -> Record:
    """Read a line that `Record.line` has written.

    Raises ValueError if it is something else, or if its environment is unknown.

    >>> record = Record(experiment="toy", method="losse", setting="a", seed=0, score=float("nan"))
    >>> record_of(record.line(), {record.environment.id: record.environment}).score
    nan
    """
    try:
        data = json.loads(line)
        if set(data) != set(FIELDS):
            wrong = sorted(set(data) ^ set(FIELDS))
            raise ValueError(f"fields missing or unknown: {', '.join(wrong)}")
        for name, kinds in _KINDS.items():
            if not isinstance(data[name], kinds) or isinstance(data[name], bool):
                raise ValueError(f"{name} is {data[name]!r}")
        data["score"] = _number(data["score"])
        data["curve"] = [(x, _number(y)) for x, y in data["curve"]]
        if data["environment"] not in environments:
            raise ValueError(f"environment {data['environment']!r} is not in environments.json")
        return Record(**data | {"environment": environments[data["environment"]]})
    except (ValueError, TypeError) as error:
        raise ValueError(f"not a record: {error}") from error


_KINDS: Mapping[str, Any] = {
    "experiment": str,
    "method": str,
    "setting": str | int | float,
    "seed": int,
    "score": int | float | None,
    "curve": list,
    "settings": dict,
    "seconds": int | float,
    "details": dict,
    "environment": str,
}


def _number(value: float | None) -> float:
    return math.nan if value is None else value


def file_name(*parts: str | float) -> str:
    """Join what tells runs apart to a name that every file system takes.

    >>> file_name("nn", "a/b", "rate=0.1", "seed0")
    'nn_a-b_rate=0.1_seed0'
    """
    return re.sub(r"[^\w.+=-]+", "-", "_".join(map(str, parts)))
