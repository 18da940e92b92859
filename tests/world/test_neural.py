"""The paper's neural world models: what each memory learns, keeps, refuses and saves."""

import pickle
import warnings

import numpy as np
import pytest
from gymnasium import spaces

from losse.storage.archive import ArchiveError
from losse.world import NeuralWorldModel
from losse.world.neural.fit import fit
from losse.world.neural.memories import MEMORIES
from losse.world.neural.network import predict
from losse.world.neural.online import train_tasks, train_window

OBSERVATIONS = spaces.Box(np.array([0, -np.inf]), np.array([1, np.inf]), dtype=np.float64)
ACTIONS = spaces.Discrete(2)
LOOPS = {"full-replay": fit, "coreset": fit, "online": train_window, "si": train_tasks}


def make(memory, **options):
    """A small model; all tests use the same shapes, so that little is compiled."""
    options = {"hidden": (16, 16), "coreset_size": 100, "seed": 1} | options
    return NeuralWorldModel(OBSERVATIONS, ACTIONS, memory=memory, **options)


def transitions(n, seed=0, low=0.0, high=1.0):
    """A smooth motion; an episode ends where the first number exceeds 0.9."""
    rng = np.random.default_rng(seed)
    x, v = rng.uniform(low, high, n), rng.normal(10, 2, n)
    actions = rng.integers(0, 2, n)
    moved = np.clip(x + 0.1 * np.sin(6 * x) * (2 * actions - 1), 0, 1)
    obs, following = np.stack([x, v], axis=1), np.stack([moved, v + x - 0.5], axis=1)
    return obs, actions, -1.0 - x, following, moved > 0.9


def feed(model, data, size=50):
    for first in range(0, len(data[0]), size):
        model.update(*(part[first : first + size] for part in data))


def error(model, data):
    """Mean squared error of the next observation, in units of the change."""
    obs, actions, _, following, _ = data
    imagined, _, _ = model.step(obs, actions)
    return (((imagined - following) ** 2).mean(axis=0) / (following - obs).var(axis=0)).mean()


@pytest.fixture(scope="module", params=MEMORIES)
def learned(request):
    """A model of each memory after 600 transitions; tests work on copies."""
    model = make(request.param)
    feed(model, transitions(600))
    return pickle.dumps(model)


def test_every_memory_learns_a_stream_of_one_distribution(learned):
    model, test = pickle.loads(learned), transitions(500, seed=9)
    assert error(model, test) < 0.2
    _, rewards, terminated = model.step(test[0], test[1])
    assert np.abs(rewards - test[2]).mean() < 0.1
    assert (terminated == test[4]).mean() > 0.9


def test_nothing_is_compiled_again_as_data_grow_or_batches_change(learned):
    model = pickle.loads(learned)
    feed(model, transitions(10), size=10)
    model.step(*transitions(5000)[:2])
    loop = LOOPS[model.memory]
    compiled = loop._cache_size()
    for n in (1, 2, 25, 49, 250, 1000):
        model.update(*transitions(n, seed=n))
    assert loop._cache_size() == compiled

    for n in range(1, 130):
        model.step(*(part[:n] for part in transitions(130)[:2]))
    powers = predict._cache_size()
    for n in (1, 3, 64, 100, 4096, 4097, 20_000):
        model.step(*transitions(n)[:2])
    assert predict._cache_size() <= powers + 1  # a full block


def test_a_prediction_does_not_depend_on_its_batch(learned):
    model = pickle.loads(learned)
    obs, actions = transitions(5000)[:2]
    together = model.step(obs, actions)[0]
    for part in (slice(0, 1), slice(100, 107), slice(4090, 5000)):
        np.testing.assert_allclose(model.step(obs[part], actions[part])[0], together[part], 1e-5)


def test_a_loaded_model_goes_on_bit_for_bit(learned, tmp_path):
    model = pickle.loads(learned)
    path = tmp_path / "model.losse"
    model.save(path, progress=False)
    loaded = NeuralWorldModel.load(path, observation_space=OBSERVATIONS, progress=False)
    assert loaded.n_transitions == model.n_transitions
    assert loaded.memory == model.memory
    for one in (model, loaded):
        feed(one, transitions(550, seed=4), size=110)  # past the warm-up of the units
    np.testing.assert_array_equal(
        model.step(*transitions(50)[:2])[0], loaded.step(*transitions(50)[:2])[0]
    )


def test_a_refused_batch_changes_nothing(learned):
    model = pickle.loads(learned)
    obs, actions, rewards, following, ended = transitions(5)
    broken = following.copy()
    broken[3, 1] = np.nan
    huge = np.full(5, 1e40)
    for name, batch in {
        "next_obs contains nan": (obs, actions, rewards, broken, ended),
        "networks take up to": (obs, actions, huge, following, ended),
        "actions contains 2": (obs, actions + 1, rewards, following, ended),
        "obs has shape": (obs[:, :1], actions, rewards, following[:, :1], ended),
    }.items():
        with pytest.raises(ValueError, match=name):
            model.update(*batch)
    same = pickle.loads(learned)
    for one in (model, same):
        one.update(*transitions(30, seed=2))
    np.testing.assert_array_equal(model.step(obs, actions)[0], same.step(obs, actions)[0])


def test_divergence_is_said_and_the_last_good_weights_stay(learned):
    model = pickle.loads(learned)
    feed(model, transitions(450, seed=7))
    obs, actions = transitions(20, seed=3)[:2]
    before = model.step(obs, actions)
    outlier = transitions(60, seed=5)
    for part in (outlier[0], outlier[3]):
        part[:, 1] *= 1e25
    with pytest.warns(RuntimeWarning, match="look for outliers"):
        model.update(*outlier)
    for one, other in zip(model.step(obs, actions), before, strict=True):
        np.testing.assert_array_equal(one, other)
    assert model.n_transitions == 1110
    if model.memory == "full-replay":
        assert model._learner.memory.count == 1110
    if model.memory == "online":  # which gets over it as soon as it has forgotten it
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model.update(*transitions(256, seed=6))
        assert (model.step(obs, actions)[0] != before[0]).any()


@pytest.mark.parametrize("memory", MEMORIES)
def test_a_loss_that_explodes_is_divergence_too(memory):
    model = make(memory, learning_rate=1e4)
    before = model._learner.parameters
    with pytest.warns(RuntimeWarning, match="smaller learning_rate than 10000"):
        model.update(*transitions(100))
    for name, layer in model._learner.parameters.items():
        np.testing.assert_array_equal(layer["kernel"], before[name]["kernel"])


def test_the_window_forgets_and_full_replay_does_not():
    early, late = transitions(600, low=0, high=0.5), transitions(1000, low=0.5, high=1)
    errors = {}
    for memory in ("online", "full-replay"):
        model = make(memory)
        feed(model, early)
        feed(model, late)
        assert error(model, late) < 0.1
        errors[memory] = error(model, transitions(300, seed=8, high=0.5))
    assert errors["full-replay"] < 0.1
    assert errors["online"] > 5 * errors["full-replay"]


def test_full_replay_does_not_learn_noise_by_heart():
    rng = np.random.default_rng(0)
    obs, actions, _, following, ended = transitions(60)
    model = make("full-replay")
    model.update(obs, actions, rng.normal(size=60), following, ended)
    _, rewards, _ = model.step(*transitions(300, seed=1)[:2])
    assert rewards.std() < 0.7


def test_synaptic_intelligence_without_penalty_is_online_training():
    data = transitions(12)
    online, synaptic = make("online"), make("si", c=0)
    feed(online, data, size=1)
    feed(synaptic, data, size=1)
    obs, actions = transitions(50, seed=1)[:2]
    np.testing.assert_allclose(
        online.step(obs, actions)[0], synaptic.step(obs, actions)[0], rtol=1e-3, atol=1e-3
    )


def test_a_strong_penalty_holds_the_weights():
    moved = []
    for c in (0.0, 1e6):
        model = make("si", c=c)
        feed(model, transitions(100))
        before = model._learner.parameters["last"]["kernel"]
        feed(model, transitions(100, seed=1))
        moved.append(np.abs(model._learner.parameters["last"]["kernel"] - before).max())
    assert moved[1] < 0.5 * moved[0]


def test_the_seed_decides():
    models = [make("coreset", seed=seed) for seed in (1, 1, 2)]
    for model in models:
        feed(model, transitions(150))
    obs, actions = transitions(20, seed=1)[:2]
    first, again, other = (model.step(obs, actions)[0] for model in models)
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_before_anything_is_learned_nothing_happens():
    obs, actions = transitions(5)[:2]
    imagined, rewards, terminated = make("online").step(obs, actions)
    np.testing.assert_array_equal(imagined, obs)
    assert not rewards.any()
    assert not terminated.any()


def test_uncertainty_is_not_offered():
    obs, actions = transitions(5)[:2]
    with pytest.raises(NotImplementedError, match="LosseWorldModel"):
        make("online").step(obs, actions, return_std=True)


def test_networks_of_the_paper():
    discrete = NeuralWorldModel(OBSERVATIONS, ACTIONS, memory="coreset")
    continuous = NeuralWorldModel(OBSERVATIONS, spaces.Box(-1, 1, (3,)), memory="coreset")
    assert (discrete.hidden, discrete.coreset_size) == ((32, 32, 32), 100)
    assert (continuous.hidden, continuous.coreset_size) == ((400,) * 4, 5000)


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({"memory": "elephant"}, ValueError),
        ({"memory": None}, ValueError),
        ({"hidden": ()}, ValueError),
        ({"hidden": (32, 0)}, ValueError),
        ({"learning_rate": 0}, ValueError),
        ({"learning_rate": np.nan}, ValueError),
        ({"coreset_size": 0}, ValueError),
        ({"batch_size": 2.5}, TypeError),
        ({"xi": -1}, ValueError),
        ({"c": -1}, ValueError),
        ({"seed": 2**40}, ValueError),
        ({"batch_size": 2**40}, ValueError),
        ({"coreset_size": 2**40}, ValueError),
        ({"hidden": (2**40,)}, ValueError),
        ({"termination": "sometimes"}, ValueError),
    ],
)
def test_wrong_parameters_are_refused_by_name(options, kind):
    with pytest.raises(kind, match=next(iter(options))):
        NeuralWorldModel(OBSERVATIONS, ACTIONS, **options)


def test_a_file_for_other_spaces_or_damaged_is_refused(tmp_path):
    model = make("online", termination=lambda obs, actions, next_obs: next_obs[:, 0] > 0.9)
    path = tmp_path / "model.losse"
    model.save(path, progress=False)
    with pytest.raises(ValueError, match="pass termination"):
        NeuralWorldModel.load(path, progress=False)
    with pytest.raises(ValueError, match="action_space"):
        NeuralWorldModel.load(
            path, action_space=spaces.Discrete(3), termination=model.termination, progress=False
        )
    data = bytearray(path.read_bytes())
    data[-200] ^= 1
    path.write_bytes(data)
    with pytest.raises(ArchiveError):
        NeuralWorldModel.load(path, termination=model.termination, progress=False)
