"""A running set that is left alone for a moment: a thought comes to the agent, and comes to mind in a later answer."""

import json
from collections.abc import Iterator

import pytest

from tests.deploy.waiting import until
from tests.e2e.live import Live

AGENT = ("--agent", "felix")


@pytest.fixture(scope="module")
def idle(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """A sealed set whose agents drift three times a second."""
    running = Live(tmp_path_factory.mktemp("idle"), "--seal", "--set", "drift.interval_ms=300")
    yield running
    running.stop()


def thoughts(idle: Live, agent: str = "felix") -> list[dict[str, object]]:
    """Return the thoughts of an agent, oldest first."""
    found: list[dict[str, object]] = json.loads(idle.run("drift", "show", agent, "--json").stdout)["thoughts"]
    return found


def test_a_thought_comes_to_an_idle_agent_and_to_mind_in_a_later_answer_of_another_session(idle: Live) -> None:
    idle.ask("What is the population of Lima in Peru?", *AGENT, "--session", "morning")
    until(lambda: bool(thoughts(idle)), "a thought has come to the idle agent")
    first = thoughts(idle)[0]
    assert (first["session"], first["by"]) == ("morning", "composer")
    assert first["activation"] == 0.7

    later = idle.ask("Tell me about Lima and Peru", *AGENT, "--session", "evening")
    told = idle.run("why", later["exchange"]).stdout
    assert "gist drift:" in told
    assert "An idle " in told

    log = idle.run("log", "tail", "--since", "1", "--no-follow", "--topic", "forged_id.drift.>", "--json").stdout
    topics = [json.loads(line)["topic"].removeprefix("forged_id.drift.") for line in log.splitlines()]
    assert {"scheduled", "started", "thought"} <= {*topics}


def test_its_thoughts_are_forgotten_with_the_session_that_they_are_about(idle: Live) -> None:
    secret = ("--agent", "cleo")
    idle.ask("The vault opens with swordfish and mackerel", *secret, "--session", "secret")

    until(lambda: bool(thoughts(idle, "cleo")), "a thought has come to the agent")
    idle.run("forget", "--session", "secret", *secret, "--by", "ann", "--why", "asked to", "--yes")
    later = idle.ask("What of the swordfish and the vault?", *secret, "--session", "other")
    told = idle.run("why", later["exchange"]).stdout
    assert "nothing came to mind" in told
    assert "drift:" not in told
    assert "mackerel" not in idle.run("drift", "show", "cleo", "--json").stdout


def test_every_drift_is_decided_again_to_the_byte(idle: Live) -> None:
    idle.ask("What is the population of Quito in Ecuador?", "--agent", "maria")
    until(lambda: bool(thoughts(idle, "maria")), "a thought has come to the agent")
    (replayed,) = idle.rows("replay", "--verify", "--json")
    assert replayed["clean"] is True
    assert replayed["coverage"]["drift"]["identical"] > 3
    assert replayed["coverage"]["drift"]["different"] == 0
