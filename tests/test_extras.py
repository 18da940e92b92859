"""Extras: each installs what its part of the library needs, and errors name the right one."""

import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

from losse.extras import EXTRAS, import_on_use, missing, require

ROOT = Path(__file__).parents[1]
DECLARED = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
    "optional-dependencies"
]


def distributions(extra):
    """Names of all distributions that an extra asks for, those of its own extras included."""
    found = set()
    for requirement in DECLARED[extra]:
        name, extras = re.match(r"([\w-]+)(?:\[([\w,]+)\])?", requirement).groups()
        found |= {name}
        if name == "losse":
            found = found.union(*map(distributions, extras.split(",")))
    return found


@pytest.fixture(scope="module")
def installed():
    """Distributions by the packages that they install; to read them takes half a second."""
    return metadata.packages_distributions()


@pytest.mark.parametrize("package", EXTRAS)
def test_the_extra_of_a_package_installs_it(package, installed):
    names = {name.replace("_", "-") for name in installed[package]}
    assert distributions(EXTRAS[package]) & names


def test_errors_name_extras_that_exist():
    sources = (path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))
    named = {extra for source in sources for extra in re.findall(r"extra=\"(\w+)\"", source)}
    assert named | set(EXTRAS.values()) <= set(DECLARED)


def test_all_has_everything_and_dev_more():
    for_users = [extra for extra in DECLARED if extra not in ("bench", "dev", "docs")]
    everything = set().union(*map(distributions, for_users))
    assert distributions("all") | {"losse"} == everything
    assert distributions("dev") > everything | distributions("bench") | distributions("docs")


def test_every_requirement_is_pinned():
    pins = (ROOT / "constraints.txt").read_text(encoding="utf-8").lower().replace("_", "-")
    pinned = set(re.findall(r"^([\w.-]+)==", pins, flags=re.MULTILINE))
    assert distributions("dev") - {"losse"} <= pinned


def test_a_losse_world_model_needs_no_jax():
    code = """
import sys
class Absent:
    def find_spec(self, name, *_):
        if name in ("flax", "jax", "matplotlib", "optax", "stable_baselines3", "torch", "tyro"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Absent())
from gymnasium.spaces import Box, Discrete
from losse.world import ImaginedEnv, LosseWorldModel, PerfectModel, evaluate, make_world_model
model = LosseWorldModel(Box(0, 1, (2,)), Discrete(2))
model.update([[0.5, 0.5]], [0], [1.0], [[0.6, 0.5]], [False])
model.step([[0.5, 0.5]], [0])
try:
    make_world_model("full-replay", Box(0, 1, (2,)), Discrete(2))
except ModuleNotFoundError as error:
    print(error)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "NeuralWorldModel needs 'jax': pip install 'losse[neural]'" in run.stdout


def test_the_error_says_what_works_from_a_checkout():
    error = missing("train", "sbx.sac", otherwise="or choose --backend sb3")
    assert error.name == "sbx.sac"
    assert str(error) == (
        "train needs 'sbx': pip install 'losse[rl]', or in a checkout pip install -e '.[rl]'; "
        "or choose --backend sb3"
    )


def test_only_packages_that_are_absent_are_asked_for():
    require("this", "numpy")
    with pytest.raises(ModuleNotFoundError, match=r"this needs 'nowhere': .*losse\[all\]"):
        require("this", "numpy", "nowhere")


def test_names_are_imported_on_use():
    attribute = import_on_use("losse", {"fail": "cli", "absent": "no_such_module"})
    assert attribute("fail").__module__ == "losse.cli"
    with pytest.raises(AttributeError, match="has no attribute 'other'"):
        attribute("other")
    with pytest.raises(ModuleNotFoundError, match=r"^No module named 'losse.no_such_module'$"):
        attribute("absent")
