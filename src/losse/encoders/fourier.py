"""Random Fourier features: a dense encoder."""

import numpy as np

from losse.encoders.components import ComponentEncoder
from losse.encoders.features import DenseFeatures
from losse.typing import Array


class FourierEncoder(ComponentEncoder):
    r"""Random Fourier features, :math:`\sqrt{2 / D} \cos(P x + b)` (section 4.1).

    Inner products approximate a Gaussian kernel; every feature is active for every input.

    Parameters
    ----------
    n_components
        Number of features, D.
    scale
        Standard deviation of the projection, times sqrt(n_features): large for small details.
    scaling, seed
        As in `LosseEncoder`.

    Examples
    --------
    >>> import numpy as np
    >>> from losse import FourierEncoder
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> FourierEncoder(n_components=80).fit_transform(X).shape
    (100, 80)

    References
    ----------
    Rahimi and Recht, "Random Features for Large-Scale Kernel Machines", NeurIPS 2007.
    """

    def _draw_offset(self, rng: np.random.Generator) -> Array:
        return rng.uniform(0.0, 2.0 * np.pi, size=self.n_components)

    def encode(self, X: Array) -> DenseFeatures:
        """The features of checked rows (float64, C order, finite, of the fitted width)."""
        H = self._shifted(X)
        np.cos(H, out=H)
        H *= np.sqrt(2.0 / self.n_components)
        return DenseFeatures(H)
