"""The records that a gateway shows: lists come from the ledger's process, all else from the log itself.

The ledger's process has the file and its index; the gateway may run on another machine. An exchange's position in the
log comes from that process too; without a ledger, it is found by reading the log's inputs.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from types import MappingProxyType
from typing import TypeVar

import msgspec

from actors.gateway.external_events import InvalidField
from actors.gateway.http.feedback.service import Rated
from actors.gateway.http.records.endpoints import StreamedEvent
from actors.gateway.http.records.set_overview import LiveHealth, SetOverview
from actors.gateway.http.scopes import NotFound
from actors.runtime.membership.availability import readable_heartbeats
from deploy.health.stage_health import stage_health
from deploy.health.stage_watch import NEEDED
from deploy.processes.query_services import EXCHANGE_QUERY, EXCHANGES_QUERY, OVERVIEW_QUERY
from events.codec import Recorded, decode
from events.errors import LogError, Unavailable
from events.jetstream import Connection, JetStreamLog
from events.jetstream.connection import Reply
from events.ledger import ExchangeFilter, ExchangeResult, Overview, Page, Point
from events.log import Membership, Stored, Tail
from events.replay.explain import explain
from events.replay.sources import StreamSource, exchange_of
from schemas.event import topic_of
from schemas.subjects import topic_filter
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.responder import ResponseEmitted

PATIENCE_S = 5.0
"""Seconds that the ledger's process has for an answer."""

FOLLOWERS = 16
"""Readers of events at once, at most: each is a consumer of the broker's."""

_AHEAD = 16
"""Events that are asked for at a time for each of them: of one that stops reading some hundred are held."""

QUIET_S = 15.0
"""Seconds without an event after which a reader is told that nothing came: a dead connection shows, a proxy waits."""

_NO_LEDGER = "no process writes the ledger, and lists come from it: run `neuraxis up`, or `neuraxis worker ledger`"

_AGAIN_S = 0.05
"""Seconds after which a ledger that is behind is asked again."""

_CODE, _SAID = "Nats-Service-Error-Code", "Nats-Service-Error"
_OF_AN_EXCHANGE = [topic_filter(topic_of(kind)) for kind in (InputReceived, ResponseEmitted)]
T = TypeVar("T")


class BrokerRecords:
    """Reads the log of a broker and asks the ledger's process.

    Args:
        connection: The broker's.
        log: What is followed and read.
        stop: Set once the gateway is to stop: whoever follows events is let go.
        membership: Where workers say that they live.
        needed: The stages that the set needs.
    """

    def __init__(
        self,
        connection: Connection,
        log: JetStreamLog,
        stop: asyncio.Event,
        membership: Membership,
        needed: Sequence[str] = NEEDED,
    ) -> None:
        self._connection = connection
        self._log = log
        self._stop = stop
        self._membership = membership
        self._needed = needed
        self._followers = 0

    async def exchanges(self, wanted: ExchangeFilter) -> Page:
        """Return a page of exchanges, the latest first."""
        places = {"at": wanted.at, "before": wanted.before - 1}
        return await self._asked(EXCHANGES_QUERY, msgspec.json.encode(wanted), Page, places)

    async def written(self) -> int:
        """Return the sequence up to which the ledger is written; -1 if that is not known."""
        try:
            return await self._head()
        except LogError:
            return -1

    async def _head(self) -> int:
        """Return the sequence up to which the ledger is written; raises a LogError if that is not known."""
        return (await self.exchanges(ExchangeFilter(limit=1))).head

    async def exchange(self, exchange: str) -> ExchangeResult:
        """Return how an exchange ended."""
        return await self._asked(EXCHANGE_QUERY, msgspec.json.encode({"exchange": exchange}), ExchangeResult)

    async def rated(self, exchange: str) -> Rated:
        """Return whose an exchange was and its mode, also of one that the ledger does not have yet.

        A caller may speak of an answer as soon as it has it, and the ledger comes behind. No more of the log is read
        than the ledger lacks: whoever makes up ids makes little work.
        """
        head = await self._head()
        try:
            result = await self.exchange(exchange)
            rated = Rated(exchange=exchange, agent=result.agent, session=result.session)
            if result.ended is not None:
                return msgspec.structs.replace(rated, mode=result.ended.mode, ended_seq=result.ended_seq)
        except NotFound:
            rated = None
        last = (await self._log.info()).last_seq
        async for batch in self._log.as_stored().history(_OF_AN_EXCHANGE, head, last):
            for recorded in map(decode, (each for each in batch if exchange_of(each) == exchange)):
                if not isinstance(recorded, Recorded):
                    continue
                message = recorded.message
                rated = rated or Rated(exchange=exchange, agent=message.agent, session=message.session)
                if isinstance(message.event, ResponseEmitted):
                    rated = msgspec.structs.replace(rated, mode=message.event.mode, ended_seq=message.seq)
        if rated is None:
            raise NotFound(f"the log holds no exchange {exchange[:64]!r}")
        return rated

    async def why(self, exchange: str) -> bytes:
        """Return why an exchange ended so, as ``neuraxis why --json`` does."""
        from deploy.cli.rendering.why.tree import to_json

        source = StreamSource(self._log)
        explanation = explain(await source.exchange(exchange, await self._begin(exchange)))
        if explanation is None:
            raise NotFound(f"the log holds no exchange {exchange[:64]!r}")
        return to_json(explanation, source.gaps.missing(await source.losses()))

    async def overview(self, at: int) -> SetOverview:
        """Return how the set was at a sequence of the log; 0: how it is now."""
        recorded = await self._asked(OVERVIEW_QUERY, msgspec.json.encode(Point(at=at)), Overview, {"at": at})
        if at:
            return SetOverview(recorded=recorded, now=None)
        head = (await self._log.info()).last_seq
        alive = readable_heartbeats(await self._membership.members())
        stages = tuple(stage_health(alive, self._log.partitions, self._needed))
        return SetOverview(recorded=recorded, now=LiveHealth(head=head, stages=stages))

    async def follow(
        self, filter: str, after: int | None, *, words: bool
    ) -> AsyncGenerator[StreamedEvent | None, None]:
        """Yield the events after a sequence, without end; None whenever no event came for a while."""
        last = (await self._log.info()).last_seq
        if after is not None:
            _check_place("after", after, last)
        if self._followers >= FOLLOWERS:
            raise Unavailable(f"{FOLLOWERS} readers follow the events, as many as may be: close one of them")
        happened = self._following(filter, last if after is None else after, words)
        # Its place is taken before another one is let in, and given back however it ends, also where nobody reads it.
        await anext(happened)
        return happened

    async def _following(self, filter: str, after: int, words: bool) -> AsyncGenerator[StreamedEvent | None, None]:
        from deploy.cli.rendering.event_rows import entry_of

        self._followers += 1
        stopping = asyncio.create_task(self._stop.wait(), name="events stop")
        reading: Tail | None = None
        coming: asyncio.Task[Sequence[Stored]] | None = None
        try:
            yield None
            reading = await self._log.tail([filter], after, pull=_AHEAD)
            while not stopping.done():
                coming = coming or asyncio.create_task(reading.next(), name="events come")
                await asyncio.wait((coming, stopping), timeout=QUIET_S, return_when=asyncio.FIRST_COMPLETED)
                if not coming.done():
                    yield None
                    continue
                batch, coming = coming.result(), None
                for stored in batch:
                    entry = entry_of(stored, words=words)
                    yield StreamedEvent(stored.seq, entry.topic, msgspec.json.encode(entry).decode(), entry.agent)
        finally:
            self._followers -= 1
            stopping.cancel()
            if coming is not None:
                coming.cancel()
            if reading is not None:
                await reading.close()

    async def _begin(self, exchange: str) -> int:
        """Return the sequence of an exchange's input as the ledger has it; 0 where that does not help."""
        try:
            return (await self.exchange(exchange)).started_seq
        except (NotFound, LogError):
            return 0

    async def _asked(
        self, subject: str, question: bytes, kind: type[T], places: Mapping[str, int] = MappingProxyType({})
    ) -> T:
        """Return the ledger's answer; ``places`` are those of the question that must be in the log, by their names.

        A ledger that has not come so far yet is waited for.
        """
        if wanted := {name: seq for name, seq in places.items() if seq > 0}:
            last = (await self._log.info()).last_seq
            for name, seq in wanted.items():
                _check_place(name, seq, last)
        ends = asyncio.get_running_loop().time() + PATIENCE_S
        while (answer := await self._answer(subject, question)).headers.get(_CODE) == "400":
            if not wanted or asyncio.get_running_loop().time() > ends:
                raise Unavailable(answer.headers.get(_SAID, ""))
            await asyncio.sleep(_AGAIN_S)
        if code := answer.headers.get(_CODE):
            reason = answer.headers.get(_SAID, "")
            raise NotFound(reason) if code == "404" else Unavailable(reason)
        try:
            return msgspec.json.decode(answer.data, type=kind)
        except msgspec.DecodeError as wrong:
            raise Unavailable(f"the ledger's process answers what this release does not read: {wrong}") from wrong

    async def _answer(self, subject: str, question: bytes) -> Reply:
        try:
            return await self._connection.request(subject, question, deadline=PATIENCE_S)
        except Unavailable as wrong:
            raise Unavailable(_NO_LEDGER if self._connection.connected else str(wrong)) from wrong


def _check_place(name: str, seq: int, last: int) -> None:
    if seq > last:
        raise InvalidField(name, f"{name}: the log ends at sequence {last:,}, before {seq:,}: name one up to there")
