"""Random ReLU features: a dense encoder that is often, but not surely, sparse."""

import numpy as np

from losse.encoders.components import ComponentEncoder
from losse.encoders.features import DenseFeatures
from losse.typing import Array


class ReLUEncoder(ComponentEncoder):
    r"""Random ReLU features, :math:`\sqrt{2 / D} \max(P x + b, 0)` (section 4.1).

    About half of the features are zero, but which and how many depends on the input, so
    nothing is saved: they are kept as a dense matrix.

    Parameters
    ----------
    n_components
        Number of features, D.
    scale
        Standard deviation of the offsets, and of the projection times sqrt(n_features).
    scaling, seed
        As in `LosseEncoder`.

    Examples
    --------
    >>> import numpy as np
    >>> from losse import ReLUEncoder
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> phi = ReLUEncoder(n_components=80).fit_transform(X)
    >>> phi.shape, bool(phi.min() == 0)
    ((100, 80), True)

    References
    ----------
    Sun, Gilbert and Tewari, "On the Approximation Properties of Random ReLU Features", 2018.
    """

    def _draw_offset(self, rng: np.random.Generator) -> Array:
        return np.asarray(self.scale * rng.normal(size=self.n_components))

    def encode(self, X: Array) -> DenseFeatures:
        """The features of checked rows (float64, C order, finite, of the fitted width)."""
        H = self._shifted(X)
        np.maximum(H, 0.0, out=H)
        H *= np.sqrt(2.0 / self.n_components)
        return DenseFeatures(H)
