"""`ComponentEncoder`, the base of the dense encoders: random directions with offsets."""

import numpy as np

from losse._kernels.encode import project
from losse._kernels.simd import aligned, padded
from losse.checks import check_count, check_positive
from losse.encoders.base import Encoder, ScalingChoice
from losse.storage.state import State, StateReader
from losse.typing import Array


class ComponentEncoder(Encoder):
    """``n_components`` Gaussian directions of variance scale^2 / n_features, with offsets."""

    offset_: Array

    def __init__(
        self,
        n_components: int = 120,
        *,
        scale: float = 1.0,
        scaling: ScalingChoice = "standard",
        seed: int = 0,
    ) -> None:
        self.n_components = n_components
        self.scale = scale
        self.scaling = scaling
        self.seed = seed

    def check_parameters(self) -> None:
        super().check_parameters()
        check_count("n_components", self.n_components)
        check_positive("scale", self.scale)

    def _draw(self, rng: np.random.Generator, n_features: int) -> Array:
        projection = rng.normal(size=(n_features, self.n_components))
        self.offset_ = self._draw_offset(rng)
        return self.scale * projection / np.sqrt(n_features)

    def _draw_offset(self, rng: np.random.Generator) -> Array:
        raise NotImplementedError

    @property
    def _projection_shape(self) -> tuple[int, ...]:
        return (self.n_components,)

    @property
    def dimension(self) -> int:
        """Number of features, D in the paper."""
        return int(self.n_components)

    @property
    def n_active(self) -> int:
        """All features of a row may be other than zero."""
        return int(self.n_components)

    def state(self) -> State:
        """What makes the features, for checkpoints and comparisons: nothing but arrays."""
        return super().state() | {"offset": self.offset_}

    def restore(self, saved: StateReader) -> None:
        """Become fitted by what `state` has returned."""
        super().restore(saved)
        self.offset_ = saved.array("offset", (self.n_components,))

    def _shifted(self, X: Array) -> Array:
        """P x + offset for every row."""
        H = aligned((len(X), padded(self.n_components)))
        project(X, *self._input_map, H)
        return np.asarray(H[:, : self.n_components] + self.offset_)
