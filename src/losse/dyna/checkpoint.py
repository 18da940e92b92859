"""Checkpoints of a run: agent, replay buffer and world model in one folder, never half of it.

A checkpoint is a folder of its own, ``checkpoint-<steps>-<random>``. The file ``latest`` names the
one that counts and is replaced when all of the new one is on the disk. Older ones are then removed.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import gymnasium
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, VecNormalize

from losse import world
from losse.dyna.buffer import DynaReplayBuffer
from losse.dyna.divergence import require_healthy
from losse.dyna.models import environment_of
from losse.storage.atomic import replacing
from losse.storage.jsonfile import write_json
from losse.world import PerfectModel, WorldModel

Agent = TypeVar("Agent", bound=OffPolicyAlgorithm)

LATEST = "latest"
_PREFIX = "checkpoint-"
_NOTES = "notes.json"
_MODELS = {
    "LosseWorldModel": "world_model.losse",
    "JaxWorldModel": "world_model.jax",
    "NeuralWorldModel": "world_model.neural",
    "PerfectModel": "world_model.perfect",
}


def save_run(
    agent: Any, folder: str | os.PathLike[str], notes: Mapping[str, Any] | None = None
) -> Path:
    """Save all that is needed to go on: agent, replay buffer, world model, normalisation.

    An agent that has diverged is not saved: `FloatingPointError`. The checkpoint before stays.

    Parameters
    ----------
    agent
        One made by `make_dyna`.
    folder
        Is made if it does not exist. What `save_run` has put there before is replaced.
    notes
        Anything that JSON can hold, for `read_notes`.
    """
    buffer = agent.replay_buffer
    if not isinstance(buffer, DynaReplayBuffer):
        raise TypeError(f"{type(agent).__name__} has no DynaReplayBuffer: use agent.save(path).")
    model = buffer.world_model
    if model is not None and type(model).__name__ not in _MODELS:
        raise TypeError(f"a {type(model).__name__} cannot be saved: only {', '.join(_MODELS)} can.")
    require_healthy(agent)
    root = Path(folder)
    root.mkdir(parents=True, exist_ok=True)
    new = root / f"{_PREFIX}{agent.num_timesteps}-{secrets.token_hex(4)}"
    new.mkdir()
    try:
        agent.save(new / "agent.zip")
        agent.save_replay_buffer(new / "replay_buffer.pkl")
        normaliser = agent.get_vec_normalize_env()
        if normaliser is not None:
            normaliser.save(str(new / "normalisation.pkl"))
        if isinstance(model, WorldModel):
            _save_model(model, new / _MODELS[type(model).__name__])
        write_json(new / _NOTES, notes or {})
        _sync(new)
        with replacing(root / LATEST) as write:
            write(new.name.encode())
    except BaseException:
        shutil.rmtree(new, ignore_errors=True)
        raise
    for old in root.glob(f"{_PREFIX}*"):
        if old != new:
            shutil.rmtree(old, ignore_errors=True)
    return root


def rescue_run(
    agent: Any, folder: str | os.PathLike[str], notes: Mapping[str, Any] | None = None
) -> Path:
    """Save a run elsewhere, because ``folder`` cannot be written.

    The temporary folder of the system, the home of the user and the present folder are tried in
    turn. The run is in a folder of the same name as ``folder``, inside a new one. Raises `OSError`
    if none of them can be written.
    """
    refused = []
    for find in (tempfile.gettempdir, Path.home, Path.cwd):
        parent = None
        try:
            parent = Path(tempfile.mkdtemp(prefix="losse-", dir=find()))
            return save_run(agent, parent / Path(folder).name, notes)
        except OSError as error:
            refused.append(str(error))
            if parent is not None:
                shutil.rmtree(parent, ignore_errors=True)
    raise OSError(f"the run can be saved nowhere, nor in {os.fspath(folder)}: {'; '.join(refused)}")


def load_run(
    agent_class: type[Agent],
    folder: str | os.PathLike[str],
    env: Any,
    *,
    world_model: WorldModel | None = None,
    **functions: Any,
) -> Agent:
    """Read what `save_run` has written; ``learn(..., reset_num_timesteps=False)`` then goes on.

    Parameters
    ----------
    agent_class
        The class that was saved.
    folder
        As given to `save_run`. The file of an agent is read with pickle, as in Stable-Baselines3:
        load only what you trust.
    env
        An environment like that of the run. It starts with a new episode. If the run had
        `VecNormalize`, its statistics are put around ``env``.
    world_model
        To be used instead of the saved one.
    functions
        ``termination`` and ``reward``, if the model was made with functions or a `PartlyKnown`.
    """
    saved = latest_checkpoint(folder)
    agent = agent_class.load(saved / "agent.zip", env=_environment(env, saved))
    try:
        agent.load_replay_buffer(saved / "replay_buffer.pkl")
    except (ModuleNotFoundError, AttributeError, KeyError) as error:
        raise ValueError(
            f"{saved} was written by losse 0.1.0 or by another version that keeps its replay "
            f"buffer differently ({error}): read it with the version that wrote it."
        ) from error
    buffer = agent.replay_buffer
    assert isinstance(buffer, DynaReplayBuffer)
    buffer.bind(agent, world_model or _load_model(agent, saved, functions))
    if agent.seed is not None:
        # Loading has set the seed of the start: the same chances would come again.
        agent.set_random_seed(agent.seed + agent.num_timesteps)
    return agent


def read_notes(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """Notes that `save_run` was given."""
    return json.loads((latest_checkpoint(folder) / _NOTES).read_text(encoding="utf-8"))


def latest_checkpoint(folder: str | os.PathLike[str]) -> Path:
    """The folder of the checkpoint that counts; raises `FileNotFoundError` if there is none."""
    try:
        name = (Path(folder) / LATEST).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise FileNotFoundError(f"there is no saved run in {os.fspath(folder)!r}.") from None
    saved = Path(folder) / name
    if not name.startswith(_PREFIX) or not (saved / "agent.zip").is_file():
        raise ValueError(f"{Path(folder) / LATEST} does not name a saved run: {name!r}.")
    return saved


def _environment(env: Any, saved: Path) -> Any:
    """Environment for a saved run, normalised as it was."""
    made = gymnasium.make(env) if isinstance(env, str) else env
    normalisation = saved / "normalisation.pkl"
    if not normalisation.exists():
        return made
    several = made if isinstance(made, VecEnv) else DummyVecEnv([lambda: Monitor(made)])
    inner = several.venv if isinstance(several, VecNormalize) else several
    return VecNormalize.load(str(normalisation), inner)


def _save_model(model: Any, path: Path) -> None:
    if isinstance(model, PerfectModel):
        model.save(path)
    else:
        model.save(path, progress=False)


def _load_model(agent: Any, saved: Path, functions: dict[str, Any]) -> WorldModel | None:
    for name, file in _MODELS.items():
        path = saved / file
        if path.exists() and name == PerfectModel.__name__:
            return PerfectModel.load(path, environment_of(agent))
        if path.exists():
            return getattr(world, name).load(path, progress=False, **functions)
    return None


def _sync(folder: Path) -> None:
    """Wait until all files are on the disk."""
    for path in [*folder.iterdir(), folder]:
        with suppress(OSError):
            handle = os.open(path, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)
