"""What is each part of the recommended model worth?  The same model with one thing changed."""

from __future__ import annotations

from collections.abc import Callable

from losse import AdaptiveEncoder, FTLRegressor, LosseEncoder

SCALED_BY = 1000
"""Rows that settle the scaling of encoders that have no warm-up of their own."""


def _adaptive(seed: int, **parameters: int | bool) -> FTLRegressor:
    return FTLRegressor(AdaptiveEncoder(seed=seed, **parameters))  # type: ignore[arg-type]


VARIANTS: dict[str, Callable[[int], FTLRegressor]] = {
    "stages-0": lambda seed: _adaptive(seed, n_stages=0),
    "stages-1": lambda seed: _adaptive(seed, n_stages=1),
    "stages-6": lambda seed: _adaptive(seed, n_stages=6),
    "bins-2": lambda seed: _adaptive(seed, n_grids=220, n_bins=2),
    "grids-200": lambda seed: _adaptive(seed, n_grids=200),
    "warm-up-2000": lambda seed: _adaptive(seed, warm_up=2000),
    "not-linear": lambda seed: _adaptive(seed, linear=False),
    "pairs": lambda seed: FTLRegressor(
        LosseEncoder(100, 4, inputs_per_axis=2, linear=True, seed=seed), past=SCALED_BY
    ),
    "pairs-not-linear": lambda seed: FTLRegressor(
        LosseEncoder(100, 4, inputs_per_axis=2, seed=seed), past=SCALED_BY
    ),
    "paper-ridge-auto": lambda seed: FTLRegressor(LosseEncoder(seed=seed), past=SCALED_BY),
    "ridge-1e-5": lambda seed: FTLRegressor(AdaptiveEncoder(seed=seed), ridge=1e-5),
    "ridge-1e-3": lambda seed: FTLRegressor(AdaptiveEncoder(seed=seed), ridge=1e-3),
}
STALE = ("warm-up-2000",)
"""Those that say something about a policy that changes."""
