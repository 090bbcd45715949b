"""Why an exchange ended as it did: its events as a tree of causes, with the times between them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import get_args

import msgspec

from events.decoding import Recorded, Unreadable, decode
from events.ledger.rows import topic_of_subject
from events.log import Stored
from schemas.availability import Lack
from schemas.catalogue import CATALOGUE, entry_of
from schemas.envelope import BUDGET, LATENCY
from schemas.event import ROOT, Event
from schemas.input_path import ON_DEMAND, PATH
from schemas.intake.whole_numbers import read_whole_number
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.responder import ResponseEmitted
from schemas.vocabulary.router import ModeSelected


class Node(msgspec.Struct, frozen=True):
    """An event and what it led to, in stream order.

    ``since_start_ms`` and ``since_cause_ms`` are differences of server timestamps; ``decided_us`` how long the
    decision itself took, None where it was not measured, ``budget_us`` its stage's latency budget if it took longer.
    ``by`` is the process that decided, ``build`` its version and settings hash.
    """

    id: str
    topic: str
    owner: str
    seq: int
    body: dict[str, object]
    since_start_ms: float
    since_cause_ms: float
    decided_us: int | None
    by: str
    build: str
    led_to: "tuple[Node, ...]" = ()
    budget_us: int | None = None


class Explanation(msgspec.Struct, frozen=True):
    """The causal tree of an exchange.

    ``roots`` holds the input, and any event whose cause is not among the exchange's own. ``critical_path`` are the
    sequences of the events from the input to the end, each the cause of the next, as far back as causes are known;
    empty while there is no end. ``complete`` says whether it begins with the input. ``total_ms`` is the time from the
    first event to the last, without feedback. ``unreached`` names the owners of the full path that decided nothing.
    ``absent`` gives the reason for them, and for owners that were not needed. ``unreadable`` lists sequences of
    messages of this exchange that cannot be decoded.
    """

    exchange: str
    agent: str
    session: str
    roots: tuple[Node, ...]
    complete: bool
    critical_path: tuple[int, ...]
    total_ms: float
    unreached: tuple[str, ...]
    absent: dict[str, str]
    unreadable: tuple[int, ...]


ANSWERING = frozenset({"memory", "router"})
"""The owners of the path that are not needed for an input which its sender has answered elsewhere."""

TERMINAL = "forged_id.response.emitted"
ROOT_TOPIC = "forged_id.input.received"
"""The events with which every exchange ends and begins."""

FEEDBACK_TOPICS = frozenset(
    {"forged_id.router.feedback_observed", "forged_id.feedback.given", "forged_id.feedback.harm_reported"}
)
"""Events about an exchange that come after its end, perhaps days later: they do not count for its path or duration."""


def explain(messages: Iterable[Stored], path: Sequence[str] | None = None) -> Explanation | None:
    """Build the explanation of one exchange from its stored messages, in stream order; None when there are none.

    ``path`` names the owners an input passes on its way to an answer; by default :data:`PATH`, without those that
    this exchange did not need.
    """
    recorded: list[Recorded] = []
    unreadable: list[int] = []
    present: set[str] = set()
    for stored in messages:
        found = decode(stored)
        if isinstance(found, Unreadable):
            unreadable.append(stored.seq)
            if (topic := topic_of_subject(stored.subject)) not in FEEDBACK_TOPICS:
                present.add(_owner_of(topic))
        else:
            recorded.append(found)
    if not recorded:
        return None
    first = recorded[0]
    by_id = {each.envelope.id: each for each in recorded}
    children: dict[str, list[Recorded]] = {}
    roots: list[Recorded] = []
    for each in recorded:
        if each.envelope.cause in by_id and each.envelope.cause != each.envelope.id:
            children.setdefault(each.envelope.cause, []).append(each)
        else:
            roots.append(each)
    events = [each.message.event for each in recorded]
    own = [each for each in recorded if each.envelope.topic not in FEEDBACK_TOPICS]
    present |= {CATALOGUE[each.envelope.topic].owner for each in own}
    latest = (own or recorded)[-1]
    unreached = tuple(owner for owner in path or path_of(events) if owner not in present)
    chain = _causes_of_end(recorded, by_id)
    not_called_on = {owner: why for owner, why in ON_DEMAND.items() if owner not in present and owner not in unreached}
    return Explanation(
        exchange=first.envelope.exchange,
        agent=first.envelope.agent,
        session=first.envelope.session,
        roots=tuple(_node(root, None, first, children) for root in roots),
        complete=bool(chain) and chain[0].envelope.topic == ROOT_TOPIC,
        critical_path=tuple(each.stored.seq for each in chain),
        total_ms=_milliseconds(first, latest),
        unreached=unreached,
        absent=dict.fromkeys(unreached, _why_stopped(chain, latest, unreadable)) | not_called_on,
        unreadable=tuple(unreadable),
    )


def _owner_of(topic: str) -> str:
    """Return who decided an event that cannot be read: an actor's topics begin with its name."""
    entry = CATALOGUE.get(topic)
    return topic.removeprefix(f"{ROOT}.").partition(".")[0] if entry is None else entry.owner


def path_of(events: Iterable[Event]) -> tuple[str, ...]:
    """Return the owners that an exchange with these events passes on its way to an answer, in order."""
    events = tuple(events)
    called_on = {_called_on(event) for event in events}
    is_for_others = any(isinstance(event, InputReceived) and event.purpose != "answer" for event in events)
    left_out = ANSWERING if is_for_others else frozenset()
    return tuple(owner for owner in PATH if owner not in left_out and (owner not in ON_DEMAND or owner in called_on))


def _called_on(event: Event) -> str | None:
    """Return the owner that an event asks for something; None or empty if it asks nobody."""
    if isinstance(event, ModeSelected):
        return "act" if event.terminal_mode is None else None
    return entry_of(event).asks


def _node(each: Recorded, cause: Recorded | None, first: Recorded, children: dict[str, list[Recorded]]) -> Node:
    envelope, headers = each.envelope, each.stored.headers
    return Node(
        id=envelope.id,
        topic=envelope.topic,
        owner=CATALOGUE[envelope.topic].owner,
        seq=each.stored.seq,
        body=msgspec.to_builtins(each.message.event),
        since_start_ms=_milliseconds(first, each),
        since_cause_ms=_milliseconds(cause or first, each),
        decided_us=read_whole_number(headers.get(LATENCY, "")),
        by=envelope.source,
        build=envelope.build,
        budget_us=read_whole_number(headers.get(BUDGET, "")),
        led_to=tuple(_node(child, each, first, children) for child in children.get(envelope.id, ())),
    )


def _milliseconds(start: Recorded, end: Recorded) -> float:
    return round((end.stored.time_ns - start.stored.time_ns) / 1e6, 3)


def _causes_of_end(recorded: Sequence[Recorded], by_id: Mapping[str, Recorded]) -> tuple[Recorded, ...]:
    """Return the events that led to the end, from the input (or the first known cause) on.

    An exchange that waited for an unserved stage is ended because of an event about that stage, which belongs to no
    exchange. Then the exchange's last event before the end takes the place of the cause: the stage was to act on it.
    """
    step = next((each for each in recorded if each.envelope.topic == TERMINAL), None)
    chain: dict[str, Recorded] = {}
    while step is not None and step.envelope.id not in chain:
        chain[step.envelope.id] = step
        if step.envelope.topic == ROOT_TOPIC:
            break
        cause = by_id.get(step.envelope.cause)
        step = _event_before(recorded, step) if cause is None and _unserved(step) else cause
    return tuple(reversed(chain.values()))


def _unserved(each: Recorded) -> str:
    """Return the unserved stage that an exchange ended because of; empty if it ended otherwise."""
    event = each.message.event
    lack, _, stage = event.reason.partition(": ") if isinstance(event, ResponseEmitted) else ("", "", "")
    return stage if lack in get_args(Lack) else ""


def _event_before(recorded: Sequence[Recorded], end: Recorded) -> Recorded | None:
    return next((each for each in reversed(recorded) if each.stored.seq < end.stored.seq), None)


def _why_stopped(chain: Sequence[Recorded], last: Recorded, unreadable: Sequence[int]) -> str:
    """Return why an exchange went no further: the event that ended it, or that it has no end yet."""
    if not chain and unreadable:
        return f"it is not known how far the exchange came: {_event_text(last)} is the last event that can be read"
    if not chain:
        return f"the exchange has no end yet: {_event_text(last)} is its last event"
    if stage := _unserved(chain[-1]):
        return f"the exchange ended first: nobody served {stage}, which had the next word"
    if len(chain) == 1:
        return "the exchange ended first, by an event that is not among its own"
    return f"the exchange ended first, by {_event_text(chain[-2])}"


def _event_text(each: Recorded) -> str:
    return f"{each.envelope.topic.removeprefix(f'{ROOT}.')} (sequence {each.stored.seq})"
