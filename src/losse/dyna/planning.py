"""What an agent learns from: which rows of each minibatch are real, and how others are imagined."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from losse.checks import check_count
from losse.dyna.search import SEARCH_CONTROLS

ALTERNATE = "alternate"
MBPO_SHARE = 0.05


@dataclass(frozen=True)
class Planning:
    """How an agent plans; see `make_dyna` for what each part means.

    >>> Planning(planning_steps=2).imagined(0, 3, 4).reshape(3, 4).astype(int)
    array([[0, 0, 0, 0],
           [1, 1, 1, 1],
           [1, 1, 1, 1]])
    >>> Planning(planning_steps=2, real_share=0.25).imagined(0, 3, 4).reshape(3, 4).astype(int)
    array([[0, 1, 1, 1],
           [0, 1, 1, 1],
           [0, 1, 1, 1]])
    """

    planning_steps: int = 16
    update_every: int = 25
    real_share: float | str = ALTERNATE
    search_control: str = "uniform"
    horizon: int = 1
    greedy_share: float = 0.5

    def __post_init__(self) -> None:
        check_count("planning_steps", self.planning_steps, at_least=0)
        check_count("update_every", self.update_every)
        check_count("horizon", self.horizon)
        if self.real_share != ALTERNATE:
            check_share("real_share", self.real_share, f' or "{ALTERNATE}" or "auto"')
        check_share("greedy_share", self.greedy_share)
        if self.search_control not in SEARCH_CONTROLS:
            raise ValueError(
                f"search_control={self.search_control!r} is not known: use one of "
                f"{', '.join(SEARCH_CONTROLS)}."
            )

    def imagined(self, first: int, n_minibatches: int, batch_size: int) -> npt.NDArray[np.bool_]:
        """Whether each row of consecutive minibatches is imagined.

        Some agents draw all minibatches of a training call at once and cut them apart, others one
        by one: ``first`` is the number of minibatches that this call has drawn before.
        """
        rows = np.zeros((n_minibatches, batch_size), dtype=bool)
        if self.planning_steps == 0:
            return rows.reshape(-1)
        if isinstance(self.real_share, str):
            rounds = np.arange(first, first + n_minibatches) % (1 + self.planning_steps)
            rows[rounds > 0] = True
        else:
            # A share above zero means at least one row, also of a small minibatch.
            n_real = int(np.ceil(round(self.real_share * batch_size, 6)))
            rows[:, n_real:] = True
        return rows.reshape(-1)


def resolved_share(real_share: float | str, discrete: bool) -> float | str:
    """What "auto" stands for: the paper's settings, which in continuous control are MBPO's.

    >>> resolved_share("auto", discrete=True), resolved_share("auto", discrete=False)
    ('alternate', 0.05)
    """
    if real_share == "auto":
        return ALTERNATE if discrete else MBPO_SHARE
    return real_share


def check_share(name: str, value: Any, others: str = "") -> None:
    """Raise unless ``value`` is a number from 0 to 1."""
    message = f"{name}={value!r} must be a number from 0 to 1{others}."
    if isinstance(value, bool | str) or not isinstance(value, Real):
        raise (ValueError if isinstance(value, str) else TypeError)(message)
    if not 0 <= float(value) <= 1:
        raise ValueError(message)
