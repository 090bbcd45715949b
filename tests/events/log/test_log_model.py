"""Both adapters against the plainest reading of the rules, on commands that hypothesis makes up."""

import asyncio
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.broker import Broker
from tests.events.log_model import COMMANDS, TIMED_COMMANDS, Command, run_commands
from tests.events.setting import Setting, run_on_jetstream, run_simulated
from tests.simulated.store import matches, overlap


@settings(max_examples=200, deadline=None)
@given(TIMED_COMMANDS)
def test_without_faults_it_is_a_list_with_fences_and_a_dedupe_window(commands: list[Command]) -> None:
    async def body(setting: Setting) -> None:
        await run_commands(setting.log, commands, asyncio.sleep)

    run_simulated(body)


@pytest.fixture(scope="module")
def shared_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with Broker(tmp_path_factory.mktemp("shared") / "broker", sync="2m") as running:
        yield running


@settings(max_examples=25, deadline=None)
@given(commands=COMMANDS)
def test_a_real_broker_is_the_same_list(shared_broker: Broker, commands: list[Command]) -> None:
    async def body(setting: Setting) -> None:
        await run_commands(setting.log, commands, asyncio.sleep)

    run_on_jetstream(shared_broker, body)


@given(
    st.lists(st.sampled_from(["log", "a", "b", "*"]), min_size=1, max_size=4),
    st.booleans(),
    st.lists(st.sampled_from(["log", "a", "b", "*"]), min_size=1, max_size=4),
    st.booleans(),
)
def test_filters_overlap_exactly_when_a_subject_matches_both(
    one: list[str], open_one: bool, other: list[str], open_other: bool
) -> None:
    left = ".".join([*one, ">"] if open_one else one)
    right = ".".join([*other, ">"] if open_other else other)
    tokens = ["log", "a", "b"]
    subjects: list[list[str]] = [[]]
    every: list[str] = []
    for _ in range(5):
        subjects = [[*subject, token] for subject in subjects for token in tokens]
        every += [".".join(subject) for subject in subjects]
    assert overlap(left, right) == any(matches(left, subject) and matches(right, subject) for subject in every)
