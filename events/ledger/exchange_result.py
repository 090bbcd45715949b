"""The result of an exchange, looked up in a ledger for callers that missed its reply."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import msgspec

from events.decoding import Recorded, decode
from events.ledger.reader import LedgerReader
from events.ledger.rows import topic_of_subject
from events.log import Stored
from events.sealing.sealing import Sealing, closed_sealing
from schemas.event import topic_of
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.responder import ResponseEmitted

_INPUT = topic_of(InputReceived)
_RESPONSE = topic_of(ResponseEmitted)


class ExchangeResult(msgspec.Struct, frozen=True, kw_only=True):
    """An exchange that was accepted, and how it ended: ``ended`` is None while it is open.

    ``latency_ms`` is the time from its input to its end, by the server's times.
    """

    exchange: str
    agent: str
    session: str
    started_seq: int
    ended_seq: int = 0
    latency_ms: float | None = None
    ended: ResponseEmitted | None = None


async def exchange_result(path: Path, exchange: str, sealing: Sealing | None = None) -> ExchangeResult | None:
    """Return an exchange's result from a ledger file, None when the ledger does not hold it (yet).

    ``sealing`` opens sealed words; without it, a placeholder stands for them.

    Raises:
        LedgerDamaged, Misconfigured, Unavailable: see ``LedgerReader``.
        LogError: the keys cannot be reached.
    """
    stored = await asyncio.to_thread(_ends_of, path, exchange)
    return _result(exchange, await (sealing or closed_sealing()).open(stored))


def _ends_of(path: Path, exchange: str) -> list[Stored]:
    with LedgerReader(path) as reader:
        return [each for each in reader.exchange(exchange) if topic_of_subject(each.subject) in (_INPUT, _RESPONSE)]


def _result(exchange: str, stored: Sequence[Stored]) -> ExchangeResult | None:
    recorded = [each for each in map(decode, stored) if isinstance(each, Recorded)]
    started = next((each for each in recorded if isinstance(each.message.event, InputReceived)), None)
    if started is None:
        return None
    result = ExchangeResult(
        exchange=exchange,
        agent=started.message.agent,
        session=started.message.session,
        started_seq=started.message.seq,
    )
    for each in recorded:
        if isinstance(each.message.event, ResponseEmitted):
            latency_ms = (each.message.time_ns - started.message.time_ns) / 1e6
            return msgspec.structs.replace(
                result, ended_seq=each.message.seq, latency_ms=latency_ms, ended=each.message.event
            )
    return result
