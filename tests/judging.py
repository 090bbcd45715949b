"""Judging a finished run from its log alone: the promises that hold whatever was killed on the way."""

import sys
from collections import Counter
from collections.abc import Container, Iterable, Sequence
from typing import Any

import msgspec

from events.decoding import Recorded, decode, is_spontaneous
from events.log import Stored
from events.replay.replay import Replay, Report
from schemas.actor import Actor
from schemas.event import topic_of
from schemas.persistent import ExpiringMap
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
    # All messages are in memory already: any may wait for as long as its leader took.
    replay = Replay(actors, partitions, verify=True, backlog=sys.maxsize)
    for stored in messages:
        replay.feed(stored)
    return replay, replay.finish()


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What a log at rest shows.

    Attributes:
        accepted: Inputs whose sender was told that they are stored.
        inputs: Inputs in the log: also those whose sender was told nothing.
        ends: Ends of exchanges in the log.
        losses: Accepted inputs that are not in the log, and inputs without an end.
        duplicates: Inputs with several ends, events that are stored twice, decisions that were made twice.
        unclean: What else does not hold: missing causes, decisions that come out otherwise, a ledger's chain.
    """

    accepted: int
    inputs: int
    ends: int
    losses: tuple[str, ...] = ()
    duplicates: tuple[str, ...] = ()
    unclean: tuple[str, ...] = ()

    @property
    def broken(self) -> list[str]:
        """Every promise that is not kept."""
        return [*self.losses, *self.duplicates, *self.unclean]

    def summary(self) -> str:
        """Return the verdict in one line."""
        counts = f"accepted inputs {self.accepted}, inputs in the log {self.inputs}, terminal events {self.ends}"
        faults = f"duplicates {len(self.duplicates)}, losses {len(self.losses)}"
        return f"{counts}, {faults}, verify {'clean' if not self.unclean else f'finds {len(self.unclean)} faults'}"


def verdict_on(
    actors: Sequence[Actor[Any]],
    messages: Sequence[Stored],
    accepted: Iterable[str],
    partitions: Partitions,
    replay: tuple[Replay, Report] | None = None,
    chain: Iterable[str] = (),
) -> Verdict:
    """Judge a log at rest. ``replay``: if it is done already; ``chain``: what was found of its ledger.

    One end for each accepted input, which is in the log; no event and no decision twice; a cause in the log for
    every event; every decision comes out the same when made again; nothing undecided, nothing left pending.
    """
    accepted = set(accepted)
    inputs, ends = exchanges(messages, InputReceived), exchanges(messages, ResponseEmitted)
    lost = [f"accepted input {exchange} is not in the log" for exchange in sorted(accepted) if not inputs[exchange]]
    lost += [f"exchange {exchange} has 0 ends" for exchange in sorted(inputs) if not ends[exchange]]
    twice = [f"exchange {exchange} has {count} ends" for exchange, count in sorted(ends.items()) if count > 1]
    twice += [f"input {exchange} is stored {count} times" for exchange, count in sorted(inputs.items()) if count > 1]
    uncaused = [f"exchange {exchange} has an end and no input" for exchange in sorted(ends) if not inputs[exchange]]
    causeless, repeated = _causes(messages)
    return Verdict(
        accepted=len(accepted),
        inputs=inputs.total(),
        ends=ends.total(),
        losses=tuple(lost),
        duplicates=(*twice, *_repeats(messages), *repeated),
        unclean=(*uncaused, *causeless, *_replay(*(replay or replayed(actors, messages, partitions)), ends), *chain),
    )


def broken_promises(
    actors: Sequence[Actor[Any]],
    messages: Sequence[Stored],
    accepted: Iterable[str],
    partitions: Partitions,
    replay: tuple[Replay, Report] | None = None,
) -> list[str]:
    """Return what does not hold of a log at rest, as :func:`verdict_on` judges it; nothing is what we want."""
    return verdict_on(actors, messages, accepted, partitions, replay).broken


def _repeats(messages: Sequence[Stored]) -> Iterable[str]:
    ids = Counter(stored.headers["ce-id"] for stored in messages)
    return (f"event {name} is stored {count} times" for name, count in ids.items() if count > 1)


def _causes(messages: Sequence[Stored]) -> tuple[list[str], list[str]]:
    """Return the events whose causes are not in the log before them, and the decisions that were made again."""
    seen: set[str] = set()
    causeless: list[str] = []
    decided: Counter[tuple[str, str, str, int]] = Counter()
    for stored in messages:
        recorded = decode(stored)
        assert isinstance(recorded, Recorded), stored
        envelope = recorded.envelope
        if envelope.cause and not _is_fact(envelope.topic):
            if envelope.cause not in seen:
                causeless.append(f"event {envelope.id} of {envelope.topic} has no cause in the log")
            # What goes to every partition, such as a stage that is lost, is decided once by each of them.
            where = ".".join(stored.subject.split(".")[1:3])
            decided[where, envelope.topic.split(".")[1], envelope.cause, envelope.index] += 1
        seen.add(envelope.id)
    return causeless, [f"decided {count} times: {key}" for key, count in decided.items() if count > 1]


def _is_fact(topic: str) -> bool:
    """Whether no message leads to an event: settings, and what a shell has measured. What time leads to has a cause."""
    return is_spontaneous(topic) and topic != topic_of(ClockFired)


def _replay(replay: Replay, report: Report, ended: Container[str]) -> Iterable[str]:
    if not report.clean:
        yield f"replay differs: {list(report.differences)}, fold errors {report.fold_errors}"
    yield from owed(replay, report, ended)


def owed(replay: Replay, report: Report, ended: Container[str]) -> list[str]:
    """Return what is still to come of a log: decisions that are not made, and states that wait for something.

    A deadline that was set while its exchange ended is such a state: it lasts until it is over. What an actor gathers
    of an exchange that had ended before, from stages that came too late, is none: it forgets that with time.
    """
    found = []
    if undecided := {name: coverage.pending for name, coverage in report.coverage.items() if coverage.pending}:
        found.append(f"undecided at rest: {undecided}")
    for (name, partition), view in replay.views.items():
        pending = getattr(getattr(view.state, "exchanges", view.state), "pending", None)
        if isinstance(pending, ExpiringMap):
            pending = [exchange for exchange in (*pending.young, *pending.old) if exchange not in ended]
        if pending:
            found.append(f"{name}/{partition} leaks pending state: {pending}")
    return found
