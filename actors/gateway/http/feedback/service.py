"""Where feedback becomes an event of the exchange that it is on."""

import time
from collections.abc import Awaitable, Callable

import msgspec

from actors.gateway.agent_events import id_of
from actors.gateway.client import Client
from actors.gateway.http.loops.service import NotAccepted
from actors.gateway.http.terms import Terms
from actors.gateway.inputs import Addressed
from actors.runtime.records import rfc3339
from events.log import Record
from schemas.envelope import Envelope, encode_headers
from schemas.event import encode_event, topic_of
from schemas.identity import content_hash, event_id
from schemas.subjects import Partitions, stored_subject
from schemas.vocabulary.feedback import FeedbackGiven, HarmReported
from schemas.vocabulary.router import Mode


class Rated(msgspec.Struct, frozen=True, kw_only=True):
    """An exchange that feedback is on: whose it was, the mode that it was answered in, if any, and where it ended.

    ``ended_seq`` is 0 while it is open.
    """

    exchange: str
    agent: str
    session: str
    mode: Mode | None = None
    ended_seq: int = 0


Lookup = Callable[[str], Awaitable[Rated]]
"""Finds an exchange by its whole id; raises NotFound, or a LogError."""


class FeedbackService:
    """Appends what callers say of exchanges.

    Args:
        edge: What appends to the log, through restarts of the broker.
        partitions: The log's partition counts.
        lookup: See there.
        wait_s: Seconds that a request waits until its event is stored.
        now_ns: This process's clock, Unix nanoseconds, for envelopes.
    """

    def __init__(
        self,
        edge: Client,
        partitions: Partitions,
        lookup: Lookup,
        *,
        wait_s: float,
        now_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self._edge = edge
        self._partitions = partitions
        self._lookup = lookup
        self._terms = Terms(wait_s)
        self._now_ns = now_ns

    def hurry(self, seconds: float) -> None:
        """Let those who wait do so for ``seconds`` more at most: this process is to stop."""
        self._terms.hurry(seconds)

    async def rated(self, exchange: str) -> Rated:
        """Return the exchange that feedback is to be on; raises NotFound, NotAccepted or a LogError."""
        term = self._terms.begin()
        try:
            async with self._terms.deadline(term):
                return await self._lookup(exchange)
        except TimeoutError:
            raise NotAccepted(
                f"the exchange could not be looked up within {term.waited:.1f} s: send it again"
            ) from None

    async def give(self, rated: Rated, given: FeedbackGiven | HarmReported, key: str) -> str:
        """Append feedback and return its event's id; ``key``, or else its content, makes repeats one event.

        Raises:
            NotAccepted: it could not be stored in time.
            LogError: the broker refuses it for good.
        """
        addressed, term = new_feedback(rated, given, key, self._partitions, self._now_ns()), self._terms.begin()
        try:
            async with self._terms.deadline(term):
                await self._edge.submit(addressed)
        except TimeoutError:
            raise NotAccepted(
                f"the broker has not confirmed this within {term.waited:.1f} s, and it may still be stored: "
                "send it again"
            ) from None
        return id_of(addressed)


def new_feedback(
    rated: Rated, given: FeedbackGiven | HarmReported, key: str, partitions: Partitions, now_ns: int
) -> Addressed:
    """Wrap feedback; the same on the same exchange has the same id, or what has the same ``key``."""
    topic, body = topic_of(given), encode_event(given)
    same = f"key\n{key}" if key else f"content\n{content_hash(body)}"
    envelope = Envelope(
        id=event_id(f"feedback\n{rated.exchange}\n{same}", "gateway", 0),
        topic=topic,
        source="neuraxis/gateway",
        time=rfc3339(now_ns),
        agent=rated.agent,
        session=rated.session,
        exchange=rated.exchange,
    )
    subject = stored_subject(topic, partitions.agent_token(rated.agent), partitions.session_token(rated.session))
    return Addressed("", Record(subject, encode_headers(envelope), body))
