"""`JaxLearner`: a learner of a world model whose memories and weights stay on JAX's device."""

from __future__ import annotations

import math
from copy import deepcopy
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from losse.encoders import Encoder
from losse.ftl.kept_rows import Rows
from losse.ftl.prequential import Prequential
from losse.ftl.settings import DTYPES, Settings, Source
from losse.jax import merge, update
from losse.jax.encoding import times
from losse.jax.model import Grids, Memory, Model, empty, precision
from losse.storage.state import State, StateReader, nested
from losse.typing import Array

LEAST, BLOCK = 32, 4096
"""Rows that are learned or predicted at once: fewer are filled up to a power of two."""


class Frozen(NamedTuple):
    """Weights of one moment, which predict."""

    grids: Grids
    weights: jax.Array

    def predict(self, X: Array) -> Array:
        """Predicted targets, (n, n_outputs)."""
        parts = [X[first : first + BLOCK] for first in range(0, len(X), BLOCK)]
        made = [np.asarray(_times(*self, _filled(part)))[: len(part)] for part in parts]
        return np.concatenate(made).astype(np.float64)


class JaxLearner:
    """Algorithm 2 on a `losse.jax.Model`, with the verbs of `losse.ftl.learner.Learner`.

    Parameters
    ----------
    settings
        Of a `LosseEncoder`, a number as the ridge and no discount, checked.
    rows
        The first rows.

    Attributes
    ----------
    model
        Encoder, memories and weights, as one pytree.
    encoder
        The same encoder on the host.
    """

    final = True

    def __init__(self, settings: Settings, rows: Rows) -> None:
        self._begin(settings, settings.fitted_encoder(rows), rows.Y.shape[1])
        self.learn(rows)

    def _begin(self, settings: Settings, encoder: Encoder, n_outputs: int) -> None:
        self.settings = settings
        self.encoder = encoder
        self.n_features = encoder.n_features_in_
        self.n_outputs = n_outputs
        self.model = empty(grids_of(encoder), n_outputs, self.ridge)
        self._prequential = Prequential(n_outputs)

    @property
    def ridge(self) -> float:
        """The ridge in use."""
        return float(self.settings.ridge)

    @property
    def prequential_error(self) -> float:
        """Squared test-then-train error over the targets' variance, of all calls but the first."""
        return self._prequential.nmse

    def learn(self, rows: Rows, past: Source | None = None) -> None:
        """Learn more rows, one after the other.

        ``past`` is for encoders that are built again, and this one stays as it is.
        """
        for part in rows.parts(BLOCK):
            before = self.predict(part.X)
            self._prequential.add(before, part.Y, part.weights, part.weights)
            given = map(_filled, (part.X, part.Y, part.weights))
            memory, bare = self.model.memory, self.model.replace(memory=None)
            memory, weights = _learned(memory, bare, *given)
            self.model = self.model.replace(memory=memory, weights=weights)

    def predict(self, X: Array) -> Array:
        """Predicted targets, (n, n_outputs)."""
        return self.frozen().predict(X)

    def frozen(self) -> Frozen:
        """What predicts as this learner does now, and stays as it is."""
        return Frozen(self.model.grids, self.model.weights)

    def predict_std(self, X: Array) -> tuple[Array, Array]:
        """Raise: the functional form has no posterior."""
        raise NotImplementedError(
            "JaxWorldModel does not know how sure it is: use LosseWorldModel, or leave out "
            "return_std and max_std."
        )

    def empty_like(self) -> JaxLearner:
        """A learner with the same settings, encoder and widths that has learned nothing."""
        alike = JaxLearner.__new__(JaxLearner)
        alike._begin(self.settings, deepcopy(self.encoder), self.n_outputs)
        return alike

    def require_mergeable(self, other: JaxLearner) -> None:
        """Raise unless the sums of both learners are over the same features and outputs."""
        if self.n_outputs != other.n_outputs or not self.encoder.same_features(other.encoder):
            raise ValueError(
                f"other learns {other.n_outputs} targets with {other.encoder!r}, this model "
                f"{self.n_outputs} with {self.encoder!r}: make it with like()."
            )

    def absorb(self, other: JaxLearner) -> None:
        """Add what a mergeable learner has learned."""
        self.model = merge(self.model, other.model)

    def solve(self) -> None:
        """Nothing: `absorb` has found the weights."""

    def state(self) -> State:
        """Values for a checkpoint, but for the settings."""
        memory = jax.device_get(self.model.memory)
        return {
            "n_outputs": self.n_outputs,
            "dtype": np.dtype(self.model.dtype).name,
            "total": float(memory.total),
            "n_samples": int(memory.n_samples),
            **{name: np.asarray(getattr(memory, name)) for name in ("A", "B", "squares")},
            "weights": np.asarray(self.model.weights),
            **nested("encoder", self.encoder.state()),
            **nested("prequential", self._prequential.state()),
        }

    @classmethod
    def read(cls, settings: Settings, saved: StateReader) -> JaxLearner:
        """The learner that `state` has described."""
        encoder = clone(settings.encoder)
        encoder.restore(saved.part("encoder"))
        grids, S = grids_of(encoder), saved.count("n_outputs", at_most=1 << 20)
        dtype = saved.word("dtype", DTYPES)
        shapes = {
            "A": grids.memory_shape,
            "B": (grids.dimension, S),
            "squares": (S,),
            "weights": (grids.dimension, S),
        }
        for name, shape in shapes.items():  # before anything of that size is allocated
            saved.require_shape(name, shape, dtype)
        learner = cls.__new__(cls)
        learner._begin(settings, encoder, S)
        read = {
            name: jnp.asarray(saved.array(name, shape, dtype), precision(None))
            for name, shape in shapes.items()
        }
        weights = read.pop("weights")
        total = jnp.asarray(saved.number("total", at_least=0.0), precision(None))
        n_samples = jnp.asarray(saved.count("n_samples", at_most=2**31 - 1), jnp.int32)
        memory = Memory(**read, total=total, n_samples=n_samples)
        learner.model = learner.model.replace(memory=memory, weights=weights)
        learner._prequential.restore(saved.part("prequential"))
        return learner


def grids_of(encoder: Any) -> Grids:
    """The functional form of a fitted `LosseEncoder` of scaled inputs."""
    real, n = precision(None), encoder.n_features_in_
    return Grids(
        shift=jnp.zeros(n, real),
        factor=jnp.ones(n, real),
        projection=jnp.asarray(encoder.projection_, real),
        n_bins=encoder.n_bins,
        linear=bool(encoder.linear),
        limit=math.inf,
    )


def _filled(rows: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Rows with zeros after them, so that few numbers of rows are compiled for."""
    size = max(LEAST, 1 << (len(rows) - 1).bit_length())
    filled = np.zeros((size, *rows.shape[1:]), precision(None))
    filled[: len(rows)] = rows
    return filled


@jax.jit
def _times(grids: Grids, weights: jax.Array, X: jax.Array) -> jax.Array:
    return times(grids, X, weights)


@partial(jax.jit, donate_argnums=0)  # so that the memory is changed in place
def _learned(
    memory: Memory, bare: Model, X: jax.Array, Y: jax.Array, weights: jax.Array
) -> tuple[Memory, jax.Array]:
    """Memory and weights after some rows, of which those of weight 0 do not count."""
    model = update(bare.replace(memory=memory), X, Y, weights)
    return model.memory, model.weights
