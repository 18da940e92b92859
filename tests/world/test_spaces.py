"""Observations and actions become rows of numbers and come back."""

import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.utils.env_checker import data_equivalence

from losse.world.spaces import flat
from losse.world.transitions import stack, take


@pytest.mark.parametrize(
    "space",
    [
        spaces.Box(-1, 1, (3,)),
        spaces.Box(-np.inf, np.inf, (2, 2), dtype=np.float64),
        spaces.Box(0, 255, (2, 3, 1), dtype=np.uint8),
        spaces.Box(-(2**63), 2**63 - 1, (1,), dtype=np.int64),
        spaces.Discrete(5),
        spaces.Discrete(3, start=-1),
    ],
    ids=str,
)
def test_what_goes_in_comes_back(space):
    space.seed(0)
    values = np.stack([space.sample() for _ in range(20)])
    if space.dtype == np.int64 and isinstance(space, spaces.Box):
        values = values % 1000  # larger ones have no exact double
    read = flat("observation_space", space)
    rows = read.rows("obs", values)
    assert rows.shape == (20, read.width)
    assert rows.dtype == np.float64
    back = read.restore(rows)
    assert back.dtype == space.dtype
    np.testing.assert_array_equal(back, values)
    assert all(space.contains(value) for value in back)


@pytest.mark.parametrize("dtype", [np.uint8, np.int32, np.int64, np.float32])
def test_restored_values_lie_in_the_space(dtype):
    space = spaces.Box(0, 9, (2,), dtype=dtype)
    read = flat("observation_space", space)
    rows = np.array([[-1e30, 3.4], [1e30, 9.6], [0.5, 8.7]])
    assert all(space.contains(row) for row in read.restore(rows))


def test_a_box_may_be_a_single_number():
    read = flat("observation_space", spaces.Box(-5, 5, (), dtype=np.int32))
    np.testing.assert_array_equal(read.restore(read.rows("obs", [1, -4])), [1, -4])


def test_integers_are_rounded():
    read = flat("observation_space", spaces.Box(0, 9, (2,), dtype=np.int32))
    assert read.restore(np.array([[2.6, 3.4]])).tolist() == [[3, 3]]


def test_limits_of_long_integers_do_not_overflow():
    space = spaces.Box(-(2**63), 2**63 - 1, (1,), dtype=np.int64)
    restored = flat("observation_space", space).restore(np.array([[1e25], [-1e25]]))
    assert restored[0, 0] > 0 > restored[1, 0]


NESTED = spaces.Dict(
    {
        "speed": spaces.Box(-1, 1, (2,)),
        "gear": spaces.Discrete(3, start=1),
        "hands": spaces.Tuple([spaces.MultiBinary((2, 2)), spaces.MultiDiscrete([2, 3])]),
    }
)
STRUCTURED = [
    spaces.MultiDiscrete([2, 3]),
    spaces.MultiDiscrete([[2, 3], [4, 2]], start=[[0, -5], [7, 1]], dtype=np.int16),
    spaces.MultiBinary(4),
    spaces.MultiBinary((2, 3)),
    spaces.Dict({"b": spaces.Discrete(2), "a": spaces.Box(-1, 1, (2,))}),
    spaces.Dict([("b", spaces.Discrete(2)), ("a", spaces.Box(-1, 1, (2,)))]),
    spaces.Tuple([spaces.Discrete(2), spaces.Box(0, 9, (2, 2), dtype=np.int32)]),
    NESTED,
]


@pytest.mark.parametrize("space", STRUCTURED, ids=str)
def test_rows_are_those_of_gymnasium(space):
    space.seed(0)
    samples = [space.sample() for _ in range(20)]
    batch = stack(samples)
    for verb in ("rows", "bounded_rows", "inputs"):
        rows = getattr(flat("action_space", space), verb)("actions", batch)
        expected = np.stack([spaces.flatten(space, sample) for sample in samples])
        np.testing.assert_array_equal(rows, expected)
        assert rows.dtype == np.float64


@pytest.mark.parametrize("space", STRUCTURED, ids=str)
def test_structured_values_come_back(space):
    space.seed(1)
    batch = stack([space.sample() for _ in range(20)])
    read = flat("observation_space", space)
    rows = read.rows("obs", batch)
    noisy = rows + np.random.default_rng(0).uniform(-0.3, 0.3, rows.shape)
    for k in range(20):
        assert space.contains(take(read.restore(noisy), k))
        assert data_equivalence(take(read.restore(rows), k), take(batch, k))
    assert data_equivalence(read.cast(batch), batch)
    assert data_equivalence(read.single(take(batch, 3)), take(batch, [3]))
    assert read.rows("obs", read.none()).shape == (0, read.width)


def test_choices_and_bits_have_unit_mean_square():
    read = flat(
        "action_space", spaces.Dict(a=spaces.MultiDiscrete([4, 9]), b=spaces.MultiBinary(2))
    )
    (shift, factor), limit = read.scaling(3.0)
    rows = read.rows("actions", {"a": [[3, 8]], "b": [[0, 1]]})
    scaled = (rows - shift) * factor
    np.testing.assert_array_equal(scaled[0, [3, 12, 13, 14]], [2, 3, -1, 1])
    assert (np.abs(scaled) <= limit).all()
    assert not read.continuous


@pytest.mark.parametrize(
    ("values", "error", "text"),
    [
        ([{}], TypeError, r"obs must be a dict with the keys \['gear', 'hands', 'speed'\]"),
        ({"left": [[0, 0]]}, TypeError, "obs must be a dict with the keys"),
        ({"gear": [1, 2]}, ValueError, r"obs\['hands'\]\[0\] has 1 rows, but obs has 2"),
        ({"gear": [0]}, ValueError, r"obs\['gear'\] contains 0 in row 0.*from 1 to 3"),
        ({"gear": [1.0]}, TypeError, r"obs\['gear'\] has dtype float64"),
        ({"speed": [0, 0]}, ValueError, r"obs\['speed'\] has shape \(2,\)"),
        ({"speed": [[0, np.nan]]}, ValueError, r"obs\['speed'\] contains nan"),
        ({"hands": [[0]]}, TypeError, r"obs\['hands'\] must be a tuple of 2"),
        ({"hands": ([[[0, 2], [0, 1]]], [[0, 0]])}, ValueError, "values other than 0 and 1"),
        ({"hands": ([[[0, 1], [0, 1]]], [[0, 3]])}, ValueError, r"\[1\] contains 3.*from 0 to 2"),
    ],
)
def test_wrong_parts_are_named(values, error, text):
    right = {"speed": [[0, 0]], "gear": [1], "hands": ([[[0, 1], [1, 0]]], [[0, 2]])}
    read = flat("observation_space", NESTED)
    assert read.rows("obs", right).shape == (1, 2 + 3 + 4 + 5)
    with pytest.raises(error, match=text):
        read.rows("obs", right | values if isinstance(values, dict) else values)


def test_actions_must_lie_in_every_part():
    read = flat("action_space", NESTED)
    right = {"speed": [[0, 0]], "gear": [1], "hands": ([[[0, 1], [1, 0]]], [[0, 2]])}
    read.inputs("actions", right)
    with pytest.raises(ValueError, match=r"actions\['speed'\] contains 1.5 in row 0, outside Box"):
        read.inputs("actions", right | {"speed": [[0, 1.5]]})


@pytest.mark.parametrize(
    "space",
    [
        spaces.Text(3),
        spaces.Sequence(spaces.Discrete(2)),
        spaces.Dict({"words": spaces.Text(3), "place": spaces.Box(0, 1, (2,))}),
        spaces.Dict({}),
        spaces.Box(0, 1, (0,)),
        "Box",
        None,
    ],
    ids=str,
)
def test_other_spaces_are_refused_by_name(space):
    with pytest.raises(TypeError, match=r"action_space.*=.* is not supported.*Box.*Discrete"):
        flat("action_space", space)


@pytest.mark.parametrize("shape", [(84, 84, 3), (4, 84, 84), (32, 40)], ids=str)
def test_images_are_refused_with_what_to_do(shape):
    image = spaces.Box(0, 255, shape, dtype=np.uint8)
    for space, name in ((image, "observation_space"), (spaces.Dict(eye=image), r".*\['eye'\]")):
        with pytest.raises(TypeError, match=rf"{name}=Box.* holds images.*TransformObservation"):
            flat("observation_space", space)
    flat("observation_space", spaces.Box(0, 255, (7, 7, 3), dtype=np.uint8))  # symbols, not pixels
    flat("observation_space", spaces.Box(0, 255, (128,), dtype=np.uint8))


@pytest.mark.parametrize(
    "dtype",
    [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64],
    ids=lambda dtype: dtype.__name__,
)
@pytest.mark.parametrize("space", [(200, -100), (3, -1), (256, 0), (300, 100), (2, 2**62)], ids=str)
def test_choices_of_any_integer_type_are_counted_from_the_start(space, dtype):
    """Those that the type can hold: none wraps around."""
    n, start = space
    read = flat("action_space", spaces.Discrete(n, start=start))
    limits = np.iinfo(dtype)
    held = [k for k in range(start, start + n) if limits.min <= k <= limits.max]
    choices = read.inputs("actions", np.array(held, dtype))
    np.testing.assert_array_equal(choices, [k - start for k in held])
    assert choices.dtype == np.int64
    np.testing.assert_array_equal(read.restore(read.rows("actions", np.array(held, dtype))), held)
    for outside in {limits.min, limits.max} - set(held):
        with pytest.raises(ValueError, match=f"actions contains {outside} in row 0, outside"):
            read.inputs("actions", np.array([outside], dtype))


def test_actions_must_lie_in_the_space_but_for_rounding():
    read = flat("action_space", spaces.Box(-0.4, 0.4, (1,)))
    read.inputs("actions", [[0.4], [-0.4]])  # the bounds are floats, these are doubles
    with pytest.raises(ValueError, match=r"actions contains 0.41 in row 1, outside Box"):
        read.inputs("actions", [[0.0], [0.41]])


@pytest.mark.parametrize(
    ("values", "error", "text"),
    [
        ([3], ValueError, "actions contains 3 in row 0.*from 1 to 2"),
        ([1, 0], ValueError, "actions contains 0 in row 1"),
        ([[1], [2]], ValueError, r"actions has shape \(2, 1\).*actions\[:, 0\]"),
        ([1.0], TypeError, "float64.*integers"),
        (1, ValueError, r"shape \(\)"),
        (["left"], TypeError, "integers"),
    ],
)
def test_wrong_choices(values, error, text):
    with pytest.raises(error, match=text):
        flat("action_space", spaces.Discrete(2, start=1)).inputs("actions", values)
