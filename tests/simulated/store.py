"""What a stream stores, and the rules by which it takes or refuses an append. Pure: no clock, no chance, no waiting.

The rules are those measured on nats-server 2.15: fences are checked against the state before the whole call; a lone
record is checked for its fence first and then for its message id, and a known id yields the stored sequence; a batch
that holds a known id, or one id twice, is refused whole.
"""

from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from functools import lru_cache
from itertools import combinations

from events.errors import Conflict, Refused
from events.log import MAX_BATCH, MAX_RECORD_BYTES, Append, Fence, Record, Stored
from schemas.envelope import MESSAGE_ID
from schemas.subjects import STORED_ROOT

DEDUPE_WINDOW_NS = 120 * 1_000_000_000
"""How long a message id is known again, by the server's clock."""

STREAM_FILTER = f"{STORED_ROOT}.*.*.>"
MAX_HEADER_BYTES = 2**16 - 1
"""The server keeps the length of a message's headers in 16 bits."""

EVERYTHING = (STREAM_FILTER,)


@lru_cache(maxsize=1 << 16)
def matches(pattern: str, subject: str) -> bool:
    """Whether a subject matches a NATS filter (``*`` one token, ``>`` one or more at the end)."""
    wanted, tokens = pattern.split("."), subject.split(".")
    if wanted[-1] == ">":
        wanted.pop()
        if len(tokens) <= len(wanted):
            return False
    elif len(tokens) != len(wanted):
        return False
    return all(want in ("*", token) for want, token in zip(wanted, tokens, strict=False))


@lru_cache(maxsize=1 << 16)
def overlap(one: str, other: str) -> bool:
    """Whether some subject matches both filters."""
    left, right = one.split("."), other.split(".")
    for a, b in zip(left, right, strict=False):
        if ">" in (a, b):
            return True
        if a != b and "*" not in (a, b):
            return False
    return len(left) == len(right)


def checked_filters(filters: Sequence[str]) -> tuple[str, ...]:
    """Return the filters of a reading (none: the whole stream); raises Refused when two of them overlap."""
    return _checked(tuple(filters)) or EVERYTHING


@lru_cache(maxsize=1 << 12)
def _checked(filters: tuple[str, ...]) -> tuple[str, ...]:
    for one, other in combinations(filters, 2):
        if overlap(one, other):
            raise Refused(f"filters {one!r} and {other!r} overlap: a message may match one only")
    return filters


def checked_records(appends: Sequence[Append]) -> list[Record]:
    """Return the records of an append, in order; raises Refused when there are none, too many, or one is too large."""
    records = [record for append in appends for record in append.records]
    if not records or not all(append.records for append in appends):
        raise Refused("an append needs at least one record; a fence without one would go unchecked")
    if len(records) > MAX_BATCH:
        raise Refused(f"{len(records)} records in one batch: the server takes {MAX_BATCH} at most")
    for record in records:
        if (size := size_of(record)) > MAX_RECORD_BYTES:
            raise Refused(f"a record of {size} bytes on {record.subject}: at most {MAX_RECORD_BYTES} with headers")
        if (size := _headers_size(record)) > MAX_HEADER_BYTES:
            raise Refused(f"{size} bytes of headers on {record.subject}: at most {MAX_HEADER_BYTES}")
    return records


def size_of(record: Record | Stored) -> int:
    """Return a record's bytes on the wire, headers and data together."""
    return len(record.data) + _headers_size(record)


def _headers_size(record: Record | Stored) -> int:
    return sum([len(name) + len(value) + 4 for name, value in record.headers.items()])


class StreamStore:
    """An append-only sequence of messages with JetStream's fences and dedupe window.

    Attributes:
        messages: All of them; the message of sequence n is at n - 1.
        bytes: Their size, headers and data.
        duplicates: How many lone records were answered with the sequence of an earlier one.
    """

    def __init__(self, dedupe_window_ns: int = DEDUPE_WINDOW_NS) -> None:
        self.messages: list[Stored] = []
        self.bytes = 0
        self.duplicates = 0
        # One list of sequences for each set of filters ever asked for, kept up as messages arrive: fences and
        # readings ask for the same few over and over.
        self._sequences: dict[tuple[str, ...], list[int]] = {}
        self._lists_of: dict[str, list[list[int]]] = {}
        self._dedupe_window_ns = dedupe_window_ns
        self._known: dict[str, int] = {}
        self._known_since: deque[tuple[int, str]] = deque()

    def sequences(self, filters: tuple[str, ...]) -> list[int]:
        """Return the ascending sequences of the messages that match any filter; the list grows with the stream."""
        found = self._sequences.get(filters)
        if found is None:
            chosen = {subject for subject in self._lists_of if _any_matches(filters, subject)}
            found = [stored.seq for stored in self.messages if stored.subject in chosen]
            self._sequences[filters] = found
            for subject in chosen:
                self._lists_of[subject].append(found)
        return found

    def last(self, pattern: str) -> int:
        """Return the sequence of the last message that matches a filter, 0 for none."""
        found = self.sequences((pattern,))
        return found[-1] if found else 0

    def read(self, filters: tuple[str, ...], after: int, upto: int, limit: int) -> list[Stored]:
        """Return the first ``limit`` messages with ``after < seq <= upto`` that match any filter."""
        found = self.sequences(filters)
        start = bisect_right(found, after)
        end = min(start + limit, bisect_right(found, upto)) if found and upto < found[-1] else start + limit
        messages = self.messages
        return [messages[seq - 1] for seq in found[start:end]]

    def append(self, appends: Sequence[Append], records: Sequence[Record], now_ns: int) -> int:
        """Store ``records`` (those of ``appends``) at a server time and return the sequence of the last.

        Raises:
            Conflict: a fence does not hold, or an id is known and there is a fence or a batch; nothing is stored.
            Refused: a subject is not the stream's.
        """
        self._forget(now_ns - self._dedupe_window_ns)
        for append in appends:
            if append.fence is not None:
                self._check(append.fence)
        for record in records:
            if record.subject not in self._lists_of:
                self._meet(record.subject)
        ids = [record.headers.get(MESSAGE_ID, "") for record in records]
        if len(records) == 1:
            if (earlier := self._known.get(ids[0])) is not None:
                if any(append.fence is not None for append in appends):
                    raise Conflict(f"the message id is known already, at sequence {earlier}")
                self.duplicates += 1
                return earlier
        else:
            self._check_ids(ids)
        for record, message_id in zip(records, ids, strict=True):
            self._store(record, message_id, now_ns)
        return len(self.messages)

    def _check(self, fence: Fence) -> None:
        last = self.last(fence.filter)
        if last != fence.last:
            raise Conflict(f"another writer was here: {fence.filter} is at {last}, not at {fence.last}")

    def _check_ids(self, ids: Sequence[str]) -> None:
        named = [message_id for message_id in ids if message_id]
        known = next((message_id for message_id in named if message_id in self._known), None)
        if known is not None:
            raise Conflict(f"message {known} of the batch is already stored at {self._known[known]}")
        if len(set(named)) < len(named):
            raise Conflict("a message id occurs twice in the batch")

    def _meet(self, subject: str) -> None:
        if "" in subject.split(".") or not matches(STREAM_FILTER, subject):
            raise Refused(f"{subject!r} is no subject of the stream ({STREAM_FILTER})")
        self._lists_of[subject] = [
            found for filters, found in self._sequences.items() if _any_matches(filters, subject)
        ]

    def _store(self, record: Record, message_id: str, now_ns: int) -> None:
        seq = len(self.messages) + 1
        self.messages.append(Stored(seq, now_ns, record.subject, dict(record.headers), record.data))
        self.bytes += size_of(record)
        for found in self._lists_of[record.subject]:
            found.append(seq)
        if message_id:
            self._known[message_id] = seq
            self._known_since.append((now_ns, message_id))

    def _forget(self, before_ns: int) -> None:
        while self._known_since and self._known_since[0][0] <= before_ns:
            del self._known[self._known_since.popleft()[1]]


@lru_cache(maxsize=1 << 18)
def _any_matches(filters: tuple[str, ...], subject: str) -> bool:
    return any(matches(pattern, subject) for pattern in filters)
