"""One decision: its events' subjects, ids and bytes; and what is recorded when there is none to be had."""

from collections.abc import Iterable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.registry import ACTORS
from events.decoding import Unreadable, decode
from events.log import Stored
from events.make_decision import Cause, NewEvent, address_events, cause_of, decide, fail_append, fold
from events.routes import fence_filter
from schemas.actor import Actor, Emission, Message, Scope
from schemas.catalogue import CATALOGUE, decode_event
from schemas.event import Event, Failed
from schemas.identity import event_id
from schemas.subjects import Partitions
from schemas.vocabulary.clock import ClockConfigured
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.reflex import ReflexFailed, ReflexPassed
from tests.actors.scenario import Address
from tests.each import each
from tests.events.recording import PARTITIONS, Recording
from tests.events.small_actors import DIARIST, Diary, deciding, folding, write_down
from tests.simulated.store import matches

MANY = Partitions(agents=4, sessions=16)
CAUSE = Cause("cause", 7, 1_000, "ann", "morning", "first", MANY.agent_token("ann"), MANY.session_token("morning"))
PASSED = ReflexPassed()
SOMEONE: Actor[Any] = DIARIST


def given_input(text: str = "1", at: Address | None = None, **changed: Any) -> Stored:
    """Store an input from outside; ``body`` and headers may be replaced."""
    return Recording([]).send(InputReceived(text=text), at or Address("ann", "morning", "first"), **changed)


def decided_by(actor: Actor[Any], stored: Stored, state: Any = None) -> tuple[tuple[NewEvent, ...], Any]:
    return decide(actor, actor.initial() if state is None else state, decode(stored), PARTITIONS, "00")


def the_failure(decided: Iterable[NewEvent]) -> ReflexFailed:
    [one] = decided
    assert isinstance(one.message.event, ReflexFailed)
    assert one.topic == "forged_id.reflex.failed"
    assert decode_event(one.topic, one.data) == one.message.event
    return one.message.event


def at_once(state: Any, message: Message) -> Iterable[Event]:
    raise KeyError("a library's message, with a secret in it")


def after_the_first(state: Any, message: Message) -> Iterable[Event]:
    yield PASSED
    raise RuntimeError("a library's message, with a secret in it")


def for_ever_deeper(state: Any, message: Message) -> Iterable[Event]:
    return for_ever_deeper(state, message)


@each(
    ("decider", "error"),
    [(at_once, "KeyError"), (after_the_first, "RuntimeError"), (for_ever_deeper, "RecursionError")],
    named=lambda value: getattr(value, "__name__", value),
)
def test_a_decider_that_raises_is_recorded_by_the_type_and_never_the_words_of_what_it_raised(
    decider: Any, error: str
) -> None:
    decided, state = decided_by(deciding(decider), given_input())
    failure = the_failure(decided)
    assert (failure.reason, failure.error, failure.failed_seq) == ("decider_raised", error, 1)
    assert failure.failed_topic == "forged_id.input.received"
    assert b"secret" not in decided[0].data
    assert [line.split()[2] for line in state.lines] == ["forged_id.input.received", "forged_id.reflex.failed"]


def raising(*kinds: type[Event]) -> Any:
    def evolve(diary: Diary, message: Message) -> Diary:
        if isinstance(message.event, kinds):
            raise LookupError("with a secret in it")
        return write_down(diary, message)

    return evolve


@pytest.mark.parametrize("kind", [InputReceived, ReflexPassed], ids=["on_the_message", "on_what_it_led_to"])
def test_a_fold_that_raises_records_a_failure_and_passes_the_message_over(kind: type[Event]) -> None:
    actor = folding(raising(kind))
    before = Diary(("earlier",))
    decided, state = decided_by(actor, given_input("2"), before)
    failure = the_failure(decided)
    assert (failure.reason, failure.error) == ("fold_raised", "LookupError")
    assert b"secret" not in decided[0].data
    assert state.lines[0] == "earlier"
    assert [line.split()[2] for line in state.lines[1:]] == ["forged_id.reflex.failed"]


def test_a_fold_that_cannot_take_its_own_failure_leaves_the_state_untouched() -> None:
    actor = folding(raising(InputReceived, ReflexFailed))
    before = Diary(("earlier",))
    decided, state = decided_by(actor, given_input(), before)
    assert the_failure(decided).reason == "fold_raised"
    assert state is before
    refused, state = fail_append(actor, before, decode(given_input()), PARTITIONS, "00")
    assert the_failure(refused).reason == "append_refused"
    assert state is before


class Unlisted(Event, frozen=True, kw_only=True, tag="forged_id.reflex.unlisted"):
    """An event that the catalogue does not hold."""


@pytest.mark.parametrize(
    ("event", "error"),
    [
        (Unlisted(), "KeyError"),
        (ReflexFailed(reason="\ud800", error="", failed_seq=1, failed_topic=""), "UnicodeEncodeError"),
    ],
    ids=["unlisted", "no_unicode"],
)
def test_an_event_that_cannot_be_stored_is_a_failure_of_its_decision(event: Event, error: str) -> None:
    decided, _ = decided_by(deciding(lambda state, message: (PASSED, event)), given_input())
    failure = the_failure(decided)
    assert (failure.reason, failure.error) == ("fold_raised", error)


UNREADABLE = [
    ("undecodable", given_input(body=b"{")),
    ("undecodable", given_input(body=b'{"topic":"forged_id.input.received","text":7}')),
    ("undecodable", given_input(body=b"[" * 100_000)),
    ("undecodable", given_input(body=b"\xff\xfe")),
    ("undecodable", given_input(ce_index="first")),
    ("undecodable", given_input(ce_type="forged_id.reflex.passed")),
    ("unknown_version", given_input(ce_dataversion="2")),
    ("unknown_version", given_input(ce_dataversion="0")),
]


@each(("code", "stored"), UNREADABLE)
def test_a_message_that_cannot_be_read_fails_with_its_code_and_is_not_folded(code: str, stored: Stored) -> None:
    decided, state = decided_by(DIARIST, stored)
    failure = the_failure(decided)
    assert (failure.reason, failure.error, failure.failed_topic) == (code, "", "forged_id.input.received")
    assert [line.split()[2] for line in state.lines] == ["forged_id.reflex.failed"]


@each(("code", "stored"), UNREADABLE)
def test_its_failure_takes_over_the_address_of_what_cannot_be_read(code: str, stored: Stored) -> None:
    message = decided_by(DIARIST, stored)[0][0].message
    assert (message.agent, message.session, message.exchange) == ("ann", "morning", "first")
    assert message.id == event_id(stored.headers["ce-id"], "reflex", 0)


def test_an_unknown_subject_fails_with_its_code() -> None:
    stored = Stored(3, 9, "log.00.01.input.forgotten", {"ce-id": "x", "ce-type": "forged_id.input.forgotten"}, b"{}")
    failure = the_failure(decided_by(DIARIST, stored)[0])
    assert (failure.reason, failure.failed_topic) == ("unknown_topic", "forged_id.input.forgotten")


@each("missing", ["ce-id", "ce-type", "ce-agent", "ce-session", "ce-exchange"])
def test_the_failure_inherits_what_is_readable_of_an_envelope_that_lacks_something(missing: str) -> None:
    whole = given_input(body=b"{")
    headers = {name: value for name, value in whole.headers.items() if name != missing}
    lacking = Stored(whole.seq, whole.time_ns, whole.subject, headers, whole.data)
    cause = cause_of(decode(lacking))
    expected = {"ce-id": whole.headers["ce-id"], "ce-agent": "ann", "ce-session": "morning", "ce-exchange": "first"}
    if missing == "ce-id":
        expected["ce-id"] = "seq-1"
    elif missing == "ce-exchange":  # an input's own id is its exchange then, for its failures as well
        expected["ce-exchange"] = whole.headers["ce-id"]
    elif missing in expected:
        expected[missing] = ""
    found = {"ce-id": cause.id, "ce-agent": cause.agent, "ce-session": cause.session, "ce-exchange": cause.exchange}
    assert found == expected


@given(
    headers=st.dictionaries(
        st.sampled_from(["ce-id", "ce-type", "ce-agent", "ce-session", "ce-exchange", "ce-index", "ce-causeseq"]),
        st.text(max_size=8),
    ),
    body=st.binary(max_size=12),
    topic=st.sampled_from(["input.received", "reflex.passed", "no.such", "x"]),
)
def test_nothing_that_can_be_stored_makes_a_decision_raise_or_leave_its_partition(
    headers: dict[str, str], body: bytes, topic: str
) -> None:
    stored = Stored(5, 9, f"log.00.01.{topic}", headers, body)
    decided, _ = decided_by(DIARIST, stored)
    assert isinstance(decode(stored), Unreadable) == bool(decided)
    assert all(matches(fence_filter(SOMEONE, "01"), one.subject) for one in decided)
    assert decided == decided_by(DIARIST, stored)[0]


def test_a_message_stored_in_another_partition_than_its_keys_leads_to_events_of_the_partition_that_read_it() -> None:
    """Elsewhere they would miss the fence, and every later append of the partition with it."""
    whole = given_input("2")
    tokens = {"00", "01", "02"} - {PARTITIONS.session_token("morning")}
    elsewhere = min(tokens)
    astray = Stored(1, 9, f"log.00.{elsewhere}.input.received", whole.headers, whole.data)
    decided, _ = decided_by(DIARIST, astray)
    assert [one.message.session for one in decided] == ["morning", "morning"]
    assert all(matches(fence_filter(SOMEONE, elsewhere), one.subject) for one in decided)


def addressed(*emissions: Event | Emission, cause: Cause = CAUSE) -> tuple[NewEvent, ...]:
    return address_events("reflex", cause, emissions, MANY)


def keys(decided: NewEvent) -> tuple[str, str, str]:
    return decided.message.agent, decided.message.session, decided.message.exchange


def test_an_event_inherits_the_address_of_its_cause() -> None:
    [one] = addressed(PASSED)
    assert keys(one) == ("ann", "morning", "first")
    assert one.subject == f"log.{CAUSE.agent_token}.{CAUSE.session_token}.reflex.passed"
    assert (one.message.seq, one.message.time_ns, one.cause, one.cause_seq) == (7, 1_000, "cause", 7)


def test_an_emission_may_name_another_address() -> None:
    assert MANY.agent_token("cat") != MANY.agent_token("ann")
    assert MANY.session_token("noon") != MANY.session_token("morning")
    [one] = addressed(Emission(PASSED, "cat", "noon", "second"))
    assert keys(one) == ("cat", "noon", "second")
    assert one.subject == f"log.{MANY.agent_token('cat')}.{MANY.session_token('noon')}.reflex.passed"
    [part] = addressed(Emission(PASSED, session="noon"))
    assert keys(part) == ("ann", "noon", "first")
    assert part.subject == f"log.{CAUSE.agent_token}.{MANY.session_token('noon')}.reflex.passed"


def test_an_emission_may_take_an_address_away() -> None:
    [one] = addressed(Emission(PASSED, exchange=""))
    assert keys(one) == ("ann", "morning", "")


def test_a_global_event_loses_agent_and_session() -> None:
    [one] = addressed(ClockConfigured(settings={}, settings_hash="", behaviour=1))
    assert keys(one) == ("", "", "first")
    assert one.subject == "log._._.clock.configured"


def test_an_agents_event_loses_the_session(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = CATALOGUE["forged_id.reflex.passed"]
    of_agents = msgspec.structs.replace(entry, scope=Scope.AGENT)
    monkeypatch.setitem(CATALOGUE, "forged_id.reflex.passed", of_agents)
    [one] = addressed(PASSED)
    assert keys(one) == ("ann", "", "first")
    assert one.subject == f"log.{CAUSE.agent_token}._.reflex.passed"


@given(st.lists(st.sampled_from([PASSED, Emission(PASSED, session="night")]), max_size=9))
def test_the_events_of_one_decision_are_numbered_and_their_ids_stable_and_distinct(emissions: list[Any]) -> None:
    decided = addressed(*emissions)
    assert decided == addressed(*emissions)
    assert [(one.index, one.count) for one in decided] == [(place, len(emissions)) for place in range(len(emissions))]
    assert [one.message.id for one in decided] == [event_id("cause", "reflex", place) for place in range(len(decided))]
    assert len({one.message.id for one in decided}) == len(decided)


def test_ids_differ_between_owners_and_between_causes() -> None:
    other = msgspec.structs.replace(CAUSE, id="other")
    ids = [
        address_events(owner, cause, [PASSED], MANY)[0].message.id
        for owner in ("reflex", "router")
        for cause in (CAUSE, other)
    ]
    assert len(set(ids)) == 4


def test_a_decision_is_made_from_the_state_before_its_message() -> None:
    seen: list[int] = []

    def looking(diary: Diary, message: Message) -> tuple[Event, ...]:
        seen.append(len(diary.lines))
        return (PASSED,)

    actor = deciding(looking)
    _, state = decided_by(actor, given_input())
    decided_by(actor, given_input(), state)
    assert seen == [0, 2]


def test_a_refused_decision_is_recorded_for_its_message() -> None:
    decided, state = fail_append(DIARIST, Diary(), decode(given_input("3")), PARTITIONS, "00")
    failure = the_failure(decided)
    assert (failure.reason, failure.error, failure.failed_seq) == ("append_refused", "", 1)
    assert decided[0].message.exchange == "first"
    assert [line.split()[2] for line in state.lines] == ["forged_id.reflex.failed"]


@each(
    ("reason", "folded"),
    [("decider_raised", True), ("fold_raised", False), ("append_refused", False), ("undecodable", False)],
)
def test_the_message_of_a_recorded_failure_is_folded_only_if_its_decider_raised(reason: str, folded: bool) -> None:
    delivery = decode(given_input())
    failure: Failed = ReflexFailed(reason=reason, error="", failed_seq=1, failed_topic="")
    state = fold(DIARIST, Diary(), delivery, [Message(failure, 1, "id", 0)])
    assert ["input.received" in line for line in state.lines] == [True, False] if folded else [False]


def test_a_message_of_all_sessions_is_answered_by_each_partition_within_its_own_fence() -> None:
    """Otherwise every partition would derive the same id, and write where no fence of its own looks."""
    stored = msgspec.structs.replace(given_input(), subject="log.01._.input.received")
    ids = set()
    for partition in ("00", "01"):
        [one], _ = decide(ACTORS["reflex"], ACTORS["reflex"].initial(), decode(stored), PARTITIONS, partition)
        assert one.subject.split(".")[2] == partition
        assert one.cause == decode(stored).envelope.id
        ids.add(one.message.id)
    assert len(ids) == 2
