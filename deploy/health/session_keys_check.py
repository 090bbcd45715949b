"""Checks that the keys of sealed sessions exist. Without its key a session's texts cannot be read, as if forgotten."""

import msgspec

from deploy.health.findings import Finding, Verdict, not_made
from events.errors import LogError
from events.jetstream import Connection
from events.jetstream.session_keys import KeyValueKeys
from events.jetstream.stream import subject_counts
from events.loggers import get_logger
from events.sealing.keys import key_name_in_headers
from events.sealing.sealed_texts import KEY_DESTROYED, SEALED_HEADER
from schemas.event import topic_of
from schemas.permissions import keys_bucket
from schemas.subjects import topic_filter
from schemas.vocabulary.gateway import InputReceived

PUT_BACK = "stop the set and put back a copy of the broker's store that holds the bucket of keys"
"""What to do where keys are gone."""

_logger = get_logger("neuraxis.keys")


class KeyCount(msgspec.Struct, frozen=True):
    """The result of :func:`count_latest_keys`: how many sessions were checked, and how many of them have no key."""

    checked: int
    missing: int


async def count_latest_keys(connection: Connection, stream: str) -> KeyCount:
    """Look for the key of the session that last had an input, in each partition of the log.

    A key that was destroyed on purpose has left an entry that says so: it does not count as missing.

    Raises:
        LogError: the broker cannot be asked.
    """
    subjects = await subject_counts(connection, stream, topic_filter(topic_of(InputReceived)))
    names = {
        key_name_in_headers(answer.headers.get("ce-agent", ""), answer.headers.get("ce-session", ""))
        async for answer in connection.latest(stream, subjects)
        if answer.headers.get(SEALED_HEADER, KEY_DESTROYED) != KEY_DESTROYED
    }
    if not names:
        return KeyCount(0, 0)
    store = KeyValueKeys(connection, keys_bucket(stream))
    lacking = names - (await store.load(names)).keys()
    # A server whose copy lags behind has no new key yet: only the leader can say that there is none.
    return KeyCount(len(names), sum([await store.confirm(name) is None for name in lacking]))


async def log_lost_keys(connection: Connection, stream: str) -> None:
    """Write to this process's log if keys are missing; raises LogError."""
    keys = await count_latest_keys(connection, stream)
    if keys.missing:
        found = judge_keys(keys)
        _logger.error("session_keys_lost", looked=keys.checked, missing=keys.missing, remedy=found.remedy)


async def examine_keys(connection: Connection, stream: str) -> Finding:
    """Check the keys of the latest sessions."""
    try:
        return judge_keys(await count_latest_keys(connection, stream))
    except LogError as wrong:
        return not_made("keys", "look for them", wrong, connected=connection.connected, if_gone=PUT_BACK)


def judge_keys(keys: KeyCount) -> Finding:
    """Judge whether the latest sessions can be read."""
    if not keys.checked:
        return Finding("keys", Verdict.OK, "no session's words are sealed")
    if not keys.missing:
        return Finding("keys", Verdict.OK, f"those of the {keys.checked} sessions looked at are there")
    return Finding(
        "keys",
        Verdict.FAIL,
        f"{keys.missing} of the {keys.checked} sessions looked at have none, and were not forgotten: what was said in "
        "them stays closed",
        PUT_BACK,
    )
