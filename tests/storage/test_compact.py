"""Compact matrices: every bit comes back, whatever the layout, and damage is found."""

import numpy as np
import pytest

from losse.storage.compact import GROUP_BYTES, Form, compact, expand

RNG = np.random.default_rng(0)


def sparse(shape, share=0.1, dtype="float64"):
    return np.where(RNG.random(shape) < share, RNG.normal(size=shape), 0.0).astype(dtype)


def symmetric(n, share=1.0):
    A = sparse((n, n), share)
    return np.triu(A) + np.triu(A, 1).T


@pytest.mark.parametrize(
    "matrix",
    [
        sparse((300, 200)),
        sparse((300, 200), dtype="float32"),
        sparse((7, 120, 120)),
        symmetric(900),  # several groups of rows
        symmetric(300, 0.02),
        np.tril(sparse((200, 200), 1.0)),
        np.zeros((400, 400)),
        np.where(np.eye(200) == 1, np.nan, -0.0),
        np.broadcast_to(np.float64(0), (300, 300)),
        symmetric(400)[:, ::-1][::-1],
    ],
)
def test_every_bit_comes_back(matrix):
    form, data = compact(matrix)
    assert len(data) <= 0.75 * matrix.nbytes
    for out in (np.zeros(matrix.shape, matrix.dtype), np.full(matrix.shape, 7.0, matrix.dtype)):
        expand(form, data, out)
        assert out.tobytes() == matrix.tobytes()


def test_groups_are_smaller_than_the_matrix():
    assert GROUP_BYTES < 900 * 900 * 8


@pytest.mark.parametrize(
    "matrix",
    [
        sparse((300, 200), 1.0),  # full
        np.zeros((20, 20)),  # small
        np.zeros((10_000, 8)),  # narrow
        np.zeros((300, 300), dtype=np.int64),
        np.zeros(100_000),
    ],
)
def test_others_stay_as_they_are(matrix):
    assert compact(matrix) is None


def test_damage_is_found():
    matrix = sparse((300, 200))
    form, data = compact(matrix)
    out = np.zeros(matrix.shape)
    for other in (data[:-1], np.append(data, np.uint8(0)), data[:0]):
        with pytest.raises(ValueError, match="it "):
            expand(form, other, out)
    for position, value in ((0, 9), (0, 1), (3, data[3] ^ 255)):
        other = data.copy()
        other[position] = value
        with pytest.raises(ValueError, match="it"):
            expand(form, other, out)


@pytest.mark.parametrize(
    "entry",
    [
        None,
        3,
        ["float64", [3, 3]],
        ["float16", [300, 300], False],
        ["float64", [300], False],
        ["float64", [300, -1], False],
        ["float64", [300, True], False],
        ["float64", [2**40, 2**40], False],
        ["float64", [300, 200], True],
        ["float64", [300, 300], 1],
        [[], [300, 300], True],
    ],
)
def test_forms_that_make_no_sense_are_refused(entry):
    with pytest.raises(ValueError, match="is no form of a matrix"):
        Form.read(entry)
