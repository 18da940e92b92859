"""Checks of arguments, made before any state changes."""

import math
import sys
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils.validation import check_array, validate_data

from losse.typing import Array

LARGEST = 1e100
"""Largest input and target: products of three of them are still finite."""
LARGEST_WEIGHT = 1e50
"""Largest sample weight: times a square, and the growth of weights under a discount, finite."""
MOST = 2**128
"""Largest count, with room for any seed: what follows from it is still a double."""
SINGLE = {"X": 1e12, "sample_weight": 1e10}
"""Largest values where sums are kept in single precision, whose range ends at 3e38."""


def check_count(name: str, value: Any, at_least: int = 1, at_most: int = MOST) -> None:
    """Raise unless ``value`` is a whole number from ``at_least`` to ``at_most``."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name}={value!r} must be an integer of at least {at_least}.")
    if value < at_least:
        raise ValueError(f"{name}={value!r} must be an integer of at least {at_least}.")
    if int(value) > at_most:
        raise ValueError(f"{name}={value!r} must be an integer of at most {at_most}.")


def check_positive(name: str, value: Any) -> None:
    """Raise unless ``value`` is a finite number above zero."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name}={value!r} must be a finite number greater than 0.")
    if not 0 < value <= sys.float_info.max:  # type: ignore[operator]
        raise ValueError(f"{name}={value!r} must be a finite number greater than 0.")


def check_inner_share(name: str, value: Any) -> None:
    """Raise unless ``value`` is a number between zero and one, both excluded."""
    problem = f"{name}={value!r} must be a share between 0 and 1, such as 0.9."
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(problem)
    if not 0 < value < 1:  # type: ignore[operator]
        raise ValueError(problem)


def check_inputs(estimator: Any, X: Any, *, reset: bool) -> Array:
    """``X`` as finite float64 rows in C order.

    An array that is so already takes a short cut past scikit-learn's general checks, which
    would cost more than learning the row does.
    """
    plain = type(X) is np.ndarray and X.dtype == np.float64 and X.ndim == 2
    if (
        plain
        and not reset
        and len(X)
        and X.shape[1] == estimator.n_features_in_
        and not hasattr(estimator, "feature_names_in_")
    ):
        checked = np.ascontiguousarray(X)
    elif reset:  # without a trace on the estimator: `remember_inputs` follows when all is well
        checked = check_array(
            X, dtype=np.float64, order="C", ensure_all_finite=False, estimator=estimator,
            input_name="X",
        )  # fmt: skip
    else:
        checked = validate_data(
            estimator, X, dtype=np.float64, order="C", reset=False, ensure_all_finite=False
        )
    if not plain:
        require_unmasked("X", X)
    limit = _limit("X", LARGEST, estimator)
    _require_usable("X", checked, limit)
    return checked


def check_rows(name: str, X: Any, n_features: int) -> Array:
    """``X`` as finite float64 rows of ``n_features`` numbers in C order."""
    require_unmasked(name, X)
    rows = check_array(X, dtype=np.float64, order="C", ensure_all_finite=False, input_name=name)
    if rows.shape[1] != n_features:
        raise ValueError(
            f"{name} has {rows.shape[1]} features, expected {n_features}: those that were learned."
        )
    _require_usable(name, rows, LARGEST)
    return np.asarray(rows)


def require_unmasked(name: str, values: Any) -> None:
    """Raise for masked entries: NumPy would read the numbers that they hide."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise ValueError(f"{name} has masked entries: fill or remove them.")


def remember_inputs(estimator: Any, X: Any) -> None:
    """Set the number and names of features that later inputs must have."""
    validate_data(estimator, X, reset=True, skip_check_array=True)


def check_targets(Y: Any, n_rows: int, n_outputs: int | None) -> Array:
    """``Y`` as finite float64 targets, one row per input and of the model's width if it has one."""
    if Y is None:
        raise ValueError(
            "y=None: this estimator requires y to be passed, but the target y is None."
        )
    targets = Y
    if not (type(Y) is np.ndarray and Y.dtype == np.float64 and Y.ndim in (1, 2) and Y.size):
        require_unmasked("y", Y)
        targets = check_array(
            Y, dtype=np.float64, ensure_2d=False, allow_nd=True, ensure_all_finite=False,
            input_name="y",
        )  # fmt: skip
    if targets.ndim not in (1, 2):
        raise ValueError(
            f"y has {targets.ndim} dimensions; give one target per row, or one row of targets."
        )
    if len(targets) != n_rows:
        raise ValueError(
            f"X has {n_rows} rows but y has {len(targets)}: inconsistent numbers of samples. "
            "For one row with several targets pass y[None, :]."
        )
    width = 1 if targets.ndim == 1 else targets.shape[1]
    if n_outputs is not None and width != n_outputs:
        raise ValueError(
            f"y has {width} outputs, but the model was started with {n_outputs}; "
            "use a new model for other targets."
        )
    _require_usable("y", targets, LARGEST)
    return np.asarray(targets)


def check_weights(sample_weight: Any, n_rows: int, estimator: Any = None) -> Array:
    """``sample_weight`` as non-negative numbers, one per row; one number (None: 1) is for all."""
    if sample_weight is None:
        return np.ones(n_rows)
    if isinstance(sample_weight, Real):
        sample_weight = np.full(n_rows, float(sample_weight))
    require_unmasked("sample_weight", sample_weight)
    weights = check_array(
        sample_weight, dtype=np.float64, ensure_2d=False, ensure_all_finite=False,
        input_name="sample_weight",
    )  # fmt: skip
    if weights.shape != (n_rows,):
        raise ValueError(
            f"sample_weight has shape {weights.shape}, expected ({n_rows},): one number per row."
        )
    _require_finite("sample_weight", weights)
    if (weights < 0).any():
        raise ValueError(
            f"sample_weight has a negative entry, {weights.min()}; weights are 0 or more."
        )
    if not weights.any():
        raise ValueError("sample_weight is zero for every row: leave such rows out.")
    limit = _limit("sample_weight", LARGEST_WEIGHT, estimator)
    _require_moderate("sample_weight", weights, limit)
    smallest = weights[weights > 0].min()
    if smallest < 1 / LARGEST_WEIGHT:
        raise ValueError(
            f"sample_weight has an entry of {smallest}, below {1 / LARGEST_WEIGHT:.0e}: "
            "use 0 to leave a row out."
        )
    return np.asarray(weights)


def check_ages(age: Any, n_rows: int) -> Array:
    """``age`` as whole numbers from 0, one per row; None for rows that came last, in order."""
    if age is None:
        return np.arange(n_rows - 1.0, -1.0, -1.0)
    if isinstance(age, Real):
        age = np.full(n_rows, float(age))
    ages = check_array(
        age, dtype=np.float64, ensure_2d=False, ensure_all_finite=False, input_name="age"
    )
    if ages.shape != (n_rows,):
        raise ValueError(f"age has shape {ages.shape}, expected ({n_rows},): one number per row.")
    _require_finite("age", ages)
    if (ages < 0).any() or (ages != np.floor(ages)).any():
        raise ValueError("age has an entry that is not a whole number from 0: give rows since.")
    return np.asarray(ages)


def _limit(name: str, usual: float, estimator: Any) -> float:
    """Largest value of an argument, in the precision of an estimator's sums."""
    dtype = getattr(estimator, "dtype", "float64")
    return usual if dtype == "float64" or np.dtype(dtype) == np.float64 else SINGLE[name]


def _require_usable(name: str, values: Array, limit: float) -> None:
    """Raise for values that are not finite, or too large."""
    if not np.vdot(values, values) <= limit**2:  # so for NaN, too
        _require_finite(name, values)
        _require_moderate(name, values, limit)


def _require_moderate(name: str, values: Array, limit: float = LARGEST) -> None:
    if np.vdot(values, values) <= limit**2:
        return
    largest = float(np.abs(values).max())
    if largest > limit:
        raise ValueError(
            f"{name} has an entry of size {largest}: beyond {limit:.0e}, sums of squares leave the "
            "range of numbers or lose all else; scale it down."
        )


def _require_finite(name: str, values: Array) -> None:
    # A finite sum of squares has finite terms; any other (an overflow, say) needs a closer look.
    if math.isfinite(np.vdot(values, values)) or np.isfinite(values).all():
        return
    place = tuple(int(i) for i in np.argwhere(~np.isfinite(values))[0])
    what = "NaN" if np.isnan(values[place]) else "inf"
    raise ValueError(
        f"{name} contains {what} at {place}: NaN and infinity cannot be learned from; "
        "remove or replace such rows."
    )
