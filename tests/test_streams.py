import numpy as np
import pytest

from losse.streams import chirp, piecewise_random_walk


@pytest.mark.parametrize("correlation", [0.0, 0.3, 0.7, 0.95])
@pytest.mark.parametrize("bound", [1.0, 3.0])
def test_inputs_have_the_same_distribution_at_every_correlation_level(correlation, bound):
    stream = piecewise_random_walk(200_000, correlation=correlation, period=1, bound=bound)
    assert np.mean(stream.X) == pytest.approx(0.0, abs=0.02 * bound)
    assert np.std(stream.X) == pytest.approx(bound / 2, rel=0.02)


def test_the_first_input_already_has_that_distribution():
    first = [piecewise_random_walk(1, correlation=0.9, seed=s).X[0, 0] for s in range(4000)]
    assert np.std(first) == pytest.approx(0.5, rel=0.05)


@pytest.mark.parametrize("correlation", [0.3, 0.9])
def test_constants_are_those_of_the_paper(correlation):
    stream = piecewise_random_walk(200_000, correlation=correlation, period=1, bound=2.0)
    before, after = stream.centres[:-1], stream.centres[1:]
    keep = np.sqrt(1 - correlation)
    assert stream.spread == pytest.approx(keep)
    assert np.polyfit(before, after, 1)[0] == pytest.approx(keep, abs=0.01)
    assert np.std(after - keep * before) == pytest.approx(correlation, rel=0.01)


def test_without_correlation_the_centre_rests():
    assert not piecewise_random_walk(500, correlation=0.0, period=10).centres.any()


@pytest.mark.parametrize("n_samples", [1, 99, 100, 101, 250])
def test_the_centre_moves_every_period(n_samples):
    centres = piecewise_random_walk(n_samples, correlation=0.5, period=100).centres
    assert len(centres) == n_samples
    assert np.array_equal(np.flatnonzero(np.diff(centres)) + 1, np.arange(100, n_samples, 100))


def test_targets_are_the_same_function_everywhere():
    stream = piecewise_random_walk(300, correlation=0.9)
    assert np.array_equal(stream.y, np.sin(2 * np.pi * stream.X[:, 0] ** 2))
    assert np.array_equal(stream.y, chirp(stream.X[:, 0]))


def test_a_seed_fixes_the_stream():
    one, same, other = (piecewise_random_walk(50, correlation=0.5, seed=s) for s in (3, 3, 4))
    assert np.array_equal(one.X, same.X)
    assert not np.array_equal(one.X, other.X)


def test_a_redrawn_stream_visits_the_same_places_independently():
    stream = piecewise_random_walk(20_000, correlation=0.9, period=10)
    test = stream.redraw(seed=1)
    assert np.array_equal(test.centres, stream.centres)
    noise = (stream.X[:, 0] - stream.centres, test.X[:, 0] - test.centres)
    assert np.std(noise[1]) == pytest.approx(stream.spread, rel=0.02)
    assert abs(np.corrcoef(*noise)[0, 1]) < 0.03


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_samples", 0),
        ("correlation", 1.0),
        ("correlation", -0.1),
        ("correlation", float("nan")),
        ("period", 0),
        ("bound", 0.0),
        ("bound", float("inf")),
    ],
)
def test_nonsense_is_refused_by_name(name, value):
    arguments = {"n_samples": 10, "correlation": 0.5, name: value}
    with pytest.raises(ValueError, match=rf"{name} must be .*{value}"):
        piecewise_random_walk(**arguments)
