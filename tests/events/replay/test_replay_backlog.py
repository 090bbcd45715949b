"""A replay holds no more of a log than it must: messages that lead to nothing do not pile up."""

import dataclasses
from typing import Any

import pytest

from actors.registry import ACTORS
from events.log import Stored
from events.replay.replay import Replay
from schemas.actor import Actor
from schemas.envelope import Envelope, encode_headers
from schemas.event import encode_event, topic_of
from schemas.identity import event_id
from schemas.subjects import stored_subject
from schemas.vocabulary.reflex import ReflexPassed
from tests.events.ledger.messages import INPUT, PARTITIONS, RESPONSE, START_NS, exchanges, stored

BACKLOG = 100


def replay(*names: str, backlog: int = BACKLOG) -> Replay:
    return Replay([ACTORS[name] for name in names], PARTITIONS, verify=True, backlog=backlog)


def waiting(replaying: Replay) -> int:
    return max(len(view.waiting) for view in replaying.views.values())


def test_an_actor_that_never_speaks_does_not_keep_the_log_waiting() -> None:
    bounded, unbounded = replay("clock"), replay("clock", backlog=1_000_000)
    most = 0
    for message in exchanges(500):
        bounded.feed(message)
        unbounded.feed(message)
        most = max(most, waiting(bounded))
    assert most <= BACKLOG
    assert waiting(unbounded) == 1_000
    first, second = bounded.finish(), unbounded.finish()
    assert first.state_hashes == second.state_hashes
    assert first.coverage["clock"] == second.coverage["clock"]
    assert first.coverage["clock"].silent == 1_000


def test_what_waits_is_bounded_for_all_partitions_together() -> None:
    replaying = replay("arbiter")
    for seq in range(1, 1_001):
        replaying.feed(stored(seq, RESPONSE, exchange=f"x{seq}", session=f"s{seq % 37}"))
    assert len([view for view in replaying.views.values() if view.position]) > 10
    assert sum(len(view.waiting) for view in replaying.views.values()) <= BACKLOG
    assert replaying.finish().coverage["arbiter"].silent == 1_000


def test_a_partition_that_falls_quiet_keeps_nothing_waiting() -> None:
    replaying = replay("arbiter")
    for seq in range(1, 51):
        replaying.feed(stored(seq, RESPONSE, exchange=f"x{seq}", session="quiet"))
    quiet = replaying.views["arbiter", PARTITIONS.session_token("quiet")]
    assert len(quiet.waiting) == 50
    for seq in range(51, 201):
        replaying.feed(stored(seq, RESPONSE, exchange=f"x{seq}", session="talkative"))
    assert not quiet.waiting


def passed(cause: Stored, seq: int) -> Stored:
    """Build reflex's answer to an input as its decision would have made it."""
    event = ReflexPassed()
    envelope = Envelope(
        id=event_id(cause.headers["ce-id"], "reflex", 0),
        topic=topic_of(event),
        source="neuraxis/reflex",
        time="2025-01-01T00:00:00Z",
        agent="ada",
        session="s1",
        exchange=cause.headers["ce-exchange"],
        cause=cause.headers["ce-id"],
        cause_seq=cause.seq,
    )
    subject = stored_subject(envelope.topic, PARTITIONS.agent_token("ada"), PARTITIONS.session_token("s1"))
    return Stored(seq, START_NS, subject, encode_headers(envelope), encode_event(event))


def test_a_message_that_an_event_is_owed_for_waits_for_it_however_late_it_comes() -> None:
    replaying = replay("reflex")
    inputs = [stored(seq, INPUT, exchange=f"x{seq}") for seq in range(1, 301)]
    for message in inputs:
        replaying.feed(message)
    assert waiting(replaying) == 300
    for message in inputs:
        replaying.feed(passed(message, 300 + message.seq))
    report = replaying.finish()
    assert report.clean
    assert report.coverage["reflex"].identical == 300


def silent_once(actor: Actor[Any]) -> Actor[Any]:
    """Return an actor that decides nothing: another release of one that did."""
    return dataclasses.replace(actor, decide=lambda state, message: ())


@pytest.mark.parametrize("backlog", [BACKLOG, 1_000_000])
def test_an_event_of_a_message_that_now_leads_to_nothing_is_a_difference_at_any_backlog(backlog: int) -> None:
    replaying = Replay([silent_once(ACTORS["reflex"])], PARTITIONS, verify=True, backlog=backlog)
    inputs = [stored(seq, INPUT, exchange=f"x{seq}") for seq in range(1, 301)]
    for message in (*inputs, passed(inputs[0], 301)):
        replaying.feed(message)
    report = replaying.finish()
    assert not report.clean
    assert report.coverage["reflex"].different == 1
    assert report.coverage["reflex"].identical == 299
    assert report.differences[0].field == "count"
    assert report.differences[0].recorded == "1 events: forged_id.reflex.passed"
