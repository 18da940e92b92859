"""What do the nearest rows say?  k-nearest neighbours on standardised inputs, from scikit-learn."""

from __future__ import annotations

from sklearn.neighbors import KNeighborsRegressor

from benchmarks.contenders.contender import Array
from benchmarks.contenders.kept import Kept
from benchmarks.contenders.scaling import Scaling

NEIGHBOURS = 5
GROWTH = 1.1  # until there are so many times as many rows, the same are searched


class Neighbours:
    """Keeps all rows; those searched are renewed when they have grown by a tenth."""

    def __init__(self) -> None:
        self._kept = Kept()
        self._searched = 0

    def learn(self, X: Array, Y: Array) -> None:
        """Keep rows."""
        self._kept.add(X, Y)
        if len(self._kept) >= GROWTH * self._searched:
            self.refresh()

    def refresh(self) -> None:
        """Search all rows from now on."""
        self._scaling = Scaling(self._kept.X)
        # In 14 and more dimensions trees do not pay.
        self._model = KNeighborsRegressor(
            min(NEIGHBOURS, len(self._kept)), weights="distance", algorithm="brute"
        )
        self._model.fit(self._scaling.scale(self._kept.X), self._kept.Y.copy())
        self._searched = len(self._kept)

    def predict(self, X: Array) -> Array:
        """The mean of the nearest rows, weighted by closeness."""
        return self._model.predict(self._scaling.scale(X))

    @property
    def nbytes(self) -> int:
        """Bytes of all rows."""
        return self._kept.nbytes
