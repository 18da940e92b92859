"""Coloured noise: random sequences of actions that change slowly."""

from functools import cache

import numpy as np

from losse.typing import Array


def coloured(rng: np.random.Generator, exponent: float, n: int, horizon: int, width: int) -> Array:
    """Sequences of unit variance whose power falls with the frequency f as f ** -exponent.

    White noise (exponent 0) changes its mind at every step, and its effects cancel. Coloured noise
    (about 2) pushes in one direction for a while, as most tasks need it (Pinneri et al., 2020).
    Frequencies are drawn independently and transformed back (Timmer and Koenig, 1995).

    Parameters
    ----------
    rng
        Where random numbers come from.
    exponent
        Of the power spectrum.
    n, horizon, width
        Shape of the result.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> white, slow = (coloured(rng, exponent, 1000, 20, 1) for exponent in (0.0, 2.0))
    >>> [round(float((np.diff(x, axis=1) ** 2).mean()), 1) for x in (white, slow)]
    [2.0, 0.4]
    """
    if exponent == 0 or horizon == 1:
        return rng.standard_normal((n, horizon, width))
    scale = _scale(exponent, horizon)
    size = (2, n, width, len(scale))
    real, imaginary = rng.standard_normal(size) * scale
    if horizon % 2 == 0:
        imaginary[..., -1] = 0.0  # the highest frequency has no phase
        real[..., -1] *= np.sqrt(2)
    imaginary[..., 0] = 0.0
    real[..., 0] *= np.sqrt(2)
    return np.fft.irfft(real + 1j * imaginary, horizon).transpose(0, 2, 1)


@cache
def _scale(exponent: float, horizon: int) -> Array:
    """Amplitude of each frequency, for sequences of unit variance."""
    frequencies = np.fft.rfftfreq(horizon)
    frequencies[0] = frequencies[1]  # the mean is as strong as the slowest wave
    amplitude = frequencies ** (-exponent / 2)
    # By Parseval: every inner frequency stands for two, with two parts each.
    power = 2 * (2 * amplitude**2)
    power[0] /= 2
    if horizon % 2 == 0:
        power[-1] /= 2
    scale: Array = amplitude * horizon / np.sqrt(power.sum())
    scale.flags.writeable = False
    return scale
