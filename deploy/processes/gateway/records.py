"""The records that a gateway shows: lists come from the ledger's process, all else from the log itself.

The ledger's process has the file and its index; the gateway may run on another machine. That process also tells where
in the log an exchange begins. For one that no ledger knows, a process of its own searches the log.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar

import msgspec

from actors.gateway.external_events import InvalidField
from actors.gateway.http.feedback.service import RatedExchange
from actors.gateway.http.records.endpoints import StreamedEvent
from actors.gateway.http.records.set_overview import LiveHealth, SetOverview
from actors.gateway.http.scopes import NotFound
from actors.runtime.membership.availability import readable_heartbeats
from deploy.config.configured_log import attach_ledger_or_warn
from deploy.health.stage_health import stage_health
from deploy.health.stage_watch import NEEDED
from deploy.processes.query_services import EXCHANGES_QUERY, OVERVIEW_QUERY
from events.decoding import Recorded, address_of, decode
from events.errors import LogError, Unavailable
from events.jetstream import Connection, JetStreamLog
from events.jetstream.connection import Reply
from events.ledger import ExchangeFilter, ExchangeResult, Overview, Page, PointRequest
from events.ledger.rows import topic_of_subject
from events.log import Membership, Stored, Tail
from events.replay.explain import explain
from events.replay.sources import StreamSource, exchange_of
from schemas.event import topic_of
from schemas.permissions import EXCHANGE_QUERY
from schemas.subjects import topic_filter
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.responder import ResponseEmitted

LEDGER_TIMEOUT_S = 5.0
"""Seconds within which the ledger's process must answer."""

MOST_FOLLOWERS = 16
"""The most readers that follow events at once: each is a consumer at the broker."""

_EVENTS_PER_PULL = 16
"""Events that are requested at a time for each reader: if it stops reading, about a hundred are held for it."""

KEEP_ALIVE_S = 15.0
"""Seconds without an event after which a reader gets an empty message: so proxies keep the connection open, and a dead
one is noticed. It says that nothing has come, so that none is sent while the log cannot be read."""

_NO_LEDGER = "no process writes the ledger, and lists come from it: run `neuraxis up`, or `neuraxis worker ledger`"

_RETRY_S = 0.05
"""Seconds after which a ledger that is behind the log is asked again."""

_ERROR_CODE, _ERROR = "Nats-Service-Error-Code", "Nats-Service-Error"
"""Headers of an error that a NATS micro service answers with."""

_MOST_BEHIND = 100_000
"""The most events that are looked through for one exchange, such as those that the ledger lacks; it takes a moment."""

_MOST_EXPLAINED = 5_000
"""The most events of an exchange that are explained here: feedback may be given any number of times."""

_INPUT, _END = topic_of(InputReceived), topic_of(ResponseEmitted)
_INPUTS_AND_ENDS = [topic_filter(topic) for topic in (_INPUT, _END)]
T = TypeVar("T")


async def _not_searched(exchange: str) -> bytes:
    raise NotFound(f"the ledger holds no exchange {exchange[:64]!r}")


class BrokerRecords:
    """Reads the log of a broker and asks the ledger's process.

    Args:
        connection: The connection to the broker.
        log: The log that is followed and read.
        stop: Set when the gateway is about to stop: this ends the streams of all who follow events.
        membership: Holds the heartbeats of living workers.
        needed: The stages that the set needs.
        whole: The log with what was removed from its stream's beginning, which single exchanges are looked up in.
        ledger: The ledger file, if it is on this machine: attached to ``whole`` once something was removed.
        search: Searches all of the log for an exchange that the ledger does not know, and explains it; raises NotFound.
            Without it, such an exchange is not found.
    """

    def __init__(
        self,
        connection: Connection,
        log: JetStreamLog,
        stop: asyncio.Event,
        membership: Membership,
        needed: Sequence[str] = NEEDED,
        *,
        whole: JetStreamLog | None = None,
        ledger: Path | None = None,
        search: Callable[[str], Awaitable[bytes]] = _not_searched,
    ) -> None:
        self._search = search
        self._connection = connection
        self._whole = whole or log
        self._ledger = ledger
        self._log = log
        self._stop = stop
        self._membership = membership
        self._needed = needed
        self._followers = 0

    async def exchanges(self, wanted: ExchangeFilter) -> Page:
        """Return a page of exchanges, the latest first."""
        sequences = {"at": wanted.at, "before": wanted.before - 1}
        return await self._query(EXCHANGES_QUERY, msgspec.json.encode(wanted), Page, sequences)

    async def ledger_seq(self) -> int:
        """Return the last sequence in the ledger; -1 if that is not known."""
        try:
            return await self._ledger_head()
        except LogError:
            return -1

    async def _ledger_head(self) -> int:
        """Return the last sequence in the ledger; raises a LogError if that is not known."""
        return (await self.exchanges(ExchangeFilter(limit=1))).head

    async def exchange(self, exchange: str) -> ExchangeResult:
        """Return how an exchange ended."""
        return await self._query(EXCHANGE_QUERY, msgspec.json.encode({"exchange": exchange}), ExchangeResult)

    async def find_exchange(self, exchange: str) -> RatedExchange:
        """Return an exchange's agent, session, mode and end, even if the ledger does not have it yet.

        A caller may give feedback as soon as it has an answer, and the ledger is behind the log. So the
        part of the log that the ledger lacks is read, if it is short: requests with made-up ids must cost little.
        """
        head = await self._ledger_head()
        try:
            result = await self.exchange(exchange)
            found = RatedExchange(
                exchange=exchange, agent=result.agent, session=result.session, started_seq=result.started_seq
            )
            if result.ended_seq:  # an end that this release cannot read has no ``ended``, only a sequence
                mode = result.ended.mode if result.ended is not None else None
                return msgspec.structs.replace(found, mode=mode, ended_seq=result.ended_seq)
        except NotFound:
            found = None
        last = (await self._log.info()).last_seq
        if last - head > _MOST_BEHIND:
            raise Unavailable(f"the ledger is {last - head:,} events behind the log: try again when it has caught up")
        async for batch in self._log.as_stored().history(_INPUTS_AND_ENDS, head, last):
            for recorded in map(decode, (each for each in batch if exchange_of(each) == exchange)):
                agent, session = address_of(recorded)
                found = found or RatedExchange(exchange=exchange, agent=agent, session=session)
                if topic_of_subject(recorded.stored.subject) == _INPUT:
                    found = msgspec.structs.replace(found, started_seq=recorded.stored.seq)
                if topic_of_subject(recorded.stored.subject) == _END:
                    event = recorded.message.event if isinstance(recorded, Recorded) else None
                    mode = event.mode if isinstance(event, ResponseEmitted) else None
                    found = msgspec.structs.replace(found, mode=mode, ended_seq=recorded.stored.seq)
        if found is None:
            raise NotFound(f"the log holds no exchange {exchange[:64]!r}")
        return found

    async def why(self, exchange: str) -> bytes:
        """Return why an exchange ended as it did, in the format of ``neuraxis why --json``.

        The ledger, or the few events that it lacks, say where the exchange begins. If they do not, or if its events are
        many or lie far apart, ``search`` answers instead: here, a long log would be read for every made-up id, while
        other requests wait.
        """
        from deploy.cli.rendering.why.tree import to_json

        if (where := await self._where(exchange)) is None:
            return await self._search(exchange)
        whole = await self.whole_log()
        if 0 < where[0] <= self._log.trimmed_through and whole.unseen:  # a text: what was removed, and where it is
            raise NotFound(
                f"exchange {exchange[:64]!r} begins at sequence {where[0]:,}, and {self._log.unseen}, which is not "
                "beside this gateway: `neuraxis why` explains it there"
            )
        source = StreamSource(whole)
        messages = await source.exchange(exchange, *where)
        if len(messages) > _MOST_EXPLAINED:
            return await self._search(exchange)
        if (explanation := explain(messages)) is None:
            raise NotFound(f"the log holds no exchange {exchange[:64]!r}")
        return to_json(explanation, source.gaps.missing(await source.losses()))

    async def whole_log(self) -> JetStreamLog:
        """Return the log with what was removed from its stream, if the ledger is on this machine; raises LogError."""
        if self._whole.archive is None:
            await self._whole.info()  # the stream may have been trimmed for the first time since this process began
            await attach_ledger_or_warn(self._whole, self._ledger)
        return self._whole

    async def overview(self, at: int) -> SetOverview:
        """Return how the set was at the sequence ``at`` of the log; 0: how it is now."""
        recorded = await self._query(OVERVIEW_QUERY, msgspec.json.encode(PointRequest(at=at)), Overview, {"at": at})
        if at:
            return SetOverview(recorded=recorded, now=None)
        head = (await self._log.info()).last_seq
        alive = readable_heartbeats(await self._membership.members())
        stages = tuple(stage_health(alive, self._log.partitions, self._needed))
        return SetOverview(recorded=recorded, now=LiveHealth(head=head, stages=stages))

    async def follow(
        self, filter: str, after: int | None, *, words: bool
    ) -> AsyncGenerator[StreamedEvent | None, None]:
        """Yield the events after a sequence, without end; yield None whenever no event came for a while.

        ``words`` says whether they are shown with people's words. What was trimmed from the stream's beginning comes
        from the ledger; a sequence that lies there is refused if the ledger is not here.
        """
        last = (await self._log.info()).last_seq
        if after is not None:
            _check_is_in_log("after", after, last)
            if after < (trimmed := self._log.trimmed_through) and (await self.whole_log()).unseen:
                raise InvalidField(
                    "after",
                    f"after: events up to sequence {trimmed:,} were removed from the stream, and the ledger that has "
                    f"them is not here: `neuraxis log export --log LEDGER` reads it; go on here after {trimmed:,}",
                )
        if self._followers >= MOST_FOLLOWERS:
            raise Unavailable(f"{MOST_FOLLOWERS} readers follow the events, as many as may be: close one of them")
        events = self._events(filter, last if after is None else after, words)
        # The first step counts this follower before another one is checked; the generator's end counts it off again,
        # even where nobody ever reads from it.
        await anext(events)
        return events

    async def _events(self, filter: str, after: int, words: bool) -> AsyncGenerator[StreamedEvent | None, None]:
        from deploy.cli.rendering.event_rows import entry_of

        self._followers += 1
        stopping = asyncio.create_task(self._stop.wait(), name="events stop")
        tails: list[Tail] = []
        batches = self._batches(filter, after, tails)
        next_batch: asyncio.Task[Sequence[Stored]] | None = None
        try:
            yield None
            while not stopping.done():
                next_batch = next_batch or asyncio.create_task(anext(batches), name="next events")
                await asyncio.wait((next_batch, stopping), timeout=KEEP_ALIVE_S, return_when=asyncio.FIRST_COMPLETED)
                if not next_batch.done():
                    if self._connection.connected and not any(tail.cut_off_s for tail in tails):
                        yield None
                    continue
                batch, next_batch = next_batch.result(), None
                for stored in batch:
                    entry = entry_of(stored, words=words)
                    yield StreamedEvent(stored.seq, entry.topic, msgspec.json.encode(entry).decode(), entry.agent)
        finally:
            self._followers -= 1
            stopping.cancel()
            if next_batch is not None:
                next_batch.cancel()
                await asyncio.wait((next_batch,))
            await batches.aclose()

    async def _batches(self, filter: str, after: int, tails: list[Tail]) -> AsyncGenerator[Sequence[Stored], None]:
        """Yield the messages after a sequence, without end: from the ledger first where the stream was trimmed.

        The tail of the stream is added to ``tails``.
        """
        if after < (trimmed := self._log.trimmed_through):
            async with aclosing(self._whole.history([filter], after, trimmed)) as removed:
                async for batch in removed:
                    yield batch
            after = trimmed
        tail = await self._log.tail([filter], after, pull=_EVENTS_PER_PULL)
        tails.append(tail)
        try:
            while True:
                yield await tail.next()
        finally:
            await tail.close()

    async def _where(self, exchange: str) -> tuple[int, Sequence[tuple[int, int]]] | None:
        """Return the sequence of an exchange's input, and the ranges (after, up to) that hold its events.

        They are found by the ledger, and by the few events that it lacks; None: they are not known, or hold too many
        events.
        """
        known: ExchangeResult | None = None
        try:
            head = await self._ledger_head()
            with suppress(NotFound):
                known = await self.exchange(exchange)
        except LogError:
            return None
        last = (await self._log.info()).last_seq
        if last - head > _MOST_BEHIND:
            return None
        if known is not None:
            begin, upto = known.started_seq, known.last_seq  # 0: a ledger of an earlier release does not tell
            if not begin <= upto <= begin + _MOST_BEHIND:
                return None
            rest = max(head, upto)
            return begin, [(begin - 1, upto), *([(rest, last)] if rest < last else [])]
        async for batch in self._log.as_stored().history(_INPUTS_AND_ENDS[:1], head, last):
            for stored in batch:
                if exchange_of(stored) == exchange:
                    return stored.seq, [(stored.seq - 1, last)]
        return None

    async def _query(
        self, subject: str, question: bytes, kind: type[T], sequences: Mapping[str, int] = MappingProxyType({})
    ) -> T:
        """Return the ledger's answer to a question.

        ``sequences`` are those that the question names, by its fields: they must be in the log, and the ledger is given
        time to reach them. 0 or less names none.
        """
        if wanted := {name: seq for name, seq in sequences.items() if seq > 0}:
            last = (await self._log.info()).last_seq
            for name, seq in wanted.items():
                _check_is_in_log(name, seq, last)
        give_up = asyncio.get_running_loop().time() + LEDGER_TIMEOUT_S
        # 400: the ledger has not reached a sequence that the question names.
        while (answer := await self._request(subject, question)).headers.get(_ERROR_CODE) == "400":
            if not wanted or asyncio.get_running_loop().time() > give_up:
                raise Unavailable(answer.headers.get(_ERROR, ""))
            await asyncio.sleep(_RETRY_S)
        if code := answer.headers.get(_ERROR_CODE):
            reason = answer.headers.get(_ERROR, "")
            raise NotFound(reason) if code == "404" else Unavailable(reason)
        try:
            return msgspec.json.decode(answer.data, type=kind)
        except msgspec.DecodeError as wrong:
            raise Unavailable(f"the ledger's process answers what this release does not read: {wrong}") from wrong

    async def _request(self, subject: str, question: bytes) -> Reply:
        try:
            return await self._connection.request(subject, question, deadline=LEDGER_TIMEOUT_S)
        except Unavailable as wrong:
            raise Unavailable(_NO_LEDGER if self._connection.connected else str(wrong)) from wrong


def _check_is_in_log(name: str, seq: int, last: int) -> None:
    if seq > last:
        raise InvalidField(name, f"{name}: the log ends at sequence {last:,}, before {seq:,}: name one up to there")
