"""What a replay needs of messages that wait, and of events that it looks ahead to."""

from collections.abc import Mapping
from types import MappingProxyType

from events.codec import Recorded
from events.log import Stored
from schemas.catalogue import CATALOGUE
from schemas.envelope import CAUSE_SEQ
from schemas.subjects import split_stored

_NO_HEADERS: Mapping[str, str] = MappingProxyType({})


def without_wrapping(consumed: Recorded) -> Recorded:
    """Return a message without its headers and bytes, which are not needed again, to save memory while it waits."""
    stored = consumed.stored
    bare = Stored(stored.seq, stored.time_ns, stored.subject, _NO_HEADERS, b"", stored.seal)
    return Recorded(bare, consumed.envelope, consumed.message)


def settles_before(own: Stored) -> int:
    """Return the sequence before which an own event shows that its partition decided all that it consumed."""
    text, entry = own.headers.get(CAUSE_SEQ, ""), CATALOGUE.get(split_stored(own.subject)[0])
    place = int(text) if text.isascii() and text.isdecimal() else 0
    # Settings and timers stand behind the message at their place; a decision's events belong to it.
    return place + 1 if entry is not None and entry.spontaneous else place
