"""Questions that the gateway answers by itself, before a process is started for them."""

import asyncio
from typing import Any

import pytest

from actors.actor_names import actor_packages
from actors.gateway.external_events import InvalidField
from actors.gateway.http.feedback.service import RatedExchange
from actors.gateway.http.scopes import NotFound
from actors.registry import ACTORS
from deploy.config.settings import LogSettings
from deploy.processes.gateway.examinations import BrokerExaminations
from events.jetstream import Access


async def _never(exchange: str) -> RatedExchange:
    raise AssertionError(exchange)


def test_an_actor_that_there_is_not_is_told_without_a_process() -> None:
    # No process could answer: there is no broker, and no time.
    asked = BrokerExaminations(Access(servers="nats://127.0.0.1:9"), LogSettings(), _never, within_s=0.0)
    with pytest.raises(NotFound, match="there is no actor 'brekaer': did you mean 'breaker'"):
        asyncio.run(asked.state("brekaer", "lunch", 0, ""))


def test_the_names_of_actors_are_those_of_the_registry() -> None:
    assert actor_packages() == list(ACTORS)


def examinations() -> BrokerExaminations:
    return BrokerExaminations(Access(servers="nats://127.0.0.1:9"), LogSettings(), _never, within_s=0.0)


@pytest.mark.parametrize(
    ("key", "told"),
    [
        ("ruter.act", "setting ruter.act: there is no section 'ruter': did you mean 'router'"),
        ("act", "act: write SECTION.KEY, such as router.base_scores.RESPOND"),
    ],
)
def test_a_setting_of_no_section_is_told_without_a_process(key: str, told: str) -> None:
    with pytest.raises(InvalidField, match=told) as wrong:
        asyncio.run(examinations().what_if("an exchange", {key: True}))
    assert wrong.value.field == "settings"


def test_a_wrong_setting_starts_a_process_once_and_not_for_each_who_asks_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[bytes] = []

    async def ask(_: Any, question: bytes) -> bytes:
        asked.append(question)
        raise InvalidField("settings" if b"alpha" in question else "path", "setting breaker.alpha: write less")

    async def found(exchange: str) -> RatedExchange:
        ended = 0 if exchange == "an open one" else 9
        return RatedExchange(exchange=exchange, agent="a", session="s", ended_seq=ended)

    monkeypatch.setattr("deploy.processes.examiner.Examiner.ask", ask)
    examined = BrokerExaminations(Access(servers="nats://127.0.0.1:9"), LogSettings(), found, within_s=0.0)
    for settings, processes in (({"breaker.alpha": 7}, 1), ({"breaker.alpha": 7}, 1), ({"breaker.window": 7}, 2)):
        with pytest.raises(InvalidField, match="write less"):
            asyncio.run(examined.what_if("an exchange", settings))
        assert len(asked) == processes
    with pytest.raises(InvalidField, match="write less"):
        asyncio.run(examined.what_if("an exchange", {"breaker.window": 7}))
    assert len(asked) == 3, "an answer that is too large may be smaller another time"
    for exchange, processes in (("another", 4), ("another", 4), ("an open one", 5), ("an open one", 6)):
        with pytest.raises(InvalidField, match="write less"):
            asyncio.run(examined.what_if(exchange, {"breaker.alpha": 7}))
        assert len(asked) == processes, "recorded settings may differ, and those of an open exchange may change"


def test_an_explanation_that_is_too_long_is_told_as_one_for_the_command_line(monkeypatch: pytest.MonkeyPatch) -> None:
    async def ask(_: Any, question: bytes) -> bytes:
        raise InvalidField("path", "the answer has more than 8,000,000 bytes: ask for less of it, by its path")

    monkeypatch.setattr("deploy.processes.examiner.Examiner.ask", ask)
    with pytest.raises(InvalidField, match=r"has more than 8,000,000 bytes: `neuraxis why x1` prints it"):
        asyncio.run(examinations().why("x1"))
