"""A world model that is saved and loaded goes on as if it had never stopped, bit for bit."""

import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

from losse.storage.archive import ArchiveError
from losse.world import LosseWorldModel, NeuralWorldModel, PartlyKnown
from tests.world.worlds import (
    BOUNDED,
    FOUR,
    MIXED,
    PUSH,
    assert_identical,
    model_of,
    put,
    rewritten,
    small,
    some,
    transitions,
)


@pytest.mark.parametrize(
    ("space", "actions", "per_action", "solver"),
    [
        (MIXED, FOUR, True, "sparse"),
        (MIXED, FOUR, False, "auto"),
        (MIXED, PUSH, True, "auto"),
        (BOUNDED, FOUR, True, "auto"),
        (BOUNDED, PUSH, True, "sparse"),
    ],
)
def test_it_goes_on_bit_for_bit(space, actions, per_action, solver, tmp_path):
    """Before, during and after the warm-up."""
    data = transitions(160, actions)
    options = {"per_action": per_action, "regressor": small(solver), "warm_up": 60, "seed": 2}
    model = model_of(space, actions, **options)
    twin = model_of(space, actions, **options)
    for start in range(0, 160, 32):
        twin.save(tmp_path / "model")
        twin = LosseWorldModel.load(tmp_path / "model")
        assert_identical(twin, model)
        for one in (model, twin):
            one.update(*some(data, slice(start, start + 32)))
    assert_identical(twin, model)
    for mine, same in zip(
        model.step(*data[:2], return_std=True), twin.step(*data[:2], return_std=True), strict=True
    ):
        np.testing.assert_array_equal(mine, same)


@pytest.mark.parametrize(
    ("space", "actions"),
    [
        (Box(0, 255, (2, 2), dtype=np.uint8), Discrete(2, start=3)),
        (Discrete(5, start=-1), Discrete(2)),
        (Box(np.float32([-1, -np.inf]), np.float32([np.inf, 2])), Box(-1, 1, (1, 2))),
        (Box(-(2**63), 2**63 - 1, (1,), dtype=np.int64), Box(-np.inf, np.inf, (1,))),
    ],
    ids=str,
)
def test_spaces_come_back(space, actions, tmp_path):
    model_of(space, actions).save(tmp_path / "model")
    loaded = LosseWorldModel.load(tmp_path / "model", observation_space=space, action_space=actions)
    assert loaded.observation_space == space
    assert loaded.action_space == actions
    assert loaded.observation_space.dtype == space.dtype
    obs = np.stack([space.sample() for _ in range(4)])
    chosen = np.stack([actions.sample() for _ in range(4)])
    if space.dtype == np.int64 and isinstance(space, Box):
        obs %= 100
    loaded.update(obs, chosen, np.zeros(4), obs, np.zeros(4))


def test_other_spaces_are_refused(tmp_path):
    model_of().save(tmp_path / "model")
    with pytest.raises(ValueError, match=r"action_space=Discrete\(5\) is not that of the saved"):
        LosseWorldModel.load(tmp_path / "model", action_space=Discrete(5))


def test_functions_are_given_again(tmp_path):
    path = tmp_path / "model"

    def ends(obs, actions, next_obs):
        return next_obs[:, 0] > 0

    model_of(termination=ends, reward=lambda obs, *_: obs[:, 1]).save(path)
    with pytest.raises(ValueError, match="termination=None: the model was saved with a function"):
        LosseWorldModel.load(path)
    with pytest.raises(ValueError, match="reward=None: the model was saved with a function"):
        LosseWorldModel.load(path, termination=ends)
    loaded = LosseWorldModel.load(path, termination=ends, reward=lambda obs, *_: obs[:, 1])
    assert loaded.step([[0.5, 0.25]], [0])[1:] == (np.array([0.25]), np.array([True]))
    model_of().save(path)
    with pytest.raises(ValueError, match=r"termination=.* was given, but the model has"):
        LosseWorldModel.load(path, termination=ends)


@pytest.mark.parametrize("kind", [LosseWorldModel, NeuralWorldModel])
def test_a_partly_known_reward_is_given_again(tmp_path, kind):
    path, known = tmp_path / "model", PartlyKnown(lambda obs, *_: obs[:, 1])
    model = kind(BOUNDED, FOUR, reward=known)
    model.update(*transitions(40))
    model.save(path)
    for other in (None, known.part):
        with pytest.raises(ValueError, match=r"reward=.*pass reward=PartlyKnown"):
            kind.load(path, reward=other)
    again = kind.load(path, reward=known)
    obs, actions, *_ = transitions(5, seed=1)
    for mine, theirs in zip(model.step(obs, actions), again.step(obs, actions), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    kind(BOUNDED, FOUR).save(path)
    with pytest.raises(ValueError, match=r"reward=PartlyKnown.* was given, but the model has"):
        kind.load(path, reward=known)


@pytest.mark.parametrize(
    "change",
    [
        put("termination", "sometimes"),
        put("reward", "never"),
        put("per_action", "yes"),
        put("n_transitions", -1),
        put("started", [0, 0]),
        put("started", [4]),
        put("started", [0, 1]),
        put("observation_space.type", "Dict"),
        put("observation_space.dtype", "object"),
        put("observation_space.shape", [3]),
        put("observation_space.low", np.full(2, 5.0)),
        put("action_space.n", 0),
        put("action_space.start", 0.5),
        put("inputs.factor", np.zeros(2)),
        put("inputs.shift", np.full(2, np.nan)),
        put("inputs.shift", np.zeros(3)),
        put("warm_up.X", np.full((20, 3), 4.0)),
        put("warm_up.X", np.full((20, 3), 0.5)),
        put("warm_up.X", np.full((20, 2), 0.0)),
        put("warm_up.Y", np.zeros((20, 9))),
        put("warm_up.weights", np.zeros(20)),
        put("warm_up.scaled_at", 21),
        put("scaled", True),
        put("template.parameters", {}),
        put("regressor0.n_outputs", 3),
        lambda header, arrays: header.pop("n_transitions"),
        lambda header, arrays: arrays.pop("warm_up.X"),
        lambda header, arrays: arrays.update(more=np.zeros(1)),
    ],
)
def test_nonsense_is_refused(change, tmp_path):
    path = tmp_path / "model"
    model = model_of(MIXED)
    model.update(*transitions(20))
    model.save(path)
    rewritten(path, change)
    with pytest.raises(ArchiveError, match="is not a valid model"):
        LosseWorldModel.load(path)


def test_a_failed_save_keeps_the_old_file(tmp_path):
    path = tmp_path / "model"
    model = model_of()
    model.save(path)
    before = path.read_bytes()
    model.update(*transitions(20))
    with pytest.raises(RuntimeError, match="stop"):
        model.save(path, progress=lambda *_: (_ for _ in ()).throw(RuntimeError("stop")))
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["model"]


COLUMNS = ("obs", "actions", "rewards", "next_obs", "terminated")


@pytest.mark.parametrize(
    ("name", "stream", "now", "then"),
    [
        ("losse", "two", 1e-12, 1e-9),
        ("losse_push", "push", 1e-12, 1e-9),
        ("losse_warming", "two", 1e-12, 0.01),  # made anew, with a ridge that is cross-validated
        ("neural_full_replay", "two", 1e-6, 1e-3),  # single precision
        ("neural_si", "two", 1e-6, 1e-3),
    ],
)
def test_models_of_version_0_1_are_read(version_0_1, name, stream, now, then):
    """`world.npz` has a stream of each kind of actions, and what 0.1 predicted on its last rows."""
    kind = LosseWorldModel if name.startswith("losse") else NeuralWorldModel
    model = kind.load(version_0_1 / f"{name}.losse", progress=False)
    assert model.n_transitions == 60
    with np.load(version_0_1 / "world.npz") as expected:
        rest = [expected[f"{stream}.{column}"][60:] for column in COLUMNS]
        saved, later = (expected[f"{name}.{when}"] for when in ("saved", "later"))
    np.testing.assert_allclose(np.column_stack(model.step(*rest[:2])), saved, atol=now)
    model.update(*rest)
    np.testing.assert_allclose(np.column_stack(model.step(*rest[:2])), later, atol=then)
