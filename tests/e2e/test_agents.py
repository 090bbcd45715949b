"""Agents of a real set: two users, who have one each, do not learn of each other, and what an idle one thinks of comes
to mind in a later answer."""

import json
from collections.abc import Iterator

import httpx
import pytest

from tests.deploy.waiting import until
from tests.e2e.live import Live

FELIX = ("--agent", "felix")
TOLD, ASKED = "My name is Ada and I work for the harbour", "Who do I work for?"


@pytest.fixture(scope="module")
def apart(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """A sealed set with an agent for each user, who all drift three times a second."""
    flags = ("--set", "gateway.agent_per=user", "--set", "drift.interval_ms=300")
    running = Live(tmp_path_factory.mktemp("apart"), "--seal", *flags)
    yield running
    running.stop()


def agents_of(live: Live, exchange: str) -> set[str]:
    rows = live.rows("log", "export", "--exchange", exchange, "-o", "-")
    return {row[next(name for name in row if name.endswith("agent"))] for row in rows}


def test_a_user_is_reminded_in_every_session_and_another_in_none(apart: Live) -> None:
    told = apart.ask(TOLD, "--user", "ada", "--session", "lunch")
    again = apart.ask(ASKED, "--user", "ada", "--session", "supper")
    other = apart.ask(ASKED, "--user", "bob", "--session", "breakfast")
    assert "harbour" in again["response"]
    assert "harbour" not in other["response"]
    assert agents_of(apart, told["exchange"]) == agents_of(apart, again["exchange"]) == {"user:ada"}
    assert agents_of(apart, other["exchange"]) == {"user:bob"}


def test_so_it_is_with_what_is_fed_and_said_in_a_chat(apart: Live) -> None:
    def answers(*lines: dict[str, str]) -> list[str]:
        text = "".join(f"{json.dumps(line)}\n" for line in lines)
        done = apart.run("feed", "-", "--format", "jsonl", "--concurrency", "1", stdin=text)
        assert "several sessions went to the agent default" not in done.stderr
        return [json.loads(line)["response"] for line in done.stdout.splitlines()]

    answers({"user": "eve", "session": "e1", "text": "My name is Eve and I work for the lighthouse"})
    own, other = answers(*({"user": user, "session": f"{user}2", "text": ASKED} for user in ("eve", "mallory")))
    # Whoever names no user has the session's agent, also where that session is known to another.
    (nobody,) = answers({"session": "e1", "text": ASKED})
    (talked,) = apart.rows("chat", "--user", "mallory", "--json", stdin=f"{ASKED}\n")
    assert ["lighthouse" in each for each in (own, other, nobody, talked["response"])] == [True, False, False, False]


def test_over_http_a_user_does_not_see_the_loops_of_another(apart: Live) -> None:
    run = json.loads((apart.data / "run.json").read_text())
    body = {"loop_id": "apart_001", "reflection_status": "done", "alignment_score": 0.7, "drift_score": 0.3}
    with httpx.Client(base_url=run["http"], timeout=60, trust_env=False) as client:
        done = client.post("/orchestrator/loop-complete", json=body, headers={"X-Neuraxis-User": "ada"})
        assert done.status_code == 200
        status = "/orchestrator/guardrails-status/apart_001"
        assert client.get(status, headers={"X-Neuraxis-User": "ada"}).status_code == 200
        assert client.get(status, headers={"X-Neuraxis-User": "bob"}).status_code == 404
        assert client.get(status).status_code == 400


def test_doctor_says_which_agents_there_are(apart: Live) -> None:
    found = {row["check"]: row for row in apart.rows("doctor", "--json")}
    assert found["agents"]["detail"] == "inputs that name no agent have one for each user"


def test_a_feed_of_several_sessions_to_everybodys_agent_is_warned_of(live: Live) -> None:
    text = "Hello there!\nGood morning!\n"
    assert (
        "several sessions went to the agent default" in live.run("feed", "-", "--session-per-line", stdin=text).stderr
    )
    for flags in (["--session", "one"], ["--session-per-line", "--agent", "default"]):
        assert "several sessions" not in live.run("feed", "-", *flags, stdin=text).stderr


def thoughts(apart: Live, agent: str = "felix") -> list[dict[str, object]]:
    """Return the thoughts of an agent, oldest first."""
    found: list[dict[str, object]] = json.loads(apart.run("drift", "show", agent, "--json").stdout)["thoughts"]
    return found


def test_a_thought_comes_to_an_idle_agent_and_to_mind_in_a_later_answer_of_another_session(apart: Live) -> None:
    apart.ask("What is the population of Lima in Peru?", *FELIX, "--session", "morning")
    until(lambda: bool(thoughts(apart)), "a thought has come to the idle agent")
    first = thoughts(apart)[0]
    assert (first["session"], first["by"]) == ("morning", "composer")
    assert first["activation"] == 0.7

    later = apart.ask("Tell me about Lima and Peru", *FELIX, "--session", "evening")
    told = apart.run("why", later["exchange"]).stdout
    assert "gist drift:" in told
    assert "An idle " in told

    log = apart.run("log", "tail", "--since", "1", "--no-follow", "--topic", "forged_id.drift.>", "--json").stdout
    topics = [json.loads(line)["topic"].removeprefix("forged_id.drift.") for line in log.splitlines()]
    assert {"scheduled", "started", "thought"} <= {*topics}


def test_its_thoughts_are_forgotten_with_the_session_that_they_are_about(apart: Live) -> None:
    secret = ("--agent", "cleo")
    apart.ask("The vault opens with swordfish and mackerel", *secret, "--session", "secret")

    until(lambda: bool(thoughts(apart, "cleo")), "a thought has come to the agent")
    apart.run("forget", "--session", "secret", *secret, "--by", "ann", "--why", "asked to", "--yes")
    later = apart.ask("What of the swordfish and the vault?", *secret, "--session", "other")
    told = apart.run("why", later["exchange"]).stdout
    assert "nothing came to mind" in told
    assert "drift:" not in told
    assert "mackerel" not in apart.run("drift", "show", "cleo", "--json").stdout


def test_every_drift_is_decided_again_to_the_byte(apart: Live) -> None:
    apart.ask("What is the population of Quito in Ecuador?", "--agent", "maria")
    until(lambda: bool(thoughts(apart, "maria")), "a thought has come to the agent")
    (replayed,) = apart.rows("replay", "--verify", "--json")
    assert replayed["clean"] is True
    assert replayed["coverage"]["drift"]["identical"] > 3
    assert replayed["coverage"]["drift"]["different"] == 0
