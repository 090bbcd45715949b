"""Long questions about a log: the settings that may be tried, an exchange decided again, and states."""

import asyncio
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from actors.registry import UnknownActor
from deploy.config.loading import BadConfiguration
from deploy.replaying.log_questions import DecideAgain, ShowState, decide_again, known_settings, layers_of, show_state
from deploy.replaying.what_if import settings_of
from events.replay.presence_checks import BeyondEnd, NothingFound
from events.replay.sources import LedgerSource
from events.replay.states.conditions import BadCondition
from events.replay.states.partition_state import NoSuchPartition
from events.replay.whatif import UnfitChanges
from tests.each import each
from tests.events.ledger.messages import write
from tests.events.recording import PARTITIONS
from tests.events.whatif.asking import live

WORDS = "What is the capital of Peru?"


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LedgerSource]:
    """A ledger of two exchanges."""
    path = tmp_path_factory.mktemp("ledger") / "ledger.db"
    write(path, live([("morning", WORDS), ("noon", "Thanks!")]).log, partitions=PARTITIONS)
    with closing(LedgerSource(path)) as opened:
        yield opened


def last_of(source: LedgerSource) -> int:
    return asyncio.run(source.info()).last_seq


def tried(**settings: Any) -> dict[str, dict[str, Any]]:
    return settings_of(None, layers_of({key.replace("__", "."): value for key, value in settings.items()}))


def test_settings_are_taken_as_numbers_flags_and_text_alike() -> None:
    wanted = {"router": {"base_scores": {"ACT": 0.5}, "act": False, "profile": "seed"}}
    assert tried(router__base_scores__ACT=0.5, router__act=False, router__profile="seed") == wanted
    assert tried(router__base_scores__ACT="0.5", router__act="false", router__profile="seed") == wanted


@each(
    ("settings", "word"),
    [
        ({"router__base_scoress__ACT": 0.5}, "did you mean 'base_scores'"),
        ({"ruter__act": True}, "did you mean 'router'"),
        ({"router__act": 7}, "write true or false"),
        ({"router__act": "maybe"}, "write true or false"),
        ({"breaker__alpha": 7.0}, "breaker.alpha"),
        ({"gateway__concurrent": 7}, "decides nothing"),
        ({"router": 7}, "write SECTION.KEY"),
        ({"router__profile": "seed", "ROUTER__profile": "standard"}, "router.profile is set twice"),
    ],
)
def test_a_setting_that_cannot_be_tried_is_refused_by_its_name(settings: dict[str, Any], word: str) -> None:
    with pytest.raises(BadConfiguration, match=word.replace(".", r"\.")):
        tried(**settings)


def test_every_known_setting_may_be_tried_with_its_default() -> None:
    known = {each.key: each for each in known_settings() if each.default not in (None, "")}
    assert len(known) > 200
    assert {"router.base_scores.RESPOND"} <= {each.key for each in known_settings()}
    changed = settings_of(None, layers_of({key: each.default for key, each in known.items()}))
    assert changed["breaker"]["alpha"] == 0.3


def test_every_decision_that_is_otherwise_is_told_with_its_numbers_and_without_words(source: LedgerSource) -> None:
    question = DecideAgain(
        exchange="exchange-0", upto=last_of(source), settings={"router.base_scores.ACKNOWLEDGE": 1.9}
    )
    told = asyncio.run(decide_again(source, question))
    assert (told.fate, told.after.mode) == ("changed", "ACKNOWLEDGE")
    assert {"router", "responder"} <= {each.actor for each in told.decisions}
    assert WORDS not in msgspec.json.encode(told).decode()


def test_an_exchange_that_has_not_ended_is_decided_again_up_to_the_end_of_the_log(tmp_path: Path) -> None:
    log = live([("morning", WORDS)]).log
    end = next(at for at, each in enumerate(log) if each.subject.endswith(".response.emitted"))
    write(tmp_path / "ledger.db", log[:end], partitions=PARTITIONS)
    question = DecideAgain(exchange="exchange-0", upto=0, settings={"router.base_scores.ACKNOWLEDGE": 1.9})
    with closing(LedgerSource(tmp_path / "ledger.db")) as source:
        told = asyncio.run(decide_again(source, question))
    assert told.fate == "open"


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"breaker.guarded_below": 0.55}, "'guarded_below' is above 'cautious_below'"),
        ({"breaker.recent_falsehood_count": 4}, "recent_falsehood_count: 4 is above 'window', which is 3"),
    ],
)
def test_settings_that_do_not_go_with_the_recorded_ones_are_told_apart_from_a_log_that_cannot_be_read(
    tmp_path: Path, settings: dict[str, Any], told: str
) -> None:
    path = tmp_path / "ledger.db"
    recorded = live([("morning", WORDS)], {"breaker": {"cautious_below": 0.5, "window": 3}})
    write(path, recorded.log, partitions=PARTITIONS)
    with closing(LedgerSource(path)) as source, pytest.raises(UnfitChanges, match=told):
        asyncio.run(decide_again(source, DecideAgain(exchange="exchange-0", upto=0, settings=settings)))


def test_an_exchange_that_is_not_there_cannot_be_decide_again(source: LedgerSource) -> None:
    with pytest.raises(NothingFound, match="exchange-9"):
        asyncio.run(
            decide_again(
                source, DecideAgain(exchange="exchange-9", upto=last_of(source), settings={"router.act": False})
            )
        )


@each(
    ("actor", "key", "path", "wrong"),
    [
        ("braker", "morning", "", UnknownActor),
        ("breaker", "all", "", NoSuchPartition),
        ("breaker", "morning", "[", BadCondition),
        ("breaker", "morning", "nowhere", NothingFound),
        ("breaker", "mourning", "", NothingFound),
        ("clock", "mourning", "", NothingFound),
    ],
)
def test_a_state_that_is_nowhere_is_no_state(
    source: LedgerSource, actor: str, key: str, path: str, wrong: type[Exception]
) -> None:
    with pytest.raises(wrong):
        asyncio.run(show_state(source, ShowState(actor=actor, key=key, path=path)))


def test_a_state_is_told_as_of_a_point_and_not_behind_the_end(source: LedgerSource) -> None:
    whole = asyncio.run(show_state(source, ShowState(actor="breaker", key="morning", path="trust")))
    assert whole > 0
    first = asyncio.run(show_state(source, ShowState(actor="breaker", key="morning", at=1)))
    assert first.under_key == {}
    with pytest.raises(BeyondEnd):
        asyncio.run(show_state(source, ShowState(actor="breaker", key="morning", at=last_of(source) + 1)))
