"""Exchanges that wait for a stage which nobody serves end at once, and name it; all others go on."""

from typing import Any

import msgspec

from actors.responder import ACTOR
from actors.responder.settings import ResponderSettings
from actors.responder.unserved_stages import MOST_ENDS
from schemas.actor import Scope
from schemas.availability import Lack
from schemas.event import Event
from schemas.input_path import scopes, token_among
from schemas.vocabulary.responder import ResponseEmitted, ResponseRequested
from schemas.vocabulary.swarm import StageFound, StageLost
from tests.actors.responder.builders import (
    CLEARED,
    COHERENT,
    ESCALATED,
    FELT,
    PASSED,
    PATH,
    asked,
    blocked,
    chosen,
    recalled,
)
from tests.actors.scenario import HERE, Address, Partition
from tests.each import each

NOBODY = Address(agent="", session="", exchange="")
OF = 4


def lost(stage: str, *, served: Address | None = None, reason: Lack = "no_owner") -> StageLost:
    """A stage that nobody serves; ``served``: but for the partition of that address."""
    scope = scopes()[stage]
    of = 1 if scope is Scope.GLOBAL else OF
    names = ("all",) if scope is Scope.GLOBAL else tuple(f"{number:02d}" for number in range(of))
    kept = token_among(names, scope, of, served.agent, served.session) if served is not None else ""
    partitions = tuple(name for name in names if name != kept)
    return StageLost(actor=stage, scope=scope.value, partitions=partitions, of=of, reason=reason, absent_ms=8_000)


def after(*heard: Event) -> Partition:
    partition = Partition(ACTOR)
    for event in heard:
        partition.hear(event, NOBODY if isinstance(event, StageLost | StageFound) else HERE)
    return partition


def ends(events: list[Event]) -> list[tuple[str, str, str]]:
    return [(each.stage, each.action, each.reason) for each in events if isinstance(each, ResponseEmitted)]


WAITING: dict[str, tuple[tuple[Event, ...], str]] = {
    "reflex": ((), "REFLEX"),
    "intuition": ((PASSED,), "INTUITION"),
    "appraisal": ((PASSED, FELT), "COHERENCE"),
    "coherence": ((PASSED, FELT), "COHERENCE"),
    "breaker": ((PASSED, FELT, COHERENT), "BREAKER"),
    "arbiter": ((PASSED, FELT, COHERENT, CLEARED), "ARBITER"),
    "memory": (PATH, "DELIBERATIVE"),
    "router": (PATH, "DELIBERATIVE"),
    "act": ((*PATH, recalled(), chosen(None, "ACT")), "DELIBERATIVE"),
}


@each("stage", WAITING)
def test_what_waits_for_a_stage_ends_when_that_is_lost(stage: str) -> None:
    passed, named = WAITING[stage]
    partition = after(asked(), *passed)
    [end] = partition.hear(lost(stage), NOBODY)
    assert ends([end.event]) == [(named, "FAILED", f"no_owner: {stage}")]
    assert (end.agent, end.session, end.exchange) == (HERE.agent, HERE.session, HERE.exchange)
    assert not partition.state.pending


@each("stage", WAITING)
def test_what_comes_to_wait_for_a_lost_stage_ends_then_and_not_before(stage: str) -> None:
    passed, named = WAITING[stage]
    partition = after(lost(stage))
    heard = (asked(), *passed)
    for event in heard[:-1]:
        assert ends(partition.when(event)) == []
    assert ends(partition.when(heard[-1])) == [(named, "FAILED", f"no_owner: {stage}")]


def test_what_an_earlier_stage_refuses_is_refused_by_that_stage() -> None:
    partition = after(lost("arbiter"), asked())
    assert ends(partition.when(blocked())) == [("REFLEX", "BLOCKED", "jailbreak")]


@each("stage", ["arbiter", "intuition"])
def test_an_exchange_of_a_partition_that_is_served_goes_on(stage: str) -> None:
    passed, _ = WAITING[stage]
    partition = after(asked(), *passed)
    assert partition.when(lost(stage, served=HERE), NOBODY) == []
    assert HERE.exchange in partition.state.pending


@each("how", ["swarm says so", "it speaks"])
def test_a_stage_that_is_back_is_lost_no_more(how: str) -> None:
    partition = after(lost("arbiter"))
    if how == "swarm says so":
        partition.hear(StageFound(actor="arbiter"), NOBODY)
    else:
        partition.hear(ESCALATED, Address(exchange="an earlier one"))
    for event in (asked(), PASSED, FELT, COHERENT, CLEARED):
        assert ends(partition.when(event)) == []


def test_the_reason_says_whether_the_stage_has_no_owner_or_does_not_advance() -> None:
    partition = after(asked())
    assert ends(partition.when(lost("reflex", reason="stalled"), NOBODY)) == [("REFLEX", "FAILED", "stalled: reflex")]


def test_where_no_model_is_served_the_composer_answers() -> None:
    partition = Partition(ACTOR).configure(ResponderSettings(backend="llm"))
    for event in (asked(), *PATH, recalled()):
        partition.hear(event)
    assert any(isinstance(event, ResponseRequested) for event in partition.when(chosen("RESPOND")))
    [(stage, action, reason)] = ends(partition.when(lost("llm"), NOBODY))
    assert (stage, action) == ("DELIBERATIVE", "EXECUTED")
    assert reason == "llm_failed:no_owner"


def test_a_decision_ends_no_more_exchanges_than_one_append_takes_and_the_next_word_ends_the_rest() -> None:
    partition = Partition(ACTOR)
    for number in range(MOST_ENDS + 3):
        partition.hear(asked(), Address(exchange=f"exchange-{number}"))
    assert len(partition.when(lost("reflex"), NOBODY)) == MOST_ENDS
    assert len(partition.when(lost("reflex"), NOBODY)) == 3
    assert not partition.state.pending


def test_a_repeated_input_of_an_exchange_that_has_ended_ends_nothing_more() -> None:
    partition: Any = after(lost("reflex"))
    assert len(partition.when(asked())) == 1
    assert partition.when(asked()) == []


def test_what_is_lost_survives_what_forgets_words() -> None:
    partition = after(lost("reflex"), asked())
    partition.configure(msgspec.structs.replace(partition.state.settings, quote_limit=10))
    assert "reflex" in partition.state.lost
