"""One step of Adam (Kingma and Ba) on all weights, in the precision of the weights."""

import math

import numpy as np

from losse._kernels.jit import kernel

_MEAN, _SQUARE, _TINY = 0.9, 0.999, 1e-8


@kernel
def adam_step(w, mean, square, gradient, rate, step):
    """Move the weights, and clear the gradient for the next minibatch; all arrays are flat.

    ``step`` counts from 1. The corrections for the zeros that the two running averages start from
    are those of section 2 of Adam's paper, folded into the step size.

    >>> w, mean, square, gradient = np.zeros((4, 1))
    >>> gradient[0] = 5.0
    >>> adam_step(w, mean, square, gradient, 0.1, 1)
    >>> w.round(6), gradient
    (array([-0.1]), array([0.]))
    """
    number = w.dtype.type
    root = math.sqrt(1.0 - _SQUARE**step)
    size, tiny = number(rate * root / (1.0 - _MEAN**step)), number(_TINY * root)
    decay, keep = number(_MEAN), number(1.0 - _MEAN)
    decay_square, keep_square = number(_SQUARE), number(1.0 - _SQUARE)
    for k in range(len(w)):
        g = gradient[k]
        m = decay * mean[k] + keep * g
        v = decay_square * square[k] + keep_square * g * g
        mean[k], square[k], gradient[k] = m, v, number(0.0)
        w[k] -= size * m / (np.sqrt(v) + tiny)
