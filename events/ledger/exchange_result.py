"""The result of an exchange, looked up in a ledger for callers that missed its reply."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import msgspec

from events.decoding import Unreadable, decode
from events.ledger.reader import LedgerReader
from events.ledger.rows import topic_of_subject
from events.log import Stored
from events.sealing.sealing import Sealing, closed_sealing
from schemas.envelope import address_in
from schemas.event import topic_of
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.responder import ResponseEmitted

_INPUT = topic_of(InputReceived)
_RESPONSE = topic_of(ResponseEmitted)


class ExchangeResult(msgspec.Struct, frozen=True, kw_only=True):
    """An exchange that was accepted, and how it ended: ``ended`` is None while it is open.

    ``latency_ms`` is the time from its input to its end, by the server's times. If this release cannot read the end,
    there is an ``ended_seq``, ``ended`` is None, and ``unread`` says why. ``last_seq`` is the sequence of its latest
    event, feedback included; 0 if an earlier release has written the result.
    """

    exchange: str
    agent: str
    session: str
    started_seq: int
    ended_seq: int = 0
    latency_ms: float | None = None
    ended: ResponseEmitted | None = None
    unread: str = ""
    last_seq: int = 0


async def exchange_result(path: Path, exchange: str, sealing: Sealing | None = None) -> ExchangeResult | None:
    """Return an exchange's result from a ledger file, None when the ledger does not hold it (yet).

    ``sealing`` opens sealed words; without it, a placeholder stands for them.

    Raises:
        LedgerDamaged, Misconfigured, Unavailable: see ``LedgerReader``.
        LogError: the keys cannot be reached.
    """
    stored, last_seq = await asyncio.to_thread(_input_and_ends, path, exchange)
    result = _result(exchange, await (sealing or closed_sealing()).open(stored))
    return result if result is None else msgspec.structs.replace(result, last_seq=last_seq)


def _input_and_ends(path: Path, exchange: str) -> tuple[list[Stored], int]:
    """Return an exchange's input and ends, and the sequence of its latest event."""
    with LedgerReader(path) as reader:
        return reader.exchange(exchange, topics=(_INPUT, _RESPONSE)), reader.last_seq_of(exchange)


def _result(exchange: str, stored: Sequence[Stored]) -> ExchangeResult | None:
    # An input that this release cannot read was accepted all the same, by another one.
    started = next((each for each in stored if topic_of_subject(each.subject) == _INPUT), None)
    if started is None:
        return None
    agent, session = address_in(started.headers)
    result = ExchangeResult(exchange=exchange, agent=agent, session=session, started_seq=started.seq)
    ends = [decode(each) for each in stored if topic_of_subject(each.subject) == _RESPONSE]
    for each in sorted(ends, key=lambda end: isinstance(end, Unreadable)):
        latency_ms = (each.stored.time_ns - started.time_ns) / 1e6
        result = msgspec.structs.replace(result, ended_seq=each.stored.seq, latency_ms=latency_ms)
        if isinstance(each, Unreadable):
            return msgspec.structs.replace(result, unread=each.detail)
        if isinstance(each.message.event, ResponseEmitted):
            return msgspec.structs.replace(result, ended=each.message.event)
    return result
