"""Sums of functions of one input each, which are linear between knots."""

from losse._kernels.jit import kernel


@kernel
def additive_outputs(Z, knots, ends, values, out):
    """Sum the functions of each row.

    The knots of input j end at ``ends[j]``, where those of the next begin; each has a row of
    ``values``, whose last row is the constant. Beyond its knots a function is constant.
    """
    for r in range(len(Z)):
        out[r] = values[-1]
        first = 0
        for j in range(len(ends)):
            low, high = first, ends[j] - 1
            z = min(max(Z[r, j], knots[low]), knots[high])
            while high - low > 1:
                middle = (low + high) // 2
                if knots[middle] <= z:
                    low = middle
                else:
                    high = middle
            share = (z - knots[low]) / (knots[high] - knots[low])
            for s in range(out.shape[1]):
                out[r, s] += (1.0 - share) * values[low, s] + share * values[high, s]
            first = ends[j]
