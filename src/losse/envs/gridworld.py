"""The Gridworld of the paper's figure 1 as a Gymnasium environment."""

from __future__ import annotations

from typing import Any, Literal

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from losse.envs.gridworld_dynamics import N_ACTIONS, START_SIZE, Layout, at_goal, in_barrier, move

Observation = NDArray[np.float32]

PIXELS = 400
RADIUS = 0.015
FLOOR, WALL = (255, 255, 255), (90, 90, 90)
START, GOAL, AGENT = (240, 228, 66), (0, 158, 115), (0, 114, 178)


class Gridworld(gymnasium.Env[Observation, np.int64]):
    """
    ## Description

    A point moves about the unit square, one step at a time, from the lower left corner to the goal
    in the upper right. A barrier divides the square; its gap is the only way through. Steps have a
    random length, so that the positions are continuous.

    It is the Gridworld of figure 1 and section 5.1 of [Liu et al.
    (2024)](https://arxiv.org/abs/2401.13034), a variant of that of Peng and Williams (1993). The
    paper gives no constants; these are of the continuous grid worlds in later work on Dyna. As a
    policy improves it visits less and less of the square, and a world model that is learned online
    may forget the rest.

    ## Observation Space

    A `Box` of two `float32`:

    | Num | Observation | Min | Max |
    |-----|-------------|-----|-----|
    | 0   | x, to the right | 0 | 1 |
    | 1   | y, upwards      | 0 | 1 |

    ## Action Space

    `Discrete(4)`: 0 up, 1 right, 2 down, 3 left.

    ## Transition Dynamics

    A move goes `step_size` plus noise in the action's direction; the noise is normal with mean 0
    and standard deviation `noise`. A move that would end in the barrier, *0.5 <= x <= 0.6* except
    for *gap[0] <= y <= gap[1]*, ends where it began. A move that would leave the square ends at its
    edge. `losse.envs.gridworld_dynamics.move` is the same for arrays of positions and actions.

    The barrier is 0.1 wide: steps longer than that can jump over it.

    ## Reward

    * `reward="step"` (default): -1 for every step, 0 for the one that reaches the goal.
    * `reward="sparse"`: 1 for the step that reaches the goal, 0 for all others.

    ## Starting State

    Uniform in *[0, 0.05] x [0, 0.05]*, or `reset(options={"start": (x, y)})`.

    ## Episode End

    1. Termination: *x > 0.95 and y > 0.95*. The shortest way takes about 38 steps.
    2. Truncation: after 2000 steps (of the registered environment; `gymnasium.make` takes another
       `max_episode_steps`).

    ## Arguments

    * `render_mode`: `"rgb_array"`. With `"human"`, `gymnasium.make` puts Gymnasium's
      `HumanRendering` around it, which opens a window (it needs pygame).
    * `reward`: `"step"` or `"sparse"`.
    * `barrier`: whether there is one.
    * `gap`: where it is open, *(low, high)* in y.
    * `noise`: standard deviation of the length of a step.
    * `step_size`: mean length of a step.

    ```python
    >>> import gymnasium
    >>> import losse.envs
    >>> env = gymnasium.make("losse/Gridworld-v0", reward="sparse", gap=(0.3, 0.6))
    >>> obs, info = env.reset(seed=0, options={"start": (0.2, 0.2)})
    >>> obs, reward, terminated, truncated, info = env.step(1)
    >>> obs, reward, terminated
    (array([..., 0.2 ], dtype=float32), 0.0, False)

    ```

    ## How the defaults were chosen

    So that a plain DQN learns the way within tens of thousands of steps. `losse bench
    gridworld_dqn` trains that of SBX for 60,000 steps with either reward and with limits of 500 and
    2000 steps. With a reward for every step all agents knew the way in the end, some after 27,000
    steps, some after 60,000, with both limits alike. With the sparse reward one of four did: the
    goal is rarely found by chance, and before that there is nothing to learn from. That is two
    seeds each, and the agent's settings matter: they were found in trials, where others did not
    learn. The limit is that of the earlier work. Records and table:
    `results/bench/gridworld-dqn`.

    ## Version History

    * v0: Initial version
    """

    metadata: dict[str, Any] = {  # noqa: RUF012 - Gymnasium declares it so
        "render_modes": ["rgb_array"],
        "render_fps": 30,
    }

    def __init__(
        self,
        render_mode: Literal["rgb_array"] | None = None,
        *,
        reward: Literal["step", "sparse"] = "step",
        barrier: bool = True,
        gap: tuple[float, float] = (0.4, 0.5),
        noise: float = 0.01,
        step_size: float = 0.05,
    ) -> None:
        if render_mode not in (None, "rgb_array"):
            raise ValueError(
                f"render_mode must be 'rgb_array' or None, got {render_mode!r}; 'human' is for "
                "gymnasium.make, which adds a window"
            )
        if reward not in ("step", "sparse"):
            raise ValueError(f"reward must be 'step' or 'sparse', got {reward!r}")
        low, high = gap
        if not 0 <= low < high <= 1:
            raise ValueError(f"gap must be (low, high) with 0 <= low < high <= 1, got {gap}")
        if not 0 <= noise < np.inf:
            raise ValueError(f"noise must be a deviation of 0 or more, got {noise}")
        if not 0 < step_size <= 1:
            raise ValueError(f"step_size must be above 0 and at most 1, got {step_size}")
        self.render_mode = render_mode
        self.reward = reward
        self.noise = noise
        self.layout = Layout(bool(barrier), (float(low), float(high)), float(step_size))
        self.observation_space = spaces.Box(0.0, 1.0, shape=(2,), dtype=np.float32)
        self.action_space = spaces.Discrete(N_ACTIONS)
        self._position: NDArray[np.float64] | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin an episode, where the start is or at `options={"start": (x, y)}`."""
        super().reset(seed=seed)
        position = self.np_random.uniform(0.0, START_SIZE, size=2)
        if options and "start" in options:
            position = _start(options["start"], self.layout)
        self._position = position
        return self._observe(position), {}

    def step(self, action: np.int64) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Move once. An action outside the action space raises ValueError."""
        if self._position is None:
            raise gymnasium.error.ResetNeeded("call reset before step")
        if not self.action_space.contains(action):
            raise ValueError(f"action must be an integer from 0 to 3, got {action!r}")
        noise = self.np_random.normal(0.0, self.noise)
        self._position = move(self._position, action, noise, self.layout)
        arrived = bool(at_goal(self._position))
        reward = float(arrived) if self.reward == "sparse" else float(arrived) - 1.0
        return self._observe(self._position), reward, arrived, False, {}

    def render(self) -> NDArray[np.uint8] | None:
        """The picture of the present state, of shape (PIXELS, PIXELS, 3)."""
        if self.render_mode is None:
            gymnasium.logger.warn(
                "render() shows nothing without a render_mode; "
                "give one when the environment is made, such as render_mode='rgb_array'"
            )
            return None
        if self._position is None:
            raise gymnasium.error.ResetNeeded("call reset before render")
        return paint(self._position, self.layout)

    def _observe(self, position: NDArray[np.float64]) -> Observation:
        return position.astype(np.float32)


def _start(given: Any, layout: Layout) -> NDArray[np.float64]:
    start = np.array(given, dtype=np.float64)
    outside = start.shape != (2,) or not ((start >= 0) & (start <= 1)).all()
    if outside or in_barrier(start, layout):
        raise ValueError(
            f"start must be a point (x, y) of the unit square outside the barrier, got {given!r}"
        )
    return start


def paint(position: NDArray[np.float64], layout: Layout) -> NDArray[np.uint8]:
    """The square with the agent in it, of shape (PIXELS, PIXELS, 3); row 0 is the top.

    >>> picture = paint(np.array([0.5, 0.45]), Layout())
    >>> picture.shape, tuple(picture[0, -1].tolist()) == GOAL
    ((400, 400, 3), True)
    """
    centres = (np.arange(PIXELS) + 0.5) / PIXELS
    places = np.stack(np.meshgrid(centres, centres[::-1]), axis=-1)
    picture = np.full((PIXELS, PIXELS, 3), FLOOR, dtype=np.uint8)
    picture[(places < START_SIZE).all(axis=-1)] = START
    picture[at_goal(places)] = GOAL
    picture[in_barrier(places, layout)] = WALL
    picture[((places - position) ** 2).sum(axis=-1) <= RADIUS**2] = AGENT
    return picture
