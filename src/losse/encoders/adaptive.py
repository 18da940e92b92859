"""An encoder whose directions are learned: grids along the gradients of the targets."""

from typing import Any

import numpy as np

from losse.checks import check_count, check_targets
from losse.encoders.base import Encoder, ScalingChoice, learn_scaling
from losse.encoders.boosted import BoostedGrids
from losse.encoders.cascade import Stage, apply_cascade, fit_cascade, seeing_first
from losse.encoders.directions import draw_directions, few_inputs, unit_spread
from losse.encoders.losse import LosseEncoder
from losse.encoders.polish import held_out, polish
from losse.encoders.soft_grid import SoftGridEncoder, with_one
from losse.scaling import standard
from losse.storage.state import State, StateReader, nested
from losse.typing import Array
from losse.work import UNIT, Work, blocks

MOST_ROWS = 5000
"""Rows from which directions are estimated; of more, so many are drawn."""
OFFSET = 0.5
"""Standard deviation of the grids' places along their axes."""
MOST_STAGES = 100
"""Of a cascade. Each costs a fit of up to 5,000 rows, and few help."""
_MOST_OUTPUTS = 1 << 20
# Operations that take as long as scaling a number.
_SCALED = 300.0


class AdaptiveEncoder(SoftGridEncoder):
    r"""Sparse encoding along the directions in which the targets bend.

    The grids are those of `LosseEncoder` with two axes, but they are learned from the data given to
    `fit`, and then frozen. A cascade of ``n_stages`` small models, each of which looks at the
    inputs and at the predictions of the one before, hands its last predictions to the grids as
    further inputs. The models are fitted in closed form; from a thousand rows on, some gradient
    steps on all of them together follow, as long as they help on rows held out. Before the first of
    them come boosted grids, for the targets that these predict better: those with thresholds, codes
    of categories or contacts.

    The axes of the grids are gradients of the targets with respect to all of these; both axes of a
    grid belong to the same target. So the cells are where the targets are hard to follow, and a
    fifth of them does better than random ones.

    `losse.FTLRegressor` lets the encoder learn from the first ``warm_up`` rows of a stream.

    Parameters
    ----------
    n_grids
        Number of grids, kappa.
    n_bins
        Bins along each of the two axes of a grid, lambda.
    n_stages
        Models in the cascade; 0 for gradients of the inputs alone.
    warm_up
        Rows of a stream from which a model learns the encoder for good. It is learned for the time
        being from fewer: see `losse.ftl.settings.BuildSchedule`.
    linear
        Whether a one, the scaled inputs and the cascade's predictions stand beside the grids. A
        number multiplies the one and the inputs, so that a ridge weighs on them the less, by its
        square: what noise makes the model give up first are the grids, not the linear part.
    scaling
        As in `LosseEncoder`.
    seed
        Of all that is drawn.

    Attributes
    ----------
    projection_
        Directions, of shape (n_features + n_outputs, n_grids, 2), or without the outputs if there
        are no stages. May be replaced after `fit`.
    offset_
        What is added to the projections before they are squashed, of shape (n_grids, 2).

    Examples
    --------
    >>> import numpy as np
    >>> from losse import AdaptiveEncoder, FTLRegressor, LosseEncoder
    >>> X = np.random.default_rng(0).normal(size=(1000, 8))
    >>> y = np.sin(X[:, 0] + X[:, 1])  # the other six inputs do not matter
    >>> encoder = AdaptiveEncoder(n_grids=20, n_bins=5).fit(X[:800], y[:800])
    >>> encoder.transform(X).shape
    (1000, 730)
    >>> random = LosseEncoder(n_grids=20, n_bins=5)
    >>> for each in (encoder, random):
    ...     model = FTLRegressor(each, ridge=1e-3).fit(X[:800], y[:800])
    ...     print(bool(model.score(X[800:], y[800:]) > 0.95))
    True
    False
    """

    grid_dim = 2
    offset_: Array
    _lead: BoostedGrids | None
    _stages: list[Stage]

    def __init__(
        self,
        n_grids: int = 100,
        n_bins: int = 2,
        *,
        n_stages: int = 4,
        warm_up: int = 32000,
        linear: bool | float = 10.0,
        scaling: ScalingChoice = "standard",
        seed: int = 0,
    ) -> None:
        self.n_grids = n_grids
        self.n_bins = n_bins
        self.n_stages = n_stages
        self.warm_up = warm_up
        self.linear = linear
        self.scaling = scaling
        self.seed = seed

    def freezing(self, X: Array, Y: Array | None, weights: Array) -> Work[None]:
        """What `freeze` does, as work in units."""
        assert Y is not None
        counted = weights > 0
        X, Y, weights = X[counted], Y.reshape(len(Y), -1)[counted], weights[counted]
        rng = np.random.default_rng(self.seed)
        self.n_features_in_ = X.shape[1]
        self._scaling, self._limit = learn_scaling(self.scaling, X, weights)
        yield _SCALED * X.size
        targets_scaling = standard(Y, weights)
        yield _SCALED * Y.size
        Z, Q = np.empty_like(X), np.empty_like(Y)
        for rows in blocks(len(X), cost := _SCALED * (X.shape[1] + Y.shape[1])):
            Z[rows], Q[rows] = self._scaled(X[rows]), targets_scaling.apply(Y[rows])
            yield (rows.stop - rows.start) * cost
        learned = ~held_out(len(Z))
        some = np.arange(np.count_nonzero(learned))
        if len(some) > MOST_ROWS:
            some = np.sort(rng.choice(some, MOST_ROWS, replace=False))
        lead, stages, V, gradients = yield from fit_cascade(
            Z[learned], Q[learned], weights[learned], some, self.n_stages, rng
        )
        self._lead = None if lead is None else lead.grids
        axes = draw_directions(gradients, self.n_grids, 2, rng)
        if axes is None:  # nothing bends
            axes = few_inputs(rng, V.shape[1], (self.n_grids, 2), min(2, V.shape[1]))
        self.offset_ = rng.normal(scale=OFFSET, size=(self.n_grids, 2))
        seen = yield from seeing_first(self._lead, Z)
        if lead is not None:
            seen[learned, Z.shape[1] :] = lead.left_out
        self._stages = yield from polish(stages, seen, Z.shape[1], Q, weights, rng)
        self.projection_ = unit_spread(axes, V, weights[learned][some])
        yield UNIT  # in which all that was needed on the way is freed

    def early(self) -> Encoder:
        """Axes that mix two inputs at random, until there are enough rows."""
        return LosseEncoder(
            self.n_grids, self.n_bins, inputs_per_axis=2, linear=self.linear,
            scaling=self.scaling, seed=self.seed,
        )  # fmt: skip

    def state(self) -> State:
        """What makes the features, for checkpoints and comparisons: nothing but arrays."""
        own: State = {"offset": self.offset_, "stage_outputs": self._width - self.n_features_in_}
        if self._lead is not None:
            own |= nested("lead", self._lead.state())
        for k, stage in enumerate(self._stages):
            own |= nested(f"stage{k}", stage.state())
        return super().state() | own

    def restore(self, saved: StateReader) -> None:
        """Become fitted by what `state` has returned."""
        self.offset_ = saved.array("offset", self._projection_shape)
        n_features = saved.length("shift")
        n_outputs = saved.count("stage_outputs", at_most=_MOST_OUTPUTS)
        self._stages, self._lead = [], None
        lead = saved.part("lead")
        if lead.has_array("cuts"):
            self._lead = BoostedGrids.read(lead, n_features)
        led = 0 if self._lead is None else len(self._lead.constant)
        for k in range(self.n_stages):
            stage = saved.part(f"stage{k}")
            hidden = stage.length("offsets")
            width = n_features + (n_outputs if k else led)
            directions = stage.array("directions", (width, hidden))
            offsets = stage.array("offsets", (hidden,))
            weights = stage.array("weights", (hidden + width + 1, n_outputs))
            self._stages.append(Stage(directions, offsets, weights))
        super().restore(saved)

    def check_parameters(self) -> None:
        super().check_parameters()
        check_count("n_stages", self.n_stages, at_least=0, at_most=MOST_STAGES)
        check_count("warm_up", self.warm_up, at_most=2**62)

    def _check_targets(self, y: Any, n_rows: int) -> Array:
        return check_targets(y, n_rows, None)

    @property
    def _width(self) -> int:
        """Inputs, and what the last stage predicts."""
        return self.n_features_in_ + (self._stages[-1].weights.shape[1] if self._stages else 0)

    def _seen(self, X: Array) -> tuple[Array, Array | None]:
        rows = with_one(apply_cascade(self._lead, self._stages, self._scaled(X)))
        if not self.linear or self.linear == 1.0:
            return rows, rows if self.linear else None
        terms = rows.copy()
        terms[:, : self.n_features_in_ + 1] *= self.linear
        return rows, terms

    def _pad(self, projection: Array) -> Array:
        """With the offsets as the directions of the input that is always one."""
        return super()._pad(np.vstack([self.offset_.reshape(1, -1), projection]))

    @property
    def _input_map(self) -> tuple[Array, Array, float, Array]:
        """None: what the grids see is scaled already."""
        width = self._width + 1
        return np.zeros(width), np.ones(width), np.inf, self._padded

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags
