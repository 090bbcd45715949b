"""The position of a reader of the event stream, and when it connects again after a failure. No I/O."""

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from neuraxis.calls import Call
from neuraxis.errors import (
    BadAnswer,
    Misconfigured,
    NeuraxisError,
    NotReachable,
    RateLimited,
    ServerFailed,
    Unavailable,
)
from neuraxis.events import REPLACED, Event, event_of_row, is_same, matches
from neuraxis.sse import Decoder

EVENTS_PATH = "/api/events"
SILENCE_S = 45.0
"""Seconds without a byte after which a connection counts as lost: the server sends a comment every 15 seconds."""

_LONGEST_PAUSE_S = 5.0  # before a new connection


def end_of_log() -> Call[int]:
    """Ask for the sequence at which the log ends now.

    A reader that starts there misses nothing, even if connections break.
    """
    return Call(method="GET", path="/api/overview", read=_read_end_of_log, repeatable=True)


def end_of_ledger() -> Call[int]:
    """Ask for the end of the ledger, a copy of the log just behind it: a key of one agent may not ask for the log's."""
    return Call(method="GET", path="/api/exchanges", query={"limit": "1"}, read=_read_head, repeatable=True)


def _read_end_of_log(body: Any) -> int:
    return _read_head(body.get("now") if isinstance(body, dict) else None)


def _read_head(body: Any) -> int:
    found = body.get("head") if isinstance(body, dict) else None
    if not isinstance(found, int):
        raise BadAnswer("the answer does not say where the log ends: is the base URL that of a Neuraxis?")
    return found


class Following:
    """Reads the events after a sequence, each once and in order, over one connection after another.

    Args:
        topic: The public subject to read.
        after: The sequence after which it begins, or the event there.
        words: Whether to include people's words.
        patience_s: Seconds without a connection after which it gives up.
        clock: Returns monotonic seconds.

    Raises:
        Misconfigured: ``patience_s`` is no number of seconds.

    Attributes:
        query: The query parameters of its requests.
        last: The sequence of the last event that was received.
    """

    def __init__(
        self,
        topic: str,
        after: int | Event,
        *,
        words: bool,
        patience_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if not patience_s >= 0:  # not for NaN either, with which it would never give up
            raise Misconfigured(f"patience={patience_s!r}: it is a number of seconds from 0 on", code="bad_value")
        self.last = after.seq if isinstance(after, Event) else after
        self.query = {"topic": topic, "after": str(self.last), **({"words": "true"} if words else {})}
        self._known = after if isinstance(after, Event) and matches(topic, after) else None
        self._expected: Event | None = None  # what the connection begins with, unless the log has lost it
        self._patience_s = patience_s
        self._clock = clock
        self._failing_since: float | None = None
        self._connecting_since: float | None = None
        self._failures = 0
        self._decoder = Decoder()

    def headers(self) -> Mapping[str, str]:
        """Begin a connection; return its headers, which ask for the last event that was received, and those after it.

        A log that has lost its end gives the lost sequences to other events. Once it has grown past the last event's
        sequence again, the loss shows only in the event that is there now.
        """
        self._decoder = Decoder()
        self._connecting_since = self._clock()
        self._expected = self._known
        begin = self.last if self._known is None else self.last - 1
        return {"accept": "text/event-stream", "last-event-id": str(begin)}

    @property
    def opening_s(self) -> float:
        """Seconds within which the connection that begins now must have its first answer."""
        failing_s = 0.0 if self._failing_since is None else self._clock() - self._failing_since
        return min(SILENCE_S, max(0.1, self._patience_s - failing_s))

    def take(self, piece: bytes) -> Iterator[Event]:
        """Yield the events that a piece of the stream completes.

        Raises:
            BadAnswer: it holds none.
            NeuraxisError: the log does not hold the last event any more (``log_cut``).
        """
        self._failing_since, self._connecting_since, self._failures = None, None, 0
        for message in self._decoder.feed(piece):
            event = event_of_row(message.data)
            expected, self._expected = self._expected, None
            if expected is not None and not is_same(event, expected):
                raise NeuraxisError(f"after the event of sequence {self.last:,}: {REPLACED}", code="log_cut")
            if event.seq > self.last:
                self.last, self._known = event.seq, event
                yield event

    def pause_after(self, failed: NeuraxisError) -> float:
        """Return the seconds until the next connection; raises the failure if waiting does not help."""
        if not isinstance(failed, NotReachable | Unavailable | RateLimited | ServerFailed):
            raise failed
        pause = min(0.1 * float(2**self._failures), _LONGEST_PAUSE_S)
        if isinstance(failed, Unavailable | RateLimited):
            pause = max(pause, min(failed.retry_after, _LONGEST_PAUSE_S))
        self._failures = min(self._failures + 1, 16)
        # Counted from the first failure, not from the last event: a slow reader is not a lost connection. A
        # connection on which nothing came has failed since its beginning.
        now = self._clock()
        since = now if self._connecting_since is None else self._connecting_since
        self._failing_since = since if self._failing_since is None else self._failing_since
        if now + pause - self._failing_since > self._patience_s:
            raise failed
        return pause


STREAM_ENDED = NotReachable("the event stream has ended", code="broken")
"""The error for a stream that ended: a running server never ends one."""
