"""The plan of `losse bench accuracy`: who goes how far on which stream."""

import pytest
from benchmarks.accuracy.contenders.entries import ENTRIES
from benchmarks.accuracy.plan import SMALL, WHERE, checkpoints, plan


@pytest.mark.parametrize("preset", ["quick", "full"])
def test_the_plan_has_everyone_everywhere(preset):
    runs = plan(preset, tuple(WHERE), WHERE["random"], tuple(ENTRIES), seeds=2)
    assert len({r.name for r in runs}) == len(runs)
    assert {r.method for r in runs if r.setting == "Ant-v5 random"} == set(ENTRIES)
    assert {r.seed for r in runs} == {0, 1}
    for run in runs:
        at = run.options["checkpoints"]
        assert at == sorted(set(at))
        assert at[-1] <= run.options["rows"]


def test_tasks_are_tested_when_one_ends():
    ends = {5000, 10_000, 15_000, 20_000}
    assert ends <= set(checkpoints("tasks", "Hopper-v5", "recommended", "full"))
    assert checkpoints("tasks", "Hopper-v5", "full-replay", "full") == [20_000]


def test_the_network_is_compared_where_it_is_promised():
    for environment in WHERE["random"]:
        assert {3000, 10_000} <= set(checkpoints("random", environment, "full-replay", "full"))
    assert checkpoints("random", "Hopper-v5", "full-replay", "full")[-1] == 50_000
    assert checkpoints("random", "Hopper-v5", "full-replay", "quick")[-1] == 3000


def test_small_environments_need_no_more():
    assert checkpoints("random", SMALL[0], "recommended", "full")[-1] == 10_000
