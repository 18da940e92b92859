"""The agent of figure 1: a Q-learner with a table, whose visits narrow as it improves."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from losse.world.transitions import Transitions

LEARNING_RATE = 0.5
DISCOUNT = 0.99

Place = NDArray[np.floating]
Step = tuple[int, int, float, int, bool]
"""Cell, action, reward, next cell, terminated."""


class QTable:
    """Action values of the cells of a square, learned by one-step Q-learning.

    Values start at zero. Of actions with the same value the one that was tried least comes first,
    so that before any reward is known the cells are explored evenly.

    >>> table = QTable(cells=10, n_actions=4)
    >>> table.cell([0.42, 0.05]), table.cell([1.0, 1.0])
    (40, 99)
    >>> table.learn((40, 1, 1.0, 50, False))
    >>> table.values[40]
    array([0. , 0.5, 0. , 0. ])
    """

    def __init__(self, cells: int, n_actions: int) -> None:
        self.cells = cells
        self.values = np.zeros((cells * cells, n_actions))
        self._tries = np.zeros((cells * cells, n_actions))

    def cell(self, place: Any) -> int:
        """The number of the cell that a point of the unit square lies in."""
        column, row = (min(int(self.cells * x), self.cells - 1) for x in place)
        return column * self.cells + row

    def act(self, cell: int, epsilon: float, rng: np.random.Generator) -> int:
        """The best action, or with probability `epsilon` any."""
        n_actions = self.values.shape[1]
        if rng.random() < epsilon:
            action = int(rng.integers(n_actions))
        else:
            best = self.values[cell] == self.values[cell].max()
            rarity = self._tries[cell] + rng.random(n_actions)
            action = int(np.argmin(np.where(best, rarity, np.inf)))
        self._tries[cell, action] += 1
        return action

    def learn(self, step: Step) -> None:
        """One update of Q-learning."""
        cell, action, reward, after, terminated = step
        future = 0.0 if terminated else DISCOUNT * self.values[after].max()
        self.values[cell, action] += LEARNING_RATE * (reward + future - self.values[cell, action])


def explore(
    env: Any, steps: int, *, cells: int, epsilon: tuple[float, float], seed: int
) -> Transitions:
    """Steps of a Q-learner in `env` from its very first on.

    It learns from every step, and at the end of an episode from all of its steps again, the last
    one first: a goal is known along the whole way at once, and the visits narrow within thousands
    of steps instead of hundreds of thousands.

    Parameters
    ----------
    env
        A Gymnasium environment with observations in the unit square and discrete actions.
    steps
        Number of steps over all episodes.
    cells
        Cells of the table along each side of the square.
    epsilon
        Share of random actions, falling evenly from the first to the last step.
    seed
        Of environment and agent.

    Examples
    --------
    >>> import gymnasium, losse.envs
    >>> env = gymnasium.make("losse/Gridworld-v0", reward="sparse")
    >>> stream = explore(env, 300, cells=20, epsilon=(1.0, 0.1), seed=0)
    >>> stream.obs.shape, stream.actions.shape
    ((300, 2), (300,))
    """
    rng = np.random.default_rng(seed)
    table = QTable(cells, int(env.action_space.n))
    rows: list[tuple[Place, int, float, Place, bool]] = []
    episode: list[Step] = []
    obs, _ = env.reset(seed=seed)
    for share in np.linspace(*epsilon, steps):
        cell = table.cell(obs)
        action = table.act(cell, share, rng)
        after, reward, terminated, truncated, _ = env.step(action)
        rows.append((obs, action, reward, after, terminated))
        episode.append((cell, action, reward, table.cell(after), terminated))
        table.learn(episode[-1])
        obs = after
        if terminated or truncated:
            for step in reversed(episode):
                table.learn(step)
            episode = []
            obs, _ = env.reset()
    return Transitions.from_steps(rows)
