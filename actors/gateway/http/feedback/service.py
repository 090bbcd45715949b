"""Turns feedback into an event of the exchange that it is about."""

from collections.abc import Awaitable, Callable

import msgspec

from actors.gateway.external_events import WrappedEvent, build_event
from actors.gateway.http.request_errors import NotAccepted, refused_unless_stored
from actors.gateway.input_client import Client
from schemas.event import encode_event
from schemas.identity import content_hash, event_id
from schemas.subjects import Partitions
from schemas.vocabulary.feedback import FeedbackGiven, HarmReported
from schemas.vocabulary.router import Mode


class RatedExchange(msgspec.Struct, frozen=True, kw_only=True):
    """An exchange that feedback is about: its agent and session, and the mode that it was answered in, if any.

    ``started_seq`` is the sequence of its input, 0 if that is not known; ``ended_seq`` that of its end, 0 while it is
    open.
    """

    exchange: str
    agent: str
    session: str
    mode: Mode | None = None
    started_seq: int = 0
    ended_seq: int = 0


Lookup = Callable[[str], Awaitable[RatedExchange]]
"""Finds an exchange by its whole id; raises NotFound, or a LogError."""


class FeedbackService:
    """Appends feedback of callers on exchanges.

    Args:
        client: Sends events, and waits until they are stored.
        lookup: See :data:`Lookup`.
        wait_s: Seconds that a request waits until its event is stored.
    """

    def __init__(self, client: Client, lookup: Lookup, *, wait_s: float) -> None:
        self._client = client
        self._lookup = lookup
        self._wait_s = wait_s

    async def rated(self, exchange: str) -> RatedExchange:
        """Return the exchange that feedback is about; raises NotFound, NotAccepted or a LogError."""
        deadline = self._client.begin(self._wait_s)
        try:
            async with self._client.deadline(deadline):
                return await self._lookup(exchange)
        except TimeoutError:
            raise NotAccepted(
                f"the exchange could not be looked up within {deadline.waited:.1f} s: send it again"
            ) from None

    async def give(self, rated: RatedExchange, given: FeedbackGiven | HarmReported, key: str) -> str:
        """Append feedback and return its event's id.

        Repeats with the same ``key`` are one event; without a key, repeats with the same content.

        Raises:
            NotAccepted: it could not be stored in time.
            LogError: the broker refuses it permanently.
        """
        client, deadline = self._client, self._client.begin(self._wait_s)
        wrapped = new_feedback(rated, given, key, client.log.partitions, client.now_ns())
        with refused_unless_stored(deadline):
            await client.submit(wrapped, deadline)
        return wrapped.id


def new_feedback(
    rated: RatedExchange, given: FeedbackGiven | HarmReported, key: str, partitions: Partitions, now_ns: int
) -> WrappedEvent:
    """Wrap feedback. Its id is derived from the exchange and ``key``, or, without a key, from its content."""
    same = f"key\n{key}" if key else f"content\n{content_hash(encode_event(given))}"
    return build_event(
        given,
        id=event_id(f"feedback\n{rated.exchange}\n{same}", "gateway", 0),
        agent=rated.agent,
        session=rated.session,
        exchange=rated.exchange,
        partitions=partitions,
        now_ns=now_ns,
    )
