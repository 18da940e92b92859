"""Functions and parts of a reward that a world model is given, so that it need not learn them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy.typing as npt

from losse.world.transitions import Values

Function = Callable[[Values, Values, Values], npt.ArrayLike]
"""A function of (obs, actions, next_obs), batches in the environment's units: a value per row."""


@dataclass(frozen=True)
class PartlyKnown:
    """A reward of which one part is known; a world model learns the rest.

    Most rewards of robots are a term of the state less a cost of the actions, and the cost is
    known. The model learns the reward without it, and puts it back where it predicts.

    Parameters
    ----------
    part
        Function of (obs, actions, next_obs) to the known part of the reward, one number per row.

    Examples
    --------
    >>> import numpy as np
    >>> from gymnasium.spaces import Box
    >>> from losse.world import LosseWorldModel
    >>> cost = PartlyKnown(lambda obs, actions, next_obs: -0.1 * (actions**2).sum(axis=1))
    >>> model = LosseWorldModel(Box(-1, 1, (1,)), Box(-1, 1, (2,)), reward=cost)
    >>> still, pushed = np.zeros((1, 1)), np.ones((1, 2))
    >>> model.step(still, pushed)[1]  # before anything was learned
    array([-0.2])
    >>> for _ in range(50):
    ...     model.update(still, pushed, [0.8], still, [False])
    >>> model.step(still, pushed)[1].round(2)
    array([0.8])
    """

    part: Function

    def __post_init__(self) -> None:
        if not callable(self.part):
            raise TypeError(
                f"part={self.part!r} must be a function of (obs, actions, next_obs) to the known "
                "part of the reward."
            )


Known: TypeAlias = str | Function | PartlyKnown


def kind_of(known: Known) -> str:
    """A word for what is known: the word itself, ``"function"`` or ``"part"``."""
    if isinstance(known, PartlyKnown):
        return "part"
    return known if isinstance(known, str) else "function"


def learned_part(known: Known) -> str | None:
    """``"learned"`` or ``"part"`` if a model has to predict all or a part of it, else None.

    >>> [learned_part(known) for known in ("learned", "never", PartlyKnown(max), max)]
    ['learned', None, 'part', None]
    """
    kind = kind_of(known)
    return kind if kind in ("learned", "part") else None


def require_termination(termination: Any) -> None:
    """Raise `ValueError` unless a world model takes it for its termination."""
    if not callable(termination):
        _require_word("termination", termination, ("learned", "never"), "")


def require_reward(reward: Any) -> None:
    """Raise `ValueError` unless a world model takes it for its reward."""
    if not (callable(reward) or isinstance(reward, PartlyKnown)):
        others = ", or PartlyKnown(function) if it is a part of the reward"
        _require_word("reward", reward, ("learned",), others)


def _require_word(name: str, value: Any, words: tuple[str, ...], others: str) -> None:
    if not (isinstance(value, str) and value in words):
        known = ", ".join(f'"{word}"' for word in words)
        raise ValueError(
            f"{name}={value!r} is not known: use {known} or a function of (obs, actions, "
            f"next_obs){others}."
        )
