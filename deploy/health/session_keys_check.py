"""Checks that the keys of sealed sessions exist. Without its key a session's texts cannot be read, as if forgotten."""

import base64
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import msgspec

from deploy.health.findings import Finding, Verdict, not_made
from deploy.operating.operator_session import FACTS_SESSION
from events.errors import LogError
from events.jetstream import Connection
from events.jetstream.header_client import read_headers
from events.jetstream.reading.get_message import find_message
from events.jetstream.session_keys import KeyValueKeys
from events.jetstream.stream import subject_counts
from events.loggers import get_logger
from events.sealing.cipher import SessionKey
from events.sealing.keys import key_name_in_headers
from events.sealing.sealed_texts import KEY_DESTROYED, SEALED_HEADER
from schemas.event import topic_of
from schemas.permissions import keys_bucket
from schemas.subjects import topic_filter
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.operator import ForgetOrdered

PUT_BACK = "stop the set and put back a copy of the broker's store that holds the bucket of keys"
"""What to do where keys are gone."""

_PLACES = 64
"""Places of the log, evenly spread, at which the next input is looked at, besides the latest of each partition."""

_NEAR = 1_000
"""An order to forget that is at most this many events before an input may have destroyed the key of that input, too."""

_MOST_ORDERS = 1_000
"""The most orders to forget that are looked at; if there are more, every session counts as forgotten."""

_INPUTS, _ORDERS = (topic_filter(topic_of(kind)) for kind in (InputReceived, ForgetOrdered))
_logger = get_logger("neuraxis.keys")


class KeyCount(msgspec.Struct, frozen=True):
    """How many sessions :func:`count_keys` looked at, and in how many of them words have no key any more.

    ``seq`` is the sequence of an input with such words; 0: there is none.
    """

    checked: int
    missing: int
    seq: int = 0


class _Sealed(msgspec.Struct, frozen=True):
    """Where an input is, the name of its session's key, and the id of the key that it is sealed with."""

    seq: int
    name: str
    key: str


async def count_keys(connection: Connection, stream: str) -> KeyCount:
    """Look for the keys of the last input in each partition of the log, and of some inputs all over it.

    A key that was destroyed on purpose has left an entry that says so: it does not count as missing. Nor does one of
    a session that was forgotten, and that spoke again under a new key.

    Raises:
        LogError: the broker cannot be asked.
    """
    found = {each.seq: each async for each in _sealed_inputs(connection, stream)}
    if not found:
        return KeyCount(0, 0)
    store, names = KeyValueKeys(connection, keys_bucket(stream)), {each.name for each in found.values()}
    entries = dict(await store.load(names))
    for name in names - entries.keys():
        # A server whose copy lags behind has no new key yet: only the leader can say that there is none.
        if (entry := await store.confirm(name)) is not None:
            entries[name] = entry
    keys = {name: SessionKey(entry.secret).id for name, entry in entries.items() if entry.secret}
    lacking = [each for each in found.values() if each.name not in entries]
    under_others = [each for each in found.values() if keys.get(each.name, each.key) != each.key]
    lacking += await _not_forgotten(connection, stream, under_others)
    missing = {each.name for each in lacking}
    return KeyCount(len(names), len(missing), min((each.seq for each in lacking), default=0))


async def _sealed_inputs(connection: Connection, stream: str) -> AsyncIterator[_Sealed]:
    subjects = await subject_counts(connection, stream, _INPUTS)
    async for answer in connection.latest(stream, subjects):
        if (sealed := _sealed(int(answer.headers["Nats-Sequence"]), answer.headers)) is not None:
            yield sealed
    state, reached = (await connection.api(f"STREAM.INFO.{stream}"))["state"], 0
    first, length = state["first_seq"], state["last_seq"] - state["first_seq"] + 1
    for place in (first + length * number // _PLACES for number in range(_PLACES)):
        if place <= reached:
            continue
        found = await find_message(connection, stream, {"seq": place, "next_by_subj": _INPUTS})
        if found is None:
            return
        reached = int(found["seq"])
        if (sealed := _sealed(reached, _headers(found))) is not None:
            yield sealed


def _sealed(seq: int, headers: Mapping[str, str]) -> _Sealed | None:
    """Return what is known of an input's key; None if no words of it are sealed with a key that was there."""
    if (key := headers.get(SEALED_HEADER, KEY_DESTROYED)) == KEY_DESTROYED:
        return None
    return _Sealed(seq, _name(headers), key)


def _name(headers: Mapping[str, str]) -> str:
    return key_name_in_headers(headers.get("ce-agent", ""), headers.get("ce-session", ""))


def _headers(found: Mapping[str, Any]) -> Mapping[str, str]:
    return read_headers(base64.b64decode(found.get("hdrs", "")))


async def _not_forgotten(connection: Connection, stream: str, inputs: Sequence[_Sealed]) -> list[_Sealed]:
    """Return the inputs whose sessions were not ordered to be forgotten since, or about then."""
    left, seq = list(inputs), max(1, min((each.seq for each in inputs), default=0) - _NEAR)
    for _ in range(_MOST_ORDERS):
        if not left or (found := await find_message(connection, stream, {"seq": seq, "next_by_subj": _ORDERS})) is None:
            return left
        ordered, headers = int(found["seq"]), _headers(found)
        if headers.get("ce-session") != FACTS_SESSION:  # an order to forget facts destroys no key
            name = _name(headers)
            left = [each for each in left if each.name != name or each.seq - _NEAR > ordered]
        seq = ordered + 1
    return []


async def log_lost_keys(connection: Connection, stream: str) -> None:
    """Write to this process's log if keys are missing; raises LogError."""
    keys = await count_keys(connection, stream)
    if keys.missing:
        found = judge_keys(keys)
        _logger.error("session_keys_lost", looked=keys.checked, missing=keys.missing, remedy=found.remedy)


async def examine_keys(connection: Connection, stream: str) -> Finding:
    """Check the keys of the latest sessions, and of some before them."""
    try:
        return judge_keys(await count_keys(connection, stream))
    except LogError as wrong:
        return not_made("keys", "look for them", wrong, connected=connection.connected, if_gone=PUT_BACK)


def judge_keys(keys: KeyCount) -> Finding:
    """Judge whether the sessions looked at can be read."""
    if not keys.checked:
        return Finding("keys", Verdict.OK, "no session's words are sealed")
    if not keys.missing:
        return Finding("keys", Verdict.OK, f"those of the {keys.checked} sessions looked at are there")
    return Finding(
        "keys",
        Verdict.FAIL,
        f"{keys.missing} of the {keys.checked} sessions looked at lack that of what was said, and were not forgotten: "
        f"it stays closed, such as the input at sequence {keys.seq:,}",
        f"{PUT_BACK}; where there is no copy, `neuraxis forget` those sessions: then they count as forgotten",
    )
