"""How a model goes to disk and comes back: an archive of its parameters and its whole state."""

from __future__ import annotations

import os
from collections.abc import Mapping
from copy import deepcopy
from importlib import metadata
from typing import TYPE_CHECKING, Any

import numpy as np

from losse._kernels.simd import padded
from losse.encoders import (
    AdaptiveEncoder,
    Encoder,
    FourierEncoder,
    LosseEncoder,
    ReLUEncoder,
    TileEncoder,
)
from losse.ftl.construction import check_parameters, new_solver
from losse.ftl.layout import memory_shape
from losse.ftl.past import Past
from losse.ftl.prequential import Prequential
from losse.ftl.ridges import new_contest
from losse.storage.archive import Progress, open_archive, write_archive
from losse.storage.progress import byte_progress
from losse.storage.state import State, StateReader, nested, split

if TYPE_CHECKING:
    from losse.ftl.regressor import FTLRegressor

KIND = "losse.FTLRegressor"
VERSION = 1
ENCODERS = {
    encoder.__name__: encoder
    for encoder in (AdaptiveEncoder, LosseEncoder, FourierEncoder, ReLUEncoder, TileEncoder)
}
_PARAMETERS = {"solver", "ridge", "discount", "past", "dtype"}
_MOST_OUTPUTS = 1 << 20


def save(model: FTLRegressor, path: str | os.PathLike[str], progress: bool | Progress) -> None:
    """Write a fitted model."""
    values, arrays = split({"losse": metadata.version("losse")} | state(model))
    write_archive(path, KIND, VERSION, values, arrays, report(progress, "Saving"))


def load(model: FTLRegressor, path: str | os.PathLike[str], progress: bool | Progress) -> None:
    """Read what `save` has written into a new model."""
    with open_archive(path, KIND, VERSION, report(progress, "Loading")) as archive:
        saved = StateReader(archive, os.fsdecode(path))
        restore(model, saved)
        saved.require_all_read()


def state(model: FTLRegressor) -> State:
    """What a checkpoint keeps of a fitted model."""
    state = settings(model) | {
        "given_fitted": hasattr(model.encoder, "projection_"),
        "used_encoder": _description(model.encoder_),
        "encoder_names": _names(model.encoder_),
        "names": _names(model),
        "n_outputs": model.n_outputs_,
        "n_samples_seen": model.n_samples_seen_,
        "single": model._single,
        "weight": model._weight,
        "ridge": model.ridge_,
        "built": model._built,
        "holds_rows": model._past is not None,
        **nested("encoder", model.encoder_.state()),
        **nested("solver", model._solver.state()),
        **nested("prequential", model._prequential.state()),
    }
    if model._past is not None:
        state |= nested("past", model._past.state())
    if model._contest is not None:
        state |= nested("contest", model._contest.state())
    return state


def restore(model: FTLRegressor, saved: StateReader) -> None:
    """Let a new model take over what `state` has returned."""
    restore_settings(model, saved)
    encoder = _encoder(saved, "used_encoder")
    encoder.restore(saved.part("encoder"))
    _take_names(encoder, saved, "encoder_names")
    n_outputs = saved.count("n_outputs", at_most=_MOST_OUTPUTS)
    if n_outputs == 0:
        saved.refuse("n_outputs=0 makes no model")
    saved.require_shape("solver.memory.A", memory_shape(encoder), model.dtype)
    saved.require_shape("solver.memory.B", (encoder.dimension, padded(n_outputs)))
    solver = new_solver(model, encoder, n_outputs, saved.positive("ridge"))
    solver.restore(saved.part("solver"))
    model._prequential = Prequential(n_outputs)
    model._prequential.restore(saved.part("prequential"))
    model._contest = new_contest(model)
    if model._contest is not None:
        model._contest.restore(saved.part("contest"), solver.weights.shape)
    model._past = None
    if saved.flag("holds_rows"):
        model._past = Past(encoder.n_features_in_, n_outputs)
        model._past.restore(saved.part("past"))
    model._built = saved.count("built")
    model.n_features_in_ = encoder.n_features_in_
    _take_names(model, saved, "names")
    model.n_outputs_ = n_outputs
    model.n_samples_seen_ = saved.count("n_samples_seen")
    model._single = saved.flag("single")
    if model._single and n_outputs > 1:
        saved.refuse(f"single is true, but n_outputs={n_outputs}")
    model._weight = saved.number("weight", at_least=1.0)
    model._posterior = None
    if saved.flag("given_fitted"):
        model.encoder = deepcopy(encoder)
    model.encoder_ = encoder
    model._solver = solver


def settings(model: FTLRegressor) -> State:
    """The parameters of a model, its encoder as if it were not fitted."""
    given = model.encoder
    return {
        "parameters": _parameters(model),
        "given_encoder": None if given is None else _description(given),
    }


def restore_settings(model: FTLRegressor, saved: StateReader) -> None:
    """Take over what `settings` has returned."""
    _take_parameters(model, saved)
    described = saved.value("given_encoder") is not None
    model.encoder = _encoder(saved, "given_encoder") if described else None


def report(progress: bool | Progress, label: str) -> Progress | None:
    """What tells of the bytes done: a line of progress, the given function, or nothing."""
    if isinstance(progress, bool):
        return byte_progress(label) if progress else None
    return progress


def _parameters(model: FTLRegressor) -> dict[str, Any]:
    return {
        "solver": model.solver,
        "ridge": "auto" if model.ridge == "auto" else float(model.ridge),
        "discount": float(model.discount),
        "past": None if model.past is None or callable(model.past) else int(model.past),
        "dtype": np.dtype(model.dtype).name,
    }


def _take_parameters(model: FTLRegressor, saved: StateReader) -> None:
    values = saved.value("parameters")
    if not isinstance(values, Mapping) or set(values) != _PARAMETERS:
        saved.refuse(f"parameters={values!r} are not those of a model")
    model.set_params(**values)
    try:
        check_parameters(model)
    except (TypeError, ValueError) as error:
        saved.refuse(f"parameters are wrong, {error}")


def _description(encoder: Encoder) -> dict[str, Any]:
    name = type(encoder).__name__
    if ENCODERS.get(name) is not type(encoder):
        raise TypeError(
            f"encoder={encoder!r} cannot be saved: only losse's own encoders can, "
            f"{', '.join(ENCODERS)}."
        )
    parameters = {key: _plain(value) for key, value in encoder.get_params(deep=False).items()}
    return {"type": name, "parameters": parameters}


def _plain(value: Any) -> Any:
    """A parameter as JSON has it."""
    if isinstance(value, (tuple, list)):
        return [_plain(item) for item in value]
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


def _encoder(saved: StateReader, name: str) -> Encoder:
    """The encoder that `_description` describes, not fitted."""
    value = saved.value(name)
    if not isinstance(value, Mapping) or set(value) != {"type", "parameters"}:
        saved.refuse(f"{name}={value!r} does not describe an encoder")
    kind = ENCODERS.get(value["type"]) if isinstance(value["type"], str) else None
    parameters = value["parameters"]
    if kind is None or not isinstance(parameters, Mapping):
        saved.refuse(f"{name}={value!r} is not known")
    if set(parameters) != set(kind().get_params(deep=False)):
        saved.refuse(f"{name} has the parameters {sorted(parameters)}")
    try:
        scaling = _scaling(parameters["scaling"])
        encoder: Encoder = kind(**{**parameters, "scaling": scaling})
        encoder._check_parameters()
    except (TypeError, ValueError, OverflowError) as error:
        saved.refuse(f"{name} is wrong, {error}")
    return encoder


def _scaling(value: Any) -> Any:
    """Bounds as they were given: a pair of numbers or of arrays."""
    if not isinstance(value, list):
        return value
    return tuple(np.array(x, dtype=np.float64) if isinstance(x, list) else x for x in value)


def _names(estimator: Any) -> list[str] | None:
    names = getattr(estimator, "feature_names_in_", None)
    return None if names is None else [str(name) for name in names]


def _take_names(estimator: Any, saved: StateReader, key: str) -> None:
    names = saved.value(key)
    if names is None:
        return
    if (
        not isinstance(names, list)
        or len(names) != estimator.n_features_in_
        or not all(isinstance(name, str) for name in names)
    ):
        saved.refuse(f"{key} is not a list of {estimator.n_features_in_} texts")
    estimator.feature_names_in_ = np.array(names, dtype=object)
