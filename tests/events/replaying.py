"""Replays of small recorded logs, true ones and changed ones."""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from events.log import Stored
from events.replay.replay import Difference, Replay, Report
from schemas.actor import Actor
from schemas.vocabulary.gateway import InputReceived
from tests.actors.scenario import Address
from tests.events.recording import PARTITIONS, Recording
from tests.events.small_actors import DIARIST

PARTITION = PARTITIONS.session_token("session")


HERE = ("reflex", PARTITION)


def verified(actors: Iterable[Actor[Any]], log: Iterable[Stored], *, verify: bool = True, **more: Any) -> Report:
    replay = Replay(tuple(actors), PARTITIONS, verify=verify, **more)
    for stored in log:
        replay.feed(stored)
    return replay.finish()


def consumed(recording: Recording, actor: Actor[Any]) -> int:
    keys = [key for key in recording.leaders if key[0] == actor.name]
    return sum(not own for key in keys for _, own in recording.of(key))


def asked(*texts: str, actor: Actor[Any] = DIARIST, apart: bool = False) -> Recording:
    """Record inputs of one session to an actor that answers each by its number; ``apart``: each after the last."""
    recording = Recording([actor])
    for number, text in enumerate(texts):
        recording.send(InputReceived(text=text), Address(exchange=f"exchange-{number}"))
        if apart:
            recording.settle()
    recording.settle()
    return recording


def renumbered(log: Sequence[Stored]) -> list[Stored]:
    """Return messages without gaps in their sequences; causes keep pointing to what they did."""
    seqs = {stored.seq: place for place, stored in enumerate(log, 1)}
    return [moved(stored, place, seqs) for place, stored in enumerate(log, 1)]


def moved(stored: Stored, seq: int, seqs: dict[int, int]) -> Stored:
    cause = int(stored.headers["ce-causeseq"])
    headers = dict(stored.headers) | {"ce-causeseq": str(seqs.get(cause, cause))}
    return msgspec.structs.replace(stored, seq=seq, headers=headers)


def changed(log: Sequence[Stored], seq: int, *, data: bytes | None = None, **headers: Any) -> list[Stored]:
    """Return a log in which the message at ``seq`` was stored otherwise."""
    was = log[seq - 1]
    renamed = {name.replace("_", "-"): value for name, value in headers.items()}
    now = Stored(seq, was.time_ns, was.subject, dict(was.headers) | renamed, was.data if data is None else data)
    return [*log[: seq - 1], now, *log[seq:]]


def replaced(stored: Stored, seq: int) -> Stored:
    return Stored(seq, stored.time_ns, stored.subject, stored.headers, stored.data)


def first_difference(recording: Recording, log: Iterable[Stored]) -> Difference:
    """Return the difference that a replay meets first; there must be one."""
    report = verified(recording.actors, log)
    assert not report.clean
    assert report.coverage["reflex"].different >= 1
    return report.differences[0]
