"""What a replay keeps of messages that wait, and reads from events further on in the log."""

from collections.abc import Mapping
from types import MappingProxyType

from events.decoding import Recorded
from events.log import Stored
from schemas.catalogue import CATALOGUE
from schemas.envelope import CAUSE_SEQ
from schemas.intake.whole_numbers import read_whole_number
from schemas.subjects import split_stored

_NO_HEADERS: Mapping[str, str] = MappingProxyType({})


def without_bytes(consumed: Recorded) -> Recorded:
    """Return a message without headers and bytes, which are not needed again: it takes less memory while it waits."""
    stored = consumed.stored
    bare = Stored(stored.seq, stored.time_ns, stored.subject, _NO_HEADERS, b"", stored.seal)
    return Recorded(bare, consumed.envelope, consumed.message)


def decided_before(own: Stored) -> int:
    """Return the sequence before which, as an own event shows, its partition had decided all that it consumed."""
    cause_seq = read_whole_number(own.headers.get(CAUSE_SEQ, "")) or 0
    entry = CATALOGUE.get(split_stored(own.subject)[0])
    # A spontaneous event (settings, a timer) comes after the message of its cause sequence is decided.
    return cause_seq + 1 if entry is not None and entry.spontaneous else cause_seq
