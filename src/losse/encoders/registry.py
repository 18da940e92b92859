"""Encoders by name: how one is described in a checkpoint, and made again from the description."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from losse.encoders.adaptive import AdaptiveEncoder
from losse.encoders.base import Encoder
from losse.encoders.fourier import FourierEncoder
from losse.encoders.losse import LosseEncoder
from losse.encoders.relu import ReLUEncoder
from losse.encoders.tile import TileEncoder
from losse.storage.state import StateReader

ENCODERS = {
    encoder.__name__: encoder
    for encoder in (AdaptiveEncoder, LosseEncoder, FourierEncoder, ReLUEncoder, TileEncoder)
}


def describe(encoder: Encoder) -> dict[str, Any]:
    """The type and parameters of an encoder, as JSON has them.

    >>> describe(TileEncoder(3, seed=1))["type"]
    'TileEncoder'
    """
    name = type(encoder).__name__
    if ENCODERS.get(name) is not type(encoder):
        raise TypeError(
            f"encoder={encoder!r} cannot be saved: only losse's own encoders can, "
            f"{', '.join(ENCODERS)}."
        )
    parameters = {key: _plain(value) for key, value in encoder.get_params(deep=False).items()}
    return {"type": name, "parameters": parameters}


def read(saved: StateReader, name: str) -> Encoder:
    """The encoder that `describe` has described, not fitted."""
    value = saved.value(name)
    if not isinstance(value, Mapping) or set(value) != {"type", "parameters"}:
        saved.refuse(f"{name}={value!r} does not describe an encoder")
    kind = ENCODERS.get(value["type"]) if isinstance(value["type"], str) else None
    parameters = value["parameters"]
    if kind is None or not isinstance(parameters, Mapping):
        saved.refuse(f"{name}={value!r} is not an encoder of losse")
    if set(parameters) != set(kind().get_params(deep=False)):
        saved.refuse(f"{name} has the parameters {sorted(parameters)}")
    try:
        scaling = _scaling(parameters["scaling"])
        encoder: Encoder = kind(**{**parameters, "scaling": scaling})
        encoder.check_parameters()
    except (TypeError, ValueError, OverflowError) as error:
        saved.refuse(f"{name} is wrong, {error}")
    return encoder


def _plain(value: Any) -> Any:
    """A parameter as JSON has it."""
    if isinstance(value, (tuple, list)):
        return [_plain(item) for item in value]
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


def _scaling(value: Any) -> Any:
    """Bounds as they were given: a pair of numbers or of arrays."""
    if not isinstance(value, list):
        return value
    return tuple(np.array(x, dtype=np.float64) if isinstance(x, list) else x for x in value)
