"""How a Losse world model goes to disk and comes back: one archive of its whole state."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib import metadata
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from losse.ftl import FTLRegressor
from losse.ftl import checkpoint as ftl
from losse.storage.archive import Progress, open_archive, write_archive
from losse.storage.state import State, StateReader, nested, split
from losse.world.task import restore_task, task_state
from losse.world.warm_up import WarmUp

if TYPE_CHECKING:
    from losse.world.losse import LosseWorldModel

KIND = "losse.LosseWorldModel"
VERSION = 1
_MOST = 1 << 24

Model = TypeVar("Model", bound="LosseWorldModel")


def save(model: LosseWorldModel, path: str | os.PathLike[str], progress: bool | Progress) -> None:
    """Write a model."""
    values, arrays = split(state(model))
    write_archive(path, KIND, VERSION, values, arrays, ftl.report(progress, "Saving"))


def load(
    kind: type[Model],
    path: str | os.PathLike[str],
    given: Mapping[str, Any],
    progress: bool | Progress,
) -> Model:
    """Read what `save` has written; ``given`` is for `restore_task`."""
    with open_archive(path, KIND, VERSION, ftl.report(progress, "Loading")) as archive:
        saved = StateReader(archive, os.fsdecode(path))
        task = restore_task(saved, given)
        per_action = saved.flag("per_action")
        model = kind(**task, per_action=per_action)
        if per_action != model.per_action:
            saved.refuse("per_action does not suit its spaces")
        _restore(model, saved)
        saved.require_all_read()
    return model


def state(model: LosseWorldModel) -> State:
    """All that a model knows, by name."""
    warm_up = model._warm_up
    started = [k for k, one in enumerate(model._regressors.models) if one is not None]
    whole: State = {
        "losse": metadata.version("losse"),
        "per_action": model.per_action,
        "n_transitions": model.n_transitions,
        "scaled": model.scaled,
        "started": started,
        "inputs.shift": model._inputs.shift,
        "inputs.factor": model._inputs.factor,
        **task_state(model),
        **nested("template", ftl.settings(model._regressors.template)),
    }
    if warm_up is not None:
        whole |= nested("warm_up", vars(warm_up) | {"rows": len(warm_up)})
    for k in started:
        one = model._regressors.models[k]
        assert one is not None
        whole |= nested(f"regressor{k}", ftl.state(one))
    return whole


def _restore(model: LosseWorldModel, saved: StateReader) -> None:
    """Take over what `state` has returned, but for what a model is made with."""
    pattern = FTLRegressor()
    ftl.restore_settings(pattern, saved.part("template"))
    scaled = saved.flag("scaled")
    size = 1 if scaled else saved.part("warm_up").count("size")
    model._begin(pattern, size)
    inputs = model._inputs
    saved.array("inputs.shift", out=inputs.shift)
    saved.array("inputs.factor", out=inputs.factor)
    if not (inputs.factor > 0).all():
        saved.refuse("inputs.factor is not above 0")
    if not scaled and model._warm_up is None:
        saved.refuse("scaled=False does not suit its bounded spaces")
    model._warm_up = None if scaled else _warm_up(model, saved.part("warm_up"), size)
    models = model._regressors.models
    for k in saved.counts("started", at_most=len(models)):
        if k >= len(models) or models[k] is not None:
            saved.refuse(f"started names regressor {k}, which does not exist or is there already")
        one = FTLRegressor()
        ftl.restore(one, saved.part(f"regressor{k}"))
        shape = (one.n_features_in_, one.n_outputs_, one._single)
        if shape != (inputs.width, model._n_targets, False):
            saved.refuse(f"regressor {k} does not suit its spaces")
        models[k] = one
    model.n_transitions = saved.count("n_transitions")


def _warm_up(model: LosseWorldModel, saved: StateReader, size: int) -> WarmUp:
    rows = saved.count("rows", at_most=_MOST)
    n_actions = model._actions.width
    if model._actions.discrete:
        actions = saved.array("actions", (rows,), np.int64)
        if not ((actions >= 0) & (actions < n_actions)).all():
            saved.refuse("actions lie outside the space")
    else:
        actions = saved.array("actions", (rows, n_actions))
    return WarmUp(
        size,
        saved.array("states", (rows, model._observations.width)),
        actions,
        saved.array("targets", (rows, model._n_targets)),
        saved.count("scaled_at", at_most=rows),
    )
