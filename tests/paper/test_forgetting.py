"""Figure 1: the stream narrows, the test knows the truth, and the records hold the pictures."""

from itertools import pairwise

import numpy as np
import pytest

pytest.importorskip("tyro")
pytest.importorskip("gymnasium")

from losse.cli import main
from losse.envs import Gridworld
from losse.envs.gridworld_dynamics import move
from losse.paper.forgetting import experiment as forgetting
from losse.paper.forgetting.places import CELLS, RECENT, STRICT, TOLERANCE, Places, follow
from losse.paper.forgetting.q_learner import QTable, explore
from losse.runs.experiment import Run
from losse.runs.store import read_records


class Perfect:
    """A model that is the truth, but for an error in x."""

    def __init__(self, error=0.0):
        self.error = error
        self.learned = []

    def update(self, obs, actions, rewards, next_obs, terminated):
        self.learned.append(obs)

    def step(self, obs, actions):
        return (
            np.add(move(obs, actions), [self.error, 0.0]),
            np.zeros(len(obs)),
            np.zeros(len(obs), bool),
        )


@pytest.fixture(scope="module")
def stream():
    return explore(Gridworld(reward="sparse"), 700, cells=CELLS, epsilon=(0.5, 0.0), seed=0)


def test_the_stream_is_that_of_the_environment(stream):
    assert len(stream.obs) == len(stream.terminated) == 700
    goes_on = ~stream.terminated[:-1]
    assert (stream.obs[1:][goes_on] == stream.next_obs[:-1][goes_on]).all()
    off = np.abs(stream.next_obs - move(stream.obs, stream.actions))
    assert np.median(off.max(axis=1)) < 0.015  # but for the noise


def test_a_seed_fixes_the_stream():
    one, same, other = (
        explore(Gridworld(), 200, cells=CELLS, epsilon=(0.5, 0.0), seed=seed) for seed in (1, 1, 2)
    )
    assert (one.next_obs == same.next_obs).all()
    assert (one.next_obs != other.next_obs).any()


def test_the_visits_narrow_to_a_short_way():
    # Without a barrier a few thousand steps are enough.
    env = Gridworld(reward="sparse", barrier=False)
    stream = explore(env, 5000, cells=CELLS, epsilon=(0.5, 0.0), seed=0)
    cells = Places().of(stream.obs, stream.actions) // 4
    arrivals = np.flatnonzero(stream.terminated)
    assert np.diff(arrivals)[-3:].max() < 80
    assert len(np.unique(cells[-RECENT:])) < 0.3 * len(np.unique(cells))


def test_q_learning_converges_to_the_value_of_the_way():
    table = QTable(cells=2, n_actions=1)
    for _ in range(60):  # 0 -> 1 -> 2 -> goal
        for step in [(0, 0, 0.0, 1, False), (1, 0, 0.0, 2, False), (2, 0, 1.0, 3, True)]:
            table.learn(step)
    assert table.values[:3, 0] == pytest.approx([0.99**2, 0.99, 1.0])


def test_equal_actions_are_tried_in_turn():
    table = QTable(cells=2, n_actions=4)
    rng = np.random.default_rng(0)
    tried = [table.act(0, 0.0, rng) for _ in range(12)]
    assert np.bincount(tried, minlength=4).tolist() == [3, 3, 3, 3]
    table.values[0, 2] = 1.0
    assert table.act(0, 0.0, rng) == 2


def test_errors_are_distances_from_the_truth():
    places = Places()
    assert places.errors(Perfect()).max() < 1e-6
    assert places.errors(Perfect(0.3)) == pytest.approx(np.full(len(places.actions), 0.3), abs=1e-6)


@pytest.mark.parametrize(
    ("error", "wrong", "strict"), [(0, 0, 0), (STRICT + 0.001, 0, 1), (TOLERANCE + 0.001, 1, 1)]
)
def test_an_error_counts_from_the_tolerance_on(stream, error, wrong, strict):
    *_, frame = follow(stream, Perfect(error), update_every=25, frame_every=700)
    assert frame.shares == {"seen": wrong, "recent": wrong, "all": wrong, "strict": strict}
    assert np.mean(frame.surprises) == pytest.approx(error, abs=0.02)  # of the noise


def test_to_predict_no_move_is_never_wrong_but_not_right_either(stream):
    class Still(Perfect):
        def step(self, obs, actions):
            return obs, np.zeros(len(obs)), np.zeros(len(obs), bool)

    *_, frame = follow(stream, Still(), update_every=25, frame_every=700)
    assert frame.shares["seen"] == frame.shares["all"] == 0
    assert frame.shares["strict"] > 0.5


def test_every_position_belongs_to_the_place_of_its_cell():
    places = Places()
    assert (places.of(places.positions, places.actions) == np.arange(4 * CELLS**2)).all()
    assert places.of(np.array([[1.0, 1.0]]), np.array([3])) == 4 * CELLS**2 - 1
    # All impossible cells: 36 of the barrier, one of the goal.
    assert (~places.possible).sum() == 4 * 37


def test_a_model_learns_every_transition_once_and_in_order(stream):
    model = Perfect(2 * TOLERANCE)
    frames = list(follow(stream, model, update_every=25, frame_every=200))
    assert [frame.step for frame in frames] == [200, 400, 600, 700]
    assert {len(batch) for batch in model.learned} == {25}
    assert (np.concatenate(model.learned) == stream.obs).all()
    assert frames[-1].shares == {"seen": 1, "recent": 1, "all": 1, "strict": 1}
    seen = [frame.seen for frame in frames]
    assert all((later >= earlier).all() for earlier, later in pairwise(seen))
    assert (frames[-1].seen >= frames[-1].recent).all()
    assert (frames[-1].possible >= frames[-1].seen).all()


def test_maps_count_the_actions_of_each_cell(stream):
    *_, frame = follow(stream, Perfect(2 * TOLERANCE), update_every=25, frame_every=700)
    maps = frame.maps
    assert {len(text) for text in maps.values()} == {CELLS**2}
    assert maps["wrong"] == maps["seen"]
    assert sum(map(int, maps["seen"])) == frame.seen.sum()
    assert sum(map(int, maps["recent"])) == frame.recent.sum()


def test_losse_stays_right_where_it_was_and_the_online_network_does_not():
    pytest.importorskip("jax")
    shares = {}
    for method, options in (("losse", {"regressor": "paper"}), ("online", {"learning_rate": 1e-3})):
        about = {"steps": 1500, "epsilon": (0.5, 0.0), **options}
        run = Run("forgetting", method, "x", 10_004, about)
        frames = follow(
            forgetting.stream_of(run), forgetting.model_of(run), update_every=25, frame_every=250
        )
        shares[method] = [frame.shares for frame in frames]
    assert shares["losse"][-1]["seen"] < 0.01
    # How much a network has lost changes from moment to moment.
    assert max(share["seen"] for share in shares["online"]) > 0.1
    assert max(share["recent"] for share in shares["online"][1:]) < 0.05


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("forgetting")
    main(["reproduce", "forgetting", "--steps", "450", "--seeds", "2", "--methods", "losse",
          "--workers", "0", "--out", str(folder)])  # fmt: skip
    return folder


def test_the_records_hold_shares_over_time_and_maps_of_one_seed(folder):
    records = read_records(folder)
    assert [record.seed for record in records] == [0, 1]
    for record in records:
        assert record.setting == "losse/Gridworld-v0"
        assert [step for step, _ in record.curve] == [150, 300, 450]
        assert record.curve[-1][1] == pytest.approx(record.score, abs=1e-4)
        assert record.details["update_ms"] > 0
        assert record.settings["update_every"] == 25
    assert [len(r.details.get("maps", ())) for r in records] == [3, 0]


def test_the_figures_need_nothing_but_the_records(folder, monkeypatch):
    names = ["table.md", "maps.svg", "maps.png", "shares.svg", "animation.gif"]
    first = {name: (folder / name).read_bytes() for name in names}
    assert first["animation.gif"].startswith(b"GIF")
    for name in names:
        (folder / name).unlink()
    monkeypatch.delattr(forgetting, "stream_of")
    main(["plot", "forgetting", "--out", str(folder)])
    assert {name: (folder / name).read_bytes() for name in names} == first


def test_the_animation_has_a_picture_for_every_map(folder):
    image = pytest.importorskip("PIL.Image")
    count = len(read_records(folder)[0].curve)
    with image.open(folder / "animation.gif") as animation:
        assert animation.n_frames >= count


def test_every_network_has_candidates_on_seeds_of_their_own():
    settings = forgetting.Settings(preset="paper")
    runs = forgetting.sweep(settings)
    assert {run.method for run in runs} == set(forgetting.MEMORIES)
    assert min(run.seed for run in runs) >= 10_000
    assert len({run.name for run in runs}) == len(runs)


def test_nonsense_is_refused():
    with pytest.raises(ValueError, match="steps must be at least 1, got 0"):
        forgetting.Settings(steps=0)
