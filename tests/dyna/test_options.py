"""The options of Dyna: one set of defaults and checks for every way to give them."""

import inspect
from dataclasses import asdict, fields

import pytest

pytest.importorskip("stable_baselines3")

from losse.cli.train.command import Settings
from losse.dyna import DynaOptions, DynaReplayBuffer, make_dyna
from losse.dyna.agents import AGENTS
from losse.dyna.models import MODELS
from losse.dyna.options import Training
from losse.dyna.search import SEARCH_CONTROLS
from tests.dyna.agents import Line, small

OTHER = DynaOptions(
    planning_steps=3,
    update_every=7,
    search_control="prioritised",
    horizon=2,
    real_share=0.25,
    greedy_share=0.75,
    sure_share=0.9,
    pool_steps=10,
    pool_rows=20,
    target_update_gradient_steps=50,
)


def flags(options):
    """The options as a command line has them."""
    named = asdict(options).items()
    return [part for name, value in named for part in (f"--{name.replace('_', '-')}", str(value))]


def test_all_ways_have_the_same_defaults():
    line = Line()
    buffer = DynaReplayBuffer(100, line.observation_space, line.action_space)
    assert buffer.options == DynaOptions().resolved(discrete=True)
    assert Training(env="CartPole-v1").dyna == DynaOptions()
    assert (
        Settings.read(["--env", "FrozenLake-v1"]).training.dyna == DynaOptions()
    )  # it has no preset


def test_every_option_arrives_whichever_way_it_is_given():
    assert not [p.name for p in fields(OTHER) if getattr(OTHER, p.name) == p.default]
    one_by_one = small(**asdict(OTHER)).replay_buffer.options
    whole = make_dyna(type(small()), Line(), options=OTHER, buffer_size=100).replay_buffer.options
    read = Settings.read(["--env", "CartPole-v1", *flags(OTHER)]).training.dyna
    assert one_by_one == whole == read == OTHER


def test_a_schedule_of_horizons_is_read_from_the_command_line():
    arguments = ["--env", "CartPole-v1", "--horizon", "20", "40", "1", "5"]
    assert Settings.read(arguments).training.dyna.horizon == (20, 40, 1, 5)


def test_single_options_take_precedence_over_the_whole():
    agent = small(options=OTHER, horizon=4)
    assert agent.replay_buffer.options.horizon == 4
    assert agent.replay_buffer.options.greedy_share == OTHER.greedy_share


@pytest.mark.parametrize(
    ("option", "names"),
    [("agent", AGENTS), ("model", MODELS), ("search_control", SEARCH_CONTROLS)],
)
def test_the_command_line_offers_what_the_registries_have(option, names, capsys):
    for name in names:
        settings = Settings.read(["--env", "x", f"--{option.replace('_', '-')}", name])
        owner = settings.training.dyna if option == "search_control" else settings.training
        assert getattr(owner, option) == name
    with pytest.raises(SystemExit):
        Settings.read(["--env", "x", f"--{option.replace('_', '-')}", "magic"])
    shown = capsys.readouterr().err
    assert all(name in shown for name in names)


def test_make_dyna_documents_every_option():
    text = inspect.getdoc(make_dyna)
    for part in fields(DynaOptions):
        shown = f'"{part.default}"' if isinstance(part.default, str) else str(part.default)
        assert f"``{part.name}`` (" in " ".join(text.split())
        assert shown in text
