"""Redaction: replacing people's words in events, so that their decisions can be shown to strangers.

Each personal text is replaced by a keyed hash (HMAC-SHA256): equal texts have equal hashes within an export, and
without the key nobody can test guesses. A verification treats such an event as one whose words were forgotten:
decisions that need the words are unverified, with the reason ``sealed``. Two further kinds of text become hashes in
events that stay readable, since deciders only copy and compare them: texts that repeat some of a person's words (such
as the known phrase that an input held), and what callers and operators wrote (who ordered something, and why).
Identifiers (agent, session, exchange) and numbers stay.
"""

import hmac
from typing import cast

import msgspec

from events.decoding import Recorded, decode
from events.errors import Refused
from events.ledger.checking.chain import GENESIS
from events.ledger.rows import link_row, to_row, topic_of_subject
from events.log import Record, Seal, Stored
from events.sealing.cipher import SessionKey
from events.sealing.sealed_texts import CLOSED_TEXT, KEY_DESTROYED, SEALED_HEADER, sealed_record
from schemas.catalogue import CATALOGUE, decode_event, upcast_body
from schemas.entry import Entry
from schemas.envelope import VERSION, decode_headers
from schemas.errors import VocabularyError
from schemas.event import Event, encode_event, topic_of
from schemas.vocabulary.ledger import LedgerAnchored
from schemas.wording.personal import change_personal, personal_location, unsealed_location
from schemas.wording.unknown_fields import change_unknown

MIN_KEY_BYTES = 32
"""Bytes that a redaction's key has at least."""

_ANCHOR = topic_of(LedgerAnchored)


class _Hashes(msgspec.Struct, frozen=True):
    """Takes the place of a session's key in ``sealed_record``: it hashes texts instead of encrypting them."""

    key: bytes
    id: str = KEY_DESTROYED

    def seal(self, _event: str, _pointer: str, text: str) -> str:
        return text if text == CLOSED_TEXT else _hash(self.key, text.encode())


def redacted(stored: Stored, key: bytes) -> Stored:
    """Return a message without people's words; a message that holds none is returned unchanged.

    Sealed texts must have been opened before: words whose key is gone are placeholders then, and stay so. A body of an
    older version is upcast first: its fields may have had other names. Texts in fields that this release does not know
    become hashes. A body that this release cannot read may hold anything, and is replaced as a whole.

    Raises:
        ValueError: the key is shorter than :data:`MIN_KEY_BYTES`.
    """
    if len(key) < MIN_KEY_BYTES:
        raise ValueError(f"a redaction key has at least {MIN_KEY_BYTES} bytes, not {len(key)}")
    entry = CATALOGUE.get(stored.headers.get("ce-type", ""))
    if entry is None or stored.seal is Seal.BROKEN:
        return _with_body_replaced(stored, key)
    try:
        stored = _without_unsealed(_of_current_version(stored, entry, key), entry.event, key)
        headers = {name: value for name, value in stored.headers.items() if name != SEALED_HEADER}
        location = personal_location(entry.event)
        if location is None:
            return stored
        record = sealed_record(Record(stored.subject, headers, stored.data), location, cast(SessionKey, _Hashes(key)))
    except (Refused, VocabularyError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _with_body_replaced(stored, key)
    return msgspec.structs.replace(stored, headers=record.headers, data=record.data, seal=Seal.AS_STORED)


class Redaction:
    """Redacts a whole log, in order. The result has a hash chain of its own.

    Its anchors (the events that hold the chain's head as of some sequence) are changed to match it.

    Attributes:
        original: The head of the original chain, over the messages as stored.
    """

    def __init__(self, key: bytes) -> None:
        """Use a key of :data:`MIN_KEY_BYTES` or more."""
        self.original = GENESIS
        self._key = key
        self._head = GENESIS
        self._heads: dict[int, bytes] = {}

    def take(self, as_stored: Stored, opened: Stored) -> Stored:
        """Return the next message redacted. It is given twice: as it is stored, and with its sealed texts opened."""
        self.original = link_row(self.original, to_row(as_stored))
        result = redacted(opened, self._key)
        if topic_of_subject(result.subject) == _ANCHOR:
            result = self._anchored(result)
        self._head = link_row(self._head, to_row(result))
        self._heads[result.seq] = self._head
        return result

    def _anchored(self, stored: Stored) -> Stored:
        decoded = decode(stored)
        anchor = decoded.message.event if isinstance(decoded, Recorded) else None
        if not isinstance(anchor, LedgerAnchored) or anchor.through_seq not in self._heads:
            return stored
        head = self._heads[anchor.through_seq].hex()
        return msgspec.structs.replace(stored, data=encode_event(msgspec.structs.replace(anchor, head=head)))


def _of_current_version(stored: Stored, entry: Entry, key: bytes) -> Stored:
    """Return a message as this release would have written it, with hashes for texts in fields that it does not know.

    Raises VocabularyError if this release cannot read it.
    """
    version = decode_headers(stored.headers).version
    data = upcast_body(entry.topic, stored.data, version)
    body = msgspec.json.decode(data)
    changed = change_unknown(
        body, decode_event(entry.topic, data, entry.version), lambda text: _hash(key, text.encode())
    )
    if changed != body:
        data = msgspec.json.encode(changed)
    headers = stored.headers if version == entry.version else {**stored.headers, VERSION: str(entry.version)}
    return msgspec.structs.replace(stored, headers=headers, data=data)


def _without_unsealed(stored: Stored, event: type[Event], key: bytes) -> Stored:
    location = unsealed_location(event)
    if location is None:
        return stored
    body = change_personal(location, msgspec.json.decode(stored.data), lambda _, text: _hash(key, text.encode()))
    return msgspec.structs.replace(stored, data=msgspec.json.encode(body))


def _with_body_replaced(stored: Stored, key: bytes) -> Stored:
    headers = {name: value for name, value in stored.headers.items() if name != SEALED_HEADER}
    data = msgspec.json.encode({"redacted": _hash(key, stored.data)})
    return msgspec.structs.replace(stored, headers=headers, data=data, seal=Seal.AS_STORED)


def _hash(key: bytes, text: bytes) -> str:
    return hmac.digest(key, text, "sha256").hex()
