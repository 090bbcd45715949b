"""Messages that no program of ours writes, on the subjects that ours read: drawn from a seed."""

import random
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec

from actors.registry import ACTORS
from events.decoding import Recorded, decode
from events.log import Stored
from schemas.catalogue import CATALOGUE
from schemas.entry import Entry
from schemas.envelope import Envelope, encode_headers
from schemas.event import encode_event, topic_of
from schemas.identity import event_id
from schemas.subjects import Partitions, stored_subject

CAUSE = "a wrong cause"
DEEP = 5_000
"""Levels of nesting: far more than a parser may follow by calling itself."""
LARGE = 900 * 1024
"""Bytes: next to the most that a broker takes, with headers."""
WRONG_VALUES = (None, True, -1, 10**30, 1.5, "", "\x00", "x" * 2000, [], [[]], {}, {"a": None}, [1, "a"])
WRONG_VERSIONS = ("0", "-1", "99", "1.5", "x", "", "9" * 40)
WRONG_WORDS = ("", "%", "%ff", "%00", "%ed%a0%80", "a" * 3000, "..", "*", ">")
WRONG_NUMBERS = ("x", "-1", "9" * 40, "1e3", "")


class Bad(msgspec.Struct, frozen=True):
    """A message, and in words what is wrong with it."""

    wrong: str
    subject: str
    headers: Mapping[str, str]
    data: bytes

    @property
    def is_readable(self) -> bool:
        """Whether this release can read and fold it: then nothing tells it from what its owner writes."""
        delivery = decode(Stored(1, 1, self.subject, dict(self.headers), self.data))
        # Settings with a higher behaviour are those of a newer release.
        return isinstance(delivery, Recorded) and getattr(delivery.message.event, "behaviour", 1) <= 1


def bad_messages(seed: int, each: int, partitions: Partitions) -> Iterator[Bad]:
    """Draw ``each`` messages for every subject of the catalogue, one of them sound, but forged.

    An actor's own subjects get none that are unreadable, or that name another cause: its login alone may write there. A
    worker that cannot read what its actor has written ends, and says so (a damaged log, or a newer release), and one
    that reads which message its actor has decided takes those before it to be decided, too.
    """
    draw = random.Random(f"fuzz-{seed}")
    for number, entry in enumerate(CATALOGUE.values()):
        forged = _sound(entry, number, seed, partitions)
        yield forged
        for kind, damage in draw.sample(DAMAGES, min(each - 1, len(DAMAGES))):
            bad = msgspec.structs.replace(damage(draw, forged), wrong=f"{kind} on {entry.topic}")
            if entry.owner not in ACTORS or (bad.is_readable and kind != CAUSE):
                yield bad


def _sound(entry: Entry, number: int, seed: int, partitions: Partitions) -> Bad:
    agent, session = f"fuzzed-{number % 3}", f"fuzzed-{number % 7}"
    topic = topic_of(entry.event)
    envelope = Envelope(
        id=event_id(f"fuzz-{seed}", topic, number),
        topic=topic,
        source="fuzz",
        time="2026-01-01T00:00:00Z",
        agent=agent,
        session=session,
        exchange=event_id("exchange", "fuzz", number % 11),
        version=entry.version,
    )
    subject = stored_subject(topic, partitions.agent_token(agent), partitions.session_token(session))
    return Bad(f"forged {topic}", subject, encode_headers(envelope), encode_event(entry.sample))


def _body(make: Callable[[random.Random, bytes], bytes]) -> Callable[[random.Random, Bad], Bad]:
    def damaged(draw: random.Random, sound: Bad) -> Bad:
        return msgspec.structs.replace(sound, data=make(draw, sound.data), headers=_another_id(draw, sound.headers))

    return damaged


def _header(make: Callable[[random.Random, dict[str, str]], None]) -> Callable[[random.Random, Bad], Bad]:
    def damaged(draw: random.Random, sound: Bad) -> Bad:
        headers = dict(_another_id(draw, sound.headers))
        make(draw, headers)
        return msgspec.structs.replace(sound, headers=headers)

    return damaged


def _another_id(draw: random.Random, headers: Mapping[str, str]) -> Mapping[str, str]:
    return {**headers, "ce-id": f"{draw.getrandbits(128):032x}", "Nats-Msg-Id": f"{draw.getrandbits(128):032x}"}


def _of_wrong_type(draw: random.Random, data: bytes) -> bytes:
    fields: dict[str, Any] = msgspec.json.decode(data)
    name = draw.choice(sorted(fields))
    return msgspec.json.encode({**fields, name: draw.choice(WRONG_VALUES)})


def _lone_surrogate(draw: random.Random, data: bytes) -> bytes:
    fields: dict[str, Any] = msgspec.json.decode(data)
    texts = sorted(name for name, value in fields.items() if isinstance(value, str))
    name = draw.choice(texts)
    return msgspec.json.encode({**fields, name: "@@"}).replace(b'"@@"', rb'"\ud800"')


def _without_one(draw: random.Random, headers: dict[str, str]) -> None:
    del headers[draw.choice(sorted(headers))]


def _wrong(name: str, values: tuple[str, ...]) -> Callable[[random.Random, dict[str, str]], None]:
    def change(draw: random.Random, headers: dict[str, str]) -> None:
        headers[name] = draw.choice(values)

    return change


DAMAGES: tuple[tuple[str, Callable[[random.Random, Bad], Bad]], ...] = (
    ("no body", _body(lambda draw, data: b"")),
    ("half a body", _body(lambda draw, data: data[: draw.randrange(1, len(data))])),
    ("no object", _body(lambda draw, data: draw.choice([b"null", b"[]", b'"x"', b"7", b"NaN", b"true"]))),
    ("a field of the wrong type", _body(_of_wrong_type)),
    ("bad UTF-8", _body(lambda draw, data: data.replace(b'"', b'"\xff\xfe', 3))),
    ("a lone surrogate", _body(_lone_surrogate)),
    ("a NUL", _body(lambda draw, data: data.replace(b":", b":\x00", 1))),
    ("deep nesting", _body(lambda draw, data: b'{"topic":' * DEEP + b"1" + b"}" * DEEP)),
    ("deep lists", _body(lambda draw, data: data[:-1] + b',"later":' + b"[" * DEEP + b"]" * DEEP + b"}")),
    ("a huge body", _body(lambda draw, data: data[:-1] + b',"later":"' + b"x" * LARGE + b'"}')),
    ("a field twice", _body(lambda draw, data: data[:-1] + b"," + data[1:])),
    ("another event's body", _body(lambda draw, data: encode_event(draw.choice(list(CATALOGUE.values())).sample))),
    ("no headers", lambda draw, sound: msgspec.structs.replace(sound, headers={})),
    ("a header less", _header(_without_one)),
    ("a wrong version", _header(_wrong("ce-dataversion", WRONG_VERSIONS))),
    ("another subject in ce-type", _header(_wrong("ce-type", tuple(CATALOGUE)))),
    ("a wrong session", _header(_wrong("ce-session", WRONG_WORDS))),
    ("a wrong agent", _header(_wrong("ce-agent", WRONG_WORDS))),
    ("a wrong exchange", _header(_wrong("ce-exchange", WRONG_WORDS))),
    (CAUSE, _header(_wrong("ce-causeseq", WRONG_NUMBERS))),
    ("a wrong index", _header(_wrong("ce-index", WRONG_NUMBERS))),
    ("a wrong time", _header(_wrong("ce-time", WRONG_WORDS))),
)
"""What can be wrong, in words -> how a sound message becomes that."""
