"""The paper's algorithms written as plainly as possible, to compare with."""

import numpy as np


def algorithm_2(Phi, Y, ridge):
    """Sparse online learning, one row at a time; returns the weights after the last row."""
    n, D = Phi.shape
    A, B, W = np.zeros((D, D)), np.zeros((D, Y.shape[1])), np.zeros((D, Y.shape[1]))
    for t in range(n):
        s = Phi.indices[Phi.indptr[t] : Phi.indptr[t + 1]]
        phi = Phi.data[Phi.indptr[t] : Phi.indptr[t + 1]]
        A[np.ix_(s, s)] += np.outer(phi, phi)
        B[s] += np.outer(phi, Y[t])
        others = A[s] @ W - A[np.ix_(s, s)] @ W[s]
        system = A[np.ix_(s, s)] + ridge * (t + 1) * np.eye(len(s))
        W[s] = np.linalg.solve(system, B[s] - others)
    return W


def leader(Phi, Y, ridge, weights=None):
    """The minimiser of sum w ||y - W^T phi||^2 + ridge * sum w * ||W||^2."""
    w = np.ones(len(Y)) if weights is None else np.asarray(weights)
    system = (Phi * w[:, None]).T @ Phi + ridge * w.sum() * np.eye(Phi.shape[1])
    return np.linalg.solve(system, (Phi * w[:, None]).T @ Y)


def accurate_leader(Phi, Y, ridge, weights=None):
    """The same minimiser by a QR factorisation of the rows, which loses half as many digits."""
    w = np.ones(len(Y)) if weights is None else np.asarray(weights)
    D, root = Phi.shape[1], np.sqrt(w)[:, None]
    rows = np.vstack([Phi * root, np.sqrt(ridge * w.sum()) * np.eye(D)])
    size = np.linalg.norm(rows, axis=0)
    Q, R = np.linalg.qr(rows / size)
    return np.linalg.solve(R, Q[: len(Y)].T @ (Y * root)) / size[:, None]


def recursive_leader(batches, penalty):
    """Appendix B: weights by the recursive (Woodbury) form for a fixed penalty."""
    R = W = None
    for Phi, Y in batches:
        if R is None:
            R, W = np.eye(Phi.shape[1]) / penalty, np.zeros((Phi.shape[1], Y.shape[1]))
        gain = np.linalg.inv(np.eye(len(Phi)) + Phi @ R @ Phi.T)
        R = R - R @ Phi.T @ gain @ Phi @ R
        W = W + R @ Phi.T @ (Y - Phi @ W)
    return W


def objective(Phi, Y, W, ridge, weights=None):
    """What the leader minimises."""
    w = np.ones(len(Y)) if weights is None else np.asarray(weights)
    return (w[:, None] * (Y - Phi @ W) ** 2).sum() + ridge * w.sum() * (W**2).sum()


def stream(n, n_features=4, n_outputs=3, seed=0):
    """A smooth random walk and non-linear targets: consecutive rows are alike."""
    rng = np.random.default_rng(seed)
    X = np.cumsum(rng.normal(scale=0.15, size=(n, n_features)), axis=0)
    X = 2 * np.sin(X)
    mix = rng.normal(size=(n_features, n_outputs))
    Y = np.sin(1.5 * X @ mix) + 0.3 * (X**2) @ mix + rng.normal(scale=0.05, size=(n, n_outputs))
    return X, Y
