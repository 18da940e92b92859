"""Names of methods, and what is imported for them."""

import subprocess
import sys

import pytest
from gymnasium.spaces import Box, Discrete

import losse.world
from losse.world import LosseWorldModel, make_world_model

SPACES = Box(-1, 1, (2,)), Discrete(3)


def test_losse():
    model = make_world_model("losse", *SPACES, seed=3, per_action=False, termination="never")
    assert isinstance(model, LosseWorldModel)
    assert (model.per_action, model.termination) == (False, "never")
    assert model.learners.settings.encoder.seed == 3


@pytest.mark.parametrize("memory", ["full-replay", "online", "si", "coreset"])
def test_neural_baselines(memory):
    pytest.importorskip("jax")
    model = make_world_model(memory, *SPACES, seed=3)
    assert isinstance(model, losse.world.NeuralWorldModel)
    assert model.memory == memory


def test_unknown_names_are_refused():
    with pytest.raises(ValueError, match="method='dreamer' is not known: use one of losse, full-"):
        make_world_model("dreamer", *SPACES)
    with pytest.raises(AttributeError, match="no attribute 'Dreamer'"):
        losse.world.Dreamer  # noqa: B018


def test_only_neural_models_import_jax():
    code = """
import sys
from losse.world import ImaginedEnv, LosseWorldModel, Rollout, WorldModel, evaluate
assert "jax" not in sys.modules
assert "matplotlib" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_missing_packages_are_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    for name in [name for name in sys.modules if name.startswith("losse.world.")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(ModuleNotFoundError, match=r"needs 'gymnasium'.*losse\[world\]"):
        losse.world.__getattr__("LosseWorldModel")
