"""Judging a finished run from its log alone: the promises that hold whatever was killed on the way."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from events.decoding import Recorded, decode, is_spontaneous
from events.log import Stored
from events.replay.replay import Replay, Report
from schemas.actor import Actor
from schemas.event import topic_of
from schemas.subjects import Partitions, split_stored
from schemas.vocabulary.clock import ClockFired
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.responder import ResponseEmitted


def exchanges(messages: Iterable[Stored], kind: type[Any]) -> Counter[str]:
    """Count the events of one type by exchange."""
    topic = topic_of(kind)
    return Counter(s.headers["ce-exchange"] for s in messages if split_stored(s.subject)[0] == topic)


def unfinished(messages: Sequence[Stored]) -> list[str]:
    """Return the exchanges that have an input and no end, sorted."""
    ended = exchanges(messages, ResponseEmitted)
    return sorted(exchange for exchange in exchanges(messages, InputReceived) if not ended[exchange])


def replayed(actors: Sequence[Actor[Any]], messages: Iterable[Stored], partitions: Partitions) -> tuple[Replay, Report]:
    """Replay a log, making every decision again."""
    replay = Replay(actors, partitions, verify=True)
    for stored in messages:
        replay.feed(stored)
    return replay, replay.finish()


def broken_promises(
    actors: Sequence[Actor[Any]],
    messages: Sequence[Stored],
    accepted: Iterable[str],
    partitions: Partitions,
    replay: tuple[Replay, Report] | None = None,
) -> list[str]:
    """Return what does not hold of a log at rest; nothing is what we want. ``replay``: if it is done already.

    One end for each accepted input, which is in the log; no event and no decision twice; a cause in the log for
    every event; every decision comes out the same when made again; nothing undecided, nothing left pending.
    """
    return [
        *_ends(messages, set(accepted)),
        *_repeats(messages),
        *_causes(messages),
        *_replay(*(replay or replayed(actors, messages, partitions))),
    ]


def _ends(messages: Sequence[Stored], accepted: set[str]) -> Iterable[str]:
    inputs, ends = exchanges(messages, InputReceived), exchanges(messages, ResponseEmitted)
    for exchange in sorted(accepted | set(inputs)):
        if not inputs[exchange]:
            yield f"accepted input {exchange} is not in the log"
        if ends[exchange] != 1:
            yield f"exchange {exchange} has {ends[exchange]} ends"


def _repeats(messages: Sequence[Stored]) -> Iterable[str]:
    ids = Counter(stored.headers["ce-id"] for stored in messages)
    return (f"event {name} is stored {count} times" for name, count in ids.items() if count > 1)


def _causes(messages: Sequence[Stored]) -> Iterable[str]:
    seen: set[str] = set()
    decided: Counter[tuple[str, str, str, int]] = Counter()
    for stored in messages:
        recorded = decode(stored)
        assert isinstance(recorded, Recorded), stored
        envelope = recorded.envelope
        if envelope.cause and not _is_fact(envelope.topic):
            if envelope.cause not in seen:
                yield f"event {envelope.id} of {envelope.topic} has no cause in the log"
            # What goes to every partition, such as a stage that is lost, is decided once by each of them.
            where = ".".join(stored.subject.split(".")[1:3])
            decided[where, envelope.topic.split(".")[1], envelope.cause, envelope.index] += 1
        seen.add(envelope.id)
    yield from (f"decided {count} times: {key}" for key, count in decided.items() if count > 1)


def _is_fact(topic: str) -> bool:
    """Whether no message leads to an event: settings, and what a shell has measured. What time leads to has a cause."""
    return is_spontaneous(topic) and topic != topic_of(ClockFired)


def _replay(replay: Replay, report: Report) -> Iterable[str]:
    if not report.clean:
        yield f"replay differs: {report.differences[:1]}, fold errors {report.fold_errors}"
    undecided = {name: coverage.pending for name, coverage in report.coverage.items() if coverage.pending}
    if undecided:
        yield f"undecided at rest: {undecided}"
    for (name, partition), view in replay.views.items():
        pending = getattr(getattr(view.state, "exchanges", view.state), "pending", None)
        if pending:
            yield f"{name}/{partition} leaks pending state: {pending}"
