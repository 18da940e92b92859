"""What the neural baselines keep, and the order in which they go through it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import chisquare

from losse.world.neural import memories
from losse.world.neural.fit import draw_order, place
from losse.world.neural.memories import Everything, Recent, Reservoir


def stream(n, width=1):
    return np.repeat(np.arange(n, dtype=np.float32)[:, None], width, axis=1)


def batches(rows, sizes):
    return np.split(rows, np.cumsum(sizes))


@pytest.mark.parametrize("sizes", [[], [1] * 60, [3, 20, 1, 30], [60]])
def test_each_row_of_a_stream_is_equally_likely_in_the_reservoir(sizes):
    size, length, trials = 7, 60, 1000
    counts = np.zeros(length)
    for seed in range(trials):
        memory = Reservoir(size, 1, seed)
        for batch in batches(stream(length), sizes):
            memory.add(batch)
        kept = memory.rows[:, 0].astype(int)
        assert len(set(kept)) == size
        counts[kept] += 1
    # Counts of one trial exclude each other, which makes this statistic a little smaller.
    assert chisquare(counts).pvalue > 0.01


def test_pairs_in_the_reservoir_are_equally_likely_too():
    counts = np.zeros((6, 6))
    for seed in range(3000):
        memory = Reservoir(2, 1, seed)
        memory.add(stream(6))
        first, second = sorted(memory.rows[:, 0].astype(int))
        counts[first, second] += 1
    assert chisquare(counts[np.triu_indices(6, 1)]).pvalue > 0.01


@pytest.mark.parametrize("sizes", [[1] * 300, [7, 200, 0, 93], [50, 1, 249]])
def test_the_sample_does_not_depend_on_how_the_stream_is_cut(sizes):
    whole, cut = Reservoir(20, 2, seed=3), Reservoir(20, 2, seed=3)
    whole.add(stream(300, 2))
    for batch in batches(stream(300, 2), sizes):
        cut.add(batch)
    np.testing.assert_array_equal(whole.rows, cut.rows)
    assert whole.n_seen == cut.n_seen == 300


def test_a_reservoir_that_is_not_full_holds_everything():
    memory = Reservoir(10, 1, seed=0)
    memory.add(stream(7))
    assert memory.count == 7
    np.testing.assert_array_equal(memory.rows[:7], stream(7))


@pytest.mark.parametrize("sizes", [[1] * 40, [3, 30, 7], [40], [2, 3]])
def test_the_latest_rows_stay(sizes):
    memory = Recent(8, 1)
    for batch in batches(stream(40), sizes):
        memory.add(batch)
    assert memory.count == 8
    np.testing.assert_array_equal(memory.rows, stream(40)[-8:])


def test_all_rows_stay_while_the_room_grows(monkeypatch):
    monkeypatch.setattr(memories, "CAPACITY", 4)
    memory = Everything(2)
    lengths = set()
    for batch in batches(stream(200, 2), [1, 2, 1, 3, 60, 100]):
        memory.add(batch)
        lengths.add(len(memory.rows))
        assert len(memory.rows) >= memory.count
    np.testing.assert_array_equal(memory.rows[:200], stream(200, 2))
    assert lengths == {4, 16, 256}  # four times more each time, so rarely


def test_wide_rows_get_less_room_at_first():
    for width, length in ((10, memories.CAPACITY), (100_000, 64)):
        memory = Everything(width)
        assert len(memory.rows) == 0  # none before it is needed
        memory.add(np.zeros((1, width), np.float32))
        assert len(memory.rows) == length
        assert memory.rows.nbytes <= memories.BYTES


def test_a_large_reservoir_takes_room_as_it_fills(monkeypatch):
    monkeypatch.setattr(memories, "CAPACITY", 4)
    memory = Reservoir(50, 1, seed=0)
    lengths = []
    for batch in batches(stream(200), [3, 2, 20, 30]):
        memory.add(batch)
        lengths.append(len(memory.rows))
    assert lengths == [4, 16, 50, 50, 50]
    small = Reservoir(50, 1, seed=0)
    small.add(stream(200))
    np.testing.assert_array_equal(memory.rows, small.rows)


@pytest.mark.parametrize("count", [1, 2, 3, 7, 64, 1000])
def test_an_order_visits_each_row_once(count):
    for seed in range(5):
        places = place(draw_order(jax.random.key(seed)), jnp.arange(count), count)
        assert sorted(places.tolist()) == list(range(count))


def test_all_orders_of_a_few_rows_are_equally_likely():
    keys = jax.random.split(jax.random.key(1), 6000)
    places = jax.vmap(lambda key: place(draw_order(key), jnp.arange(4), 4))(keys)
    codes = np.asarray(places) @ np.array([64, 16, 4, 1])
    _, counts = np.unique(codes, return_counts=True)
    assert len(counts) == 24
    assert chisquare(counts).pvalue > 0.01


def test_neighbours_of_an_order_are_not_neighbours_of_another():
    positions = jnp.arange(1000)
    places = np.asarray(place(draw_order(jax.random.key(0)), positions, 1000), dtype=float)
    assert abs(np.corrcoef(places[:-1], places[1:])[0, 1]) < 0.1
    assert abs(np.corrcoef(places, np.arange(1000))[0, 1]) < 0.1
