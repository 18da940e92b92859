"""Products of features: few rows skip zeros, many are multiplied in full; both are the same."""

import numpy as np
import pytest

from losse._kernels.simd import aligned, padded
from losse.encoders.features import SparseFeatures

D, ACTIVE = 90, 30


def features(n: int) -> SparseFeatures:
    rng = np.random.default_rng(n)
    indices = np.array([rng.permutation(D)[:ACTIVE] for _ in range(n)], dtype=np.int32)
    return SparseFeatures(indices, rng.normal(size=(n, ACTIVE)), D)


def square() -> np.ndarray:
    rng = np.random.default_rng(0)
    P = aligned((padded(D), padded(D)))
    P[:D, :D] = rng.normal(size=(D, D))
    return P + P.T


@pytest.mark.parametrize("n", [1, 5, 40])
def test_a_product_with_a_square_is_that_of_the_full_features(n):
    some, P = features(n), square()
    out = aligned((n, padded(D)))
    some.combine(P, out)
    np.testing.assert_allclose(out[:, :D], some.dense() @ P[:D, :D], atol=1e-12)
    np.testing.assert_allclose(some.inner(P[:7]), some.dense() @ P[:7, :D].T, atol=1e-12)


def test_many_rows_have_the_products_of_each_alone():
    some, P = features(40), square()
    together, alone = aligned((40, padded(D))), aligned((1, padded(D)))
    some.combine(P, together)
    for k in range(40):
        some[k : k + 1].combine(P, alone)
        np.testing.assert_allclose(together[k], alone[0], atol=1e-12)
