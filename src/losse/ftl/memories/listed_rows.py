"""`ListedRows`: rows with few active cells, which enter A later, some of their cells at a time.

Products of active cells alone are a fraction of those of whole rows. Where the cells of each grid
have a place of their own, those of many rows with each other go to one small part of A after the
other, which stays in cache meanwhile.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from losse.encoders.features import Features, SparseFeatures
from losse.ftl.deferred import Deferred
from losse.storage.state import State, StateReader

MANY = 256
"""Rows that enter A together."""


class ListedRows(Deferred):
    """A + T^T T, with T the rows of sparse features.

    Examples
    --------
    >>> from losse import LosseEncoder
    >>> X = np.random.default_rng(0).normal(size=(1000, 4))
    >>> features = LosseEncoder(n_grids=20, n_bins=3).fit(X).encode(X)
    >>> D = features.dimension
    >>> sums = ListedRows(np.zeros((D, D)), features)
    >>> for k in range(1000):
    ...     _ = sums.make_room(1)
    ...     sums.take(features[k : k + 1])
    >>> T, Phi = sums.waiting, features.dense()
    >>> len(T) < 2 * MANY, bool(np.allclose(sums.matrix + T.T @ T, Phi.T @ Phi))
    (True, True)
    """

    def __init__(self, A: npt.NDArray[Any], kind: SparseFeatures) -> None:
        super().__init__(A, many=MANY)
        self._listed = kind.room(2 * MANY)
        self._bands: npt.NDArray[np.int64] | None = None  # of those that enter

    def take(self, features: Features) -> None:
        assert isinstance(features, SparseFeatures)
        self._listed.put(self._count, features)
        super().take(features)

    def _begin(self) -> None:
        super()._begin()
        self._bands = self._listed[: self._entering].bands()

    def _enter_band(self, first: int, last: int) -> int:
        if self._bands is None:
            last = super()._enter_band(first, last)
        else:
            edges, A = self._bands, self.matrix
            start, stop = np.searchsorted(edges, (first, last)).tolist()
            self._listed[: self._entering].add_bands(start, stop, A)
            for own in map(slice, edges[start:stop], edges[start + 1 : stop + 1]):
                A[own.stop :, own] = A[own, own.stop :].T
            last = int(edges[stop])
        if last == len(self.matrix):
            self._listed.put(0, self._listed[self._entering : self._count])
        return last

    def state(self, width: int) -> State:
        own = super().state(width)
        del own["pending"]
        rows = self._listed[: self._count]
        return own | {"active": rows.indices.shape[1]} | rows.state()

    def restore(self, saved: StateReader, width: int) -> None:
        self._restore_counts(saved)
        rows = self._listed.restored(saved, self._count)
        self._listed.put(0, rows)
        rows.write(self.waiting)
        if self._entering:
            self._bands = self._listed[: self._entering].bands()
            self._rows[: self._entering, : self._entered] = 0.0
