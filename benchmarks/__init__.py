"""Benchmarks of the source checkout: `losse bench <section>`."""

from typing import NamedTuple


class Section(NamedTuple):
    """A benchmark: its module within this package, and what it measures."""

    module: str
    summary: str


SECTIONS = {
    "core": Section("core.bench", "speed, memory and exactness against the paper's update"),
    "accuracy": Section("accuracy.bench", "errors of many learners on transitions and tables"),
    "world": Section("world.bench", "time of world models: updates and imagined steps"),
    "dyna": Section("dyna.bench", "time of the parts of a Dyna run"),
    "planning": Section("planning", "decisions per second of each planner and world model"),
    "latency": Section("latency.bench", "time of single calls, to the slowest of them"),
    "distributed": Section("distributed.bench", "learning on a cluster, and what a sync costs"),
    "jax": Section("functional", "losse.jax against the paper's listing, both compiled"),
    "river": Section("river.bench", "errors of River's regressors and Losse on River's streams"),
    "gridworld-dqn": Section("gridworld_dqn", "returns of a plain DQN for rewards and limits"),
}
"""All sections by their name on the command line."""
