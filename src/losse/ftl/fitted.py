"""Attributes of a fitted `FTLRegressor`: what its learner knows, read under its lock."""

from __future__ import annotations

from losse.encoders import Encoder
from losse.ftl.learner import Learner
from losse.ftl.prequential import Curve
from losse.locking import Guarded
from losse.typing import Array


class FittedAttributes(Guarded):
    """What scikit-learn calls learned attributes: names that end in an underscore.

    None of them exists before the first `fit` or `partial_fit`.
    """

    _learner: Learner

    @property
    def encoder_(self) -> Encoder:
        """The encoder in use."""
        return self._fitted("encoder_").encoder

    @property
    def n_outputs_(self) -> int:
        """Number of targets."""
        return self._fitted("n_outputs_").n_outputs

    @property
    def n_samples_seen_(self) -> int:
        """Rows learned."""
        return self._fitted("n_samples_seen_").n_samples

    @property
    def weights_(self) -> Array:
        """W, of shape (D, n_outputs): a copy of the weights at this moment.

        Predictions are ``encoder_.transform(X) @ weights_ + intercept_``.
        """
        learner = self._fitted("weights_")
        with self.lock:
            return learner.weights

    @property
    def intercept_(self) -> Array:
        """The mean of the targets, of shape (n_outputs,), or zero if they are not centred."""
        learner = self._fitted("intercept_")
        with self.lock:
            return learner.intercept

    @property
    def ridge_(self) -> float:
        """The ridge in use: the one given, or the choice of ``"auto"`` at this moment."""
        return self._fitted("ridge_").ridge

    @property
    def prequential_error_(self) -> float:
        """Squared error before learning over the targets' variance; of all calls but the first."""
        return self._fitted("prequential_error_").prequential_error

    @property
    def prequential_(self) -> Curve:
        """The same over the life of the model: ``n_samples``, ``mse`` and ``nmse`` at each point.

        >>> import numpy as np
        >>> from losse import FTLRegressor
        >>> X = np.random.default_rng(0).normal(size=(500, 2))
        >>> model = FTLRegressor()
        >>> for start in range(0, 500, 50):
        ...     _ = model.partial_fit(X[start:start + 50], np.sin(X[start:start + 50]))
        >>> curve = model.prequential_
        >>> bool(curve.nmse[-1] < curve.nmse[0]), curve.mse.shape
        (True, (9, 2))
        """
        return self._fitted("prequential_").prequential

    @property
    def regret_(self) -> Array:
        """What it has cost not to know the future, per output.

        The sum of squared errors of all predictions before learning (in the first call, of zero,
        or of the call's mean if targets are centred), less that of the present weights on the same
        rows. Weighted, and discounted, like these. Rows that were unlearned keep what they cost.
        """
        learner = self._fitted("regret_")
        with self.lock:
            return learner.regret

    @property
    def certificate_(self) -> float:
        r"""Bound on how far the weights are from the best fit: objective / optimum - 1.

        Made when it is asked for, from the memories as they are: one product with A, and a
        factorisation if that is not enough to see less than a percent (not in models of more than
        8192 features, whose bound may be coarse). It allows for the rounding of the sums, and
        refers to `ridge_`, the ridge in use. Of centred targets it counts those of unit spread, and
        the ones beside them (`losse.ftl.targets`).

        ``solver="exact"`` and ``"dense"`` promise at most 0.01 after every call, as ``"auto"`` does
        up to 8192 features or 1500 samples; what they cannot keep they say, once, by a
        `losse.ftl.LeaderWarning`. ``"sparse"`` and larger models with ``"auto"`` promise nothing,
        and the figure says how near they are.

        >>> import numpy as np
        >>> from losse import FTLRegressor, LosseEncoder
        >>> X = np.random.default_rng(0).normal(size=(300, 2))
        >>> model = FTLRegressor(LosseEncoder(n_grids=5), solver="exact", ridge=1e-5)
        >>> bool(model.fit(X, np.sin(X)).certificate_ < 0.01)
        True
        """
        learner = self._fitted("certificate_")
        with self.lock:
            return learner.certificate

    def _fitted(self, name: str) -> Learner:
        if not hasattr(self, "_learner"):
            raise AttributeError(f"There is {name} only after fit or partial_fit.")
        return self._learner
