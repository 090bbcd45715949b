"""The router's lines in the worker's log: their form, and that a worker writes them for what it has stored."""

import asyncio
import re

import msgspec
from structlog.testing import capture_logs

from actors.registry import ACTORS
from actors.router.log_lines import log_lines
from events.jetstream import JetStreamLog
from schemas.catalogue import CATALOGUE
from schemas.vocabulary.router import ModeSelected
from tests.actors.router.builders import route
from tests.actors.runtime.living import PARTITIONS, converse, living
from tests.broker import Broker

SELECTED = msgspec.structs.replace(route("Hey"), selected_mode="RESPOND", router_confidence=0.85)


def test_a_selection_says_mode_confidence_and_time():
    """mode-router: Log Prefixes, [ROUTER] Mode selected: RESPOND (confidence: 0.85, 2.3ms)."""
    assert log_lines(SELECTED, 2.3) == ("[ROUTER] Mode selected: RESPOND (confidence: 0.85, 2.3ms)",)


def test_a_tie_break_says_who_stood_against_whom_and_who_won():
    """mode-router: Log Prefixes, [ROUTER] Tie-breaker invoked: RESPOND vs CLARIFY -> RESPOND."""
    settled = msgspec.structs.replace(
        SELECTED, tiebreaker_used=True, tiebreaker_candidates=("RESPOND", "CLARIFY"), tiebreaker_outcome="RESPOND"
    )
    assert log_lines(settled, 2.3)[0] == "[ROUTER] Tie-breaker invoked: RESPOND vs CLARIFY → RESPOND"
    assert log_lines(settled, 2.3)[1:] == log_lines(SELECTED, 2.3)


def test_an_ambiguity_settled_by_scores_invoked_nobody():
    ambiguous = route("Thanks!")
    assert ambiguous.tiebreaker_candidates
    assert log_lines(ambiguous, 0.04) == ("[ROUTER] Mode selected: ACKNOWLEDGE (confidence: 0.15, 0.0ms)",)


def test_other_events_say_nothing():
    others = [entry.sample for entry in CATALOGUE.values() if entry.event is not ModeSelected]
    assert {log_lines(event, 1.0) for event in others} == {()}


def test_a_worker_writes_a_line_for_each_decision_with_its_exchange(broker: Broker):
    async def main() -> list[str]:
        log = await JetStreamLog.connect(broker.url, partitions=PARTITIONS)
        try:
            async with asyncio.timeout(120), living(broker, "a", actors=tuple(ACTORS.values())):
                ends = await converse(log, sessions=1, turns=2)
        finally:
            await log.close()
        return [end.exchange for end in ends if end.event.mode is not None]

    with capture_logs() as lines:
        routed = asyncio.run(main())
    told = [line for line in lines if re.match(r"\[ROUTER\] Mode selected: [A-Z]+ \(confidence: \d", line["event"])]
    assert routed
    assert {line["exchange"] for line in told} == {*routed}
    assert {line["log_level"] for line in told} == {"info"}
    assert not [line for line in lines if "capital of Peru" in str(line)]
