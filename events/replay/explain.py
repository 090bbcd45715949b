"""Why an exchange ended as it did: its events as a tree of causes, with the times between them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import get_args

import msgspec

from events.codec import Recorded, Unreadable, decode
from events.log import Stored
from schemas.availability import Lack
from schemas.catalogue import CATALOGUE, entry_of
from schemas.envelope import BUDGET, LATENCY
from schemas.event import ROOT, Event
from schemas.stages import ON_DEMAND, PATH
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.responder import ResponseEmitted
from schemas.vocabulary.router import ModeSelected


class Node(msgspec.Struct, frozen=True):
    """An event and what it led to, in stream order.

    ``since_start_ms`` and ``since_cause_ms`` are differences of server timestamps; ``decided_us`` how long the
    decision itself took, None where it was not measured, ``budget_us`` its stage's latency budget where that was less.
    ``by`` is the process that decided, ``build`` with what.
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
    empty while there is no end. ``complete`` says whether it begins with the input. ``unreached`` names the owners
    of the full path that had no say, ``absent`` tells for them, and for those that nothing called on, why.
    ``unreadable`` lists sequences of messages of this exchange that cannot be decoded.
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
"""The owners of the path that have no part in an input which others answer."""

TERMINAL = "forged_id.response.emitted"
ROOT_TOPIC = "forged_id.input.received"
REMARKS = frozenset(
    {"forged_id.router.feedback_observed", "forged_id.feedback.given", "forged_id.feedback.harm_reported"}
)
"""What is said of an exchange afterwards, perhaps days later: no part of its way, nor of the time that it took."""


def explain(messages: Iterable[Stored], path: Sequence[str] | None = None) -> Explanation | None:
    """Build the explanation of one exchange from its stored messages, in stream order; None when there are none.

    ``path`` names the owners an input passes on its way to an answer; by default :data:`PATH`, without those that
    nothing in the exchange called on.
    """
    recorded: list[Recorded] = []
    unreadable: list[int] = []
    for stored in messages:
        found = decode(stored)
        if isinstance(found, Unreadable):
            unreadable.append(stored.seq)
        else:
            recorded.append(found)
    if not recorded:
        return None
    first = recorded[0]
    by_id = {one.envelope.id: one for one in recorded}
    children: dict[str, list[Recorded]] = {}
    roots: list[Recorded] = []
    for one in recorded:
        if one.envelope.cause in by_id and one.envelope.cause != one.envelope.id:
            children.setdefault(one.envelope.cause, []).append(one)
        else:
            roots.append(one)
    events = [one.message.event for one in recorded]
    own = [one for one in recorded if one.envelope.topic not in REMARKS]
    spoke = {CATALOGUE[one.envelope.topic].owner for one in own}
    latest = (own or recorded)[-1]
    unreached = tuple(owner for owner in path or path_of(events) if owner not in spoke)
    way = _way(recorded, by_id)
    uncalled = {owner: why for owner, why in ON_DEMAND.items() if owner not in spoke and owner not in unreached}
    return Explanation(
        exchange=first.envelope.exchange,
        agent=first.envelope.agent,
        session=first.envelope.session,
        roots=tuple(_node(root, None, first, children) for root in roots),
        complete=bool(way) and way[0].envelope.topic == ROOT_TOPIC,
        critical_path=tuple(one.stored.seq for one in way),
        total_ms=_milliseconds(first, latest),
        unreached=unreached,
        absent=dict.fromkeys(unreached, _stop(way, latest)) | uncalled,
        unreadable=tuple(unreadable),
    )


def path_of(events: Iterable[Event]) -> tuple[str, ...]:
    """Return the owners that an exchange with these events passes on its way to an answer, in order."""
    events = tuple(events)
    called_on = {_called_on(event) for event in events}
    theirs = any(isinstance(event, InputReceived) and event.purpose != "answer" for event in events)
    left_out = ANSWERING if theirs else frozenset()
    return tuple(owner for owner in PATH if owner not in left_out and (owner not in ON_DEMAND or owner in called_on))


def _called_on(event: Event) -> str | None:
    if isinstance(event, ModeSelected):
        return "act" if event.terminal_mode is None else None
    return entry_of(event).asks


def _node(one: Recorded, cause: Recorded | None, first: Recorded, children: dict[str, list[Recorded]]) -> Node:
    envelope, headers = one.envelope, one.stored.headers
    took, budget = headers.get(LATENCY, ""), headers.get(BUDGET, "")
    return Node(
        id=envelope.id,
        topic=envelope.topic,
        owner=CATALOGUE[envelope.topic].owner,
        seq=one.stored.seq,
        body=msgspec.to_builtins(one.message.event),
        since_start_ms=_milliseconds(first, one),
        since_cause_ms=_milliseconds(cause or first, one),
        decided_us=int(took) if took.isdigit() else None,
        by=envelope.source,
        build=envelope.build,
        budget_us=int(budget) if budget.isdigit() else None,
        led_to=tuple(_node(child, one, first, children) for child in children.get(envelope.id, ())),
    )


def _milliseconds(start: Recorded, end: Recorded) -> float:
    return round((end.stored.time_ns - start.stored.time_ns) / 1e6, 3)


def _way(recorded: Sequence[Recorded], by_id: Mapping[str, Recorded]) -> tuple[Recorded, ...]:
    """Return the chain of causes that the end has, causes first: to the input, or as far back as they are known.

    The end of an exchange that waited for a stage which nobody serves is caused by that fact, which is no exchange's.
    It follows what was said last: after that the stage had the next word.
    """
    step = next((one for one in recorded if one.envelope.topic == TERMINAL), None)
    chain: dict[str, Recorded] = {}
    while step is not None and step.envelope.id not in chain:
        chain[step.envelope.id] = step
        if step.envelope.topic == ROOT_TOPIC:
            break
        cause = by_id.get(step.envelope.cause)
        step = _said_last(recorded, step) if cause is None and _unserved(step) else cause
    return tuple(reversed(chain.values()))


def _unserved(one: Recorded) -> str:
    """Return the unserved stage that an exchange ended because of; empty if it ended otherwise."""
    event = one.message.event
    lack, _, stage = event.reason.partition(": ") if isinstance(event, ResponseEmitted) else ("", "", "")
    return stage if lack in get_args(Lack) else ""


def _said_last(recorded: Sequence[Recorded], end: Recorded) -> Recorded | None:
    return next((one for one in reversed(recorded) if one.stored.seq < end.stored.seq), None)


def _stop(way: Sequence[Recorded], last: Recorded) -> str:
    """Say what kept an exchange from going on: what its end followed from, or that it has none yet."""
    if not way:
        return f"the exchange has no end yet: {_named(last)} is its last event"
    if stage := _unserved(way[-1]):
        return f"the exchange ended first: nobody served {stage}, which had the next word"
    if len(way) == 1:
        return "the exchange ended first, by an event that is not among its own"
    return f"the exchange ended first, by {_named(way[-2])}"


def _named(one: Recorded) -> str:
    return f"{one.envelope.topic.removeprefix(f'{ROOT}.')} (sequence {one.stored.seq})"
