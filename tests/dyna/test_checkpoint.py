"""A run can be saved, killed, resumed and stopped by a fault without losing what was learned."""

import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("stable_baselines3")

from stable_baselines3 import DQN, SAC
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

from losse.dyna import DynaCallback, DynaReplayBuffer, callback, load_run, save_run
from losse.dyna.checkpoint import latest_checkpoint
from losse.world import LosseWorldModel
from tests.dyna.agents import Line, small

PLACES = np.linspace(0, 9, 10, dtype=np.float32)[:, None]


def same_predictions(one, other):
    mine, theirs = (agent.replay_buffer.world_model for agent in (one, other))
    actions = np.zeros(10, dtype=int)
    return all(
        np.array_equal(a, b)
        for a, b in zip(mine.step(PLACES, actions), theirs.step(PLACES, actions), strict=True)
    )


@pytest.mark.parametrize("method", ["losse", "model-free-matched"])
def test_comes_back_as_it_was(method, tmp_path):
    agent = small(world_model=method).learn(64)
    save_run(agent, tmp_path)
    again = load_run(DQN, tmp_path, Line())
    assert again.num_timesteps == 64
    assert np.array_equal(again.predict(PLACES)[0], agent.predict(PLACES)[0])
    assert again.replay_buffer.size() == 64
    if method == "losse":
        assert same_predictions(agent, again)
    again.learn(36, reset_num_timesteps=False)
    again.replay_buffer.flush()
    assert again.num_timesteps == 100
    if method == "losse":
        assert again.replay_buffer.world_model.n_transitions == 100


def test_normalisation_comes_back(tmp_path):
    env = VecNormalize(DummyVecEnv([Line]))
    save_run(small(env=env).learn(40), tmp_path)
    again = load_run(DQN, tmp_path, Line())
    assert again.get_vec_normalize_env().obs_rms.mean == pytest.approx(env.obs_rms.mean)


def test_only_the_latest_checkpoint_stays(tmp_path):
    small().learn(100, callback=DynaCallback(checkpoint=tmp_path, checkpoint_every=20))
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        latest_checkpoint(tmp_path).name,
        "latest",
    ]
    assert load_run(DQN, tmp_path, Line()).num_timesteps == 100


def test_checkpoints_come_early_and_by_the_clock_too(tmp_path, monkeypatch):
    def saved_steps(**options):
        steps = []
        keep = DynaCallback(checkpoint=tmp_path, on_save=lambda _, n: steps.append(n), **options)
        small().learn(40, callback=keep)
        return steps

    monkeypatch.setattr(callback, "FIRST_SECONDS", 1e-9)
    assert saved_steps() == [4, 40]  # the first rollout, and the end
    monkeypatch.setattr(callback, "SAVING_PAUSE", 0.0)
    assert saved_steps(checkpoint_seconds=1e-9) == [*range(4, 40, 4), 40]
    monkeypatch.setattr(callback, "SAVING_PAUSE", 1e9)  # saving takes too long
    assert saved_steps(checkpoint_seconds=1e-9) == [4, 40]
    assert saved_steps(checkpoint_every=20) == [4, 24, 40]


def test_a_failed_save_leaves_the_one_before(tmp_path, monkeypatch):
    agent = small().learn(40)
    save_run(agent, tmp_path)
    agent.learn(20, reset_num_timesteps=False)

    def full(*args, **kwargs):
        raise OSError("disk full")

    monkeypatch.setattr(LosseWorldModel, "save", full)
    with pytest.raises(OSError, match="disk full"):
        save_run(agent, tmp_path)
    assert load_run(DQN, tmp_path, Line()).num_timesteps == 40
    assert len(list(tmp_path.iterdir())) == 2


def test_a_run_that_cannot_be_saved_is_saved_elsewhere_until_it_can_be(tmp_path, monkeypatch):
    folder, spare, saved = tmp_path / "run", tmp_path / "spare", []
    spare.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(spare))
    folder.write_text("in the way")

    def note(place, steps):
        saved.append(place)
        if steps == 40:
            folder.unlink()

    keep = DynaCallback(checkpoint=folder, checkpoint_every=20, on_save=note)
    with pytest.warns(UserWarning, match="cannot be written") as warned:
        small().learn(60, callback=keep)
    assert len(warned) == 1
    assert saved[0] == saved[1]
    assert saved[0].parent.parent == spare
    assert saved[2] == folder
    assert load_run(DQN, saved[0], Line()).num_timesteps == 40
    assert load_run(DQN, folder, Line()).num_timesteps == 60


def test_a_run_that_can_be_saved_nowhere_goes_on_and_says_so_at_its_end(tmp_path, monkeypatch):
    blocked = tmp_path / "blocked"
    blocked.write_text("in the way")
    agent = small().learn(20)
    agent.set_logger(Logger(None, []))  # the usual one has a temporary folder
    monkeypatch.setattr(tempfile, "tempdir", str(blocked))
    monkeypatch.setattr(Path, "home", lambda: blocked)
    monkeypatch.setattr(Path, "cwd", lambda: blocked)
    keep = DynaCallback(checkpoint=blocked, checkpoint_every=20)
    with (
        pytest.warns(UserWarning, match="can be saved nowhere"),
        pytest.raises(OSError, match="can be saved nowhere"),
    ):
        agent.learn(40, callback=keep, reset_num_timesteps=False)
    assert agent.num_timesteps == 60


def test_a_folder_without_a_run_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="no saved run"):
        load_run(DQN, tmp_path, Line())
    (tmp_path / "latest").write_text("elsewhere")
    with pytest.raises(ValueError, match="does not name"):
        load_run(DQN, tmp_path, Line())


def test_a_run_of_an_older_version_is_refused_in_words(tmp_path):
    save_run(small().learn(20), tmp_path)
    # A pickle that asks for a class of 0.1.0.
    old = b"closse.dyna.planning\nPlanning\n."
    (latest_checkpoint(tmp_path) / "replay_buffer.pkl").write_bytes(old)
    with pytest.raises(ValueError, match=r"written by losse 0\.1\.0"):
        load_run(DQN, tmp_path, Line())


def test_a_diverged_agent_stops_and_the_checkpoint_is_from_before(tmp_path):
    class Poison(DynaCallback):
        def _on_step(self):
            if self.num_timesteps == 61:
                next(self.model.policy.parameters()).data[:] = float("nan")
            return True

    with pytest.raises(FloatingPointError, match="the agent has diverged"):
        small().learn(100, callback=Poison(checkpoint=tmp_path, checkpoint_every=20))
    good = load_run(DQN, tmp_path, Line())
    assert good.num_timesteps == 60
    assert all(p.isfinite().all() for p in good.policy.parameters())


@pytest.mark.parametrize("value", [np.nan, 1e9])
def test_a_diverged_model_stops(value):
    class Wild(LosseWorldModel):
        def _predict(self, states, actions):
            targets = super()._predict(states, actions)
            targets[0, 1] = value
            return targets

    env = Line()
    with pytest.raises(FloatingPointError, match="the world model has diverged"):
        small(world_model=Wild(env.observation_space, env.action_space)).learn(100)


def test_own_agents_are_bound_by_the_callback(tmp_path):
    agent = SAC(
        "MlpPolicy",
        Line(True),
        policy_kwargs={"net_arch": [8]},
        batch_size=8,
        learning_starts=10,
        replay_buffer_class=DynaReplayBuffer,
        replay_buffer_kwargs={"planning_steps": 1},
    )
    agent.learn(30, callback=DynaCallback("losse", model_options={"termination": "never"}))
    assert agent.replay_buffer.world_model.termination == "never"
    assert agent.replay_buffer.world_model.n_transitions == 30
    with pytest.raises(ValueError, match="has one already"):
        agent.learn(10, callback=DynaCallback("losse"))
    plain = DQN("MlpPolicy", Line())
    with pytest.raises(TypeError, match="DynaReplayBuffer"):
        plain.learn(10, callback=DynaCallback("losse"))


def test_the_log_has_model_error_data_mix_and_time(tmp_path):
    events = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    agent = small(tensorboard_log=str(tmp_path))
    agent.learn(100, log_interval=1, tb_log_name="run")
    log = events.EventAccumulator(str(tmp_path / "run_1")).Reload()
    logged = log.Tags()["scalars"]
    for name in (
        "model/state_error",
        "model/change_error",
        "model/reward_error",
        "model/termination_error",
        "dyna/imagined_share",
        "dyna/update_seconds",
        "dyna/imagination_seconds",
    ):
        assert name in logged
    assert 0 < log.Scalars("dyna/imagined_share")[-1].value < 1


KILLED = """
from losse.dyna import DynaCallback
from tests.dyna.agents import small
small().learn(10**9, callback=DynaCallback(checkpoint={folder!r}, checkpoint_every=8))
"""


def test_a_killed_run_goes_on(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED.format(folder=str(tmp_path))],
        cwd=Path(__file__).parents[2],
    )
    try:
        until = time.monotonic() + 240
        while not (tmp_path / "latest").exists():
            assert process.poll() is None
            assert time.monotonic() < until
            time.sleep(0.05)
        time.sleep(0.5)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    agent = load_run(DQN, tmp_path, Line())
    before = agent.num_timesteps
    assert before >= 8
    agent.learn(40, reset_num_timesteps=False, callback=DynaCallback(checkpoint=tmp_path))
    assert load_run(DQN, tmp_path, Line()).num_timesteps == before + 40
    assert len(list(tmp_path.iterdir())) == 2  # what the killed run had begun is gone
