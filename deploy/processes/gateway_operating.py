"""Operators' requests at the gateway: carried out by the commands' code, over a connection as the operator.

The gateway's own broker user may append what applications send, but no operator's events. So each request opens a
connection as the operator and closes it again. Such requests are rare, and a gateway without any never holds the right.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from actors.gateway.agent_events import InvalidField
from actors.gateway.http.loops.service import NotAccepted
from actors.gateway.http.operating import AllowanceShown, NotFound, Verdict, VerdictRecorded
from deploy.operating.allowances import allowance_orders, listed, verdict_orders, withdrawal_orders
from deploy.operating.operator_edge import InvalidOrder, Order, append
from events.jetstream import Access, JetStreamLog
from events.replay.looking import NothingThere
from events.replay.sources import StreamSource
from schemas.vocabulary.allowances import AllowanceRecorded


class BrokerOperations:
    """Does what an operator asks for, on the log of a broker.

    Args:
        access: How to connect as the operator.
        stream: Which stream has the log.
        wait_s: Seconds that an act may take.
        now_ns: This process's clock, Unix nanoseconds, for envelopes.
    """

    def __init__(self, access: Access, stream: str, *, wait_s: float, now_ns: Callable[[], int] = time.time_ns) -> None:
        self._access = access
        self._stream = stream
        self._wait_s = wait_s
        self._now_ns = now_ns

    async def judge(self, verdict: Verdict) -> VerdictRecorded:
        """Put a verdict on record."""
        async with self._log("exchange") as log:
            judged, orders = await verdict_orders(
                StreamSource(log), verdict.exchange, verdict.verdict, verdict.harm_level, verdict.by, verdict.why
            )
            seq = await self._append(log, orders)
        return VerdictRecorded(agent=judged.agent, precedent=judged.precedent, verdict=verdict.verdict, seq=seq)

    async def allow(self, agent: str, allowance: AllowanceRecorded) -> int:
        """Put an allowance on record; return its sequence."""
        async with self._log("allowance") as log:
            return await self._append(log, await allowance_orders(StreamSource(log), agent, allowance))

    async def withdraw(self, agent: str, allowance: str, by: str, why: str) -> int:
        """Withdraw an allowance; return the sequence."""
        async with self._log("allowance") as log:
            return await self._append(log, await withdrawal_orders(StreamSource(log), agent, (allowance,), by, why))

    async def allowances(self, agent: str) -> Sequence[AllowanceShown]:
        """Return an agent's allowances in force, in the order of recording."""
        async with self._log("agent") as log:
            return [
                AllowanceShown(
                    allowance=each.allowance,
                    text=each.text,
                    phrase=each.phrase,
                    by=each.by,
                    why=each.why,
                    seq=each.seq,
                )
                for each in await listed(StreamSource(log), agent)
            ]

    async def _append(self, log: JetStreamLog, orders: Sequence[Order]) -> int:
        return await append(log, orders, self._now_ns(), self._wait_s)

    @asynccontextmanager
    async def _log(self, field: str) -> AsyncIterator[JetStreamLog]:
        """Open the log for an operator's request; errors become those of HTTP and name the request's ``field``."""
        try:
            async with asyncio.timeout(self._wait_s):
                log = await JetStreamLog.connect(self._access, stream=self._stream, create=False)
                try:
                    yield log
                finally:
                    await log.close()
        except TimeoutError:
            raise NotAccepted(
                f"the broker has not confirmed this within {self._wait_s:g} s, and it may still be stored: "
                "see whether it is there, and send it again"
            ) from None
        except NothingThere as wrong:
            raise NotFound(str(wrong)) from wrong
        except InvalidOrder as wrong:
            raise InvalidField(field, str(wrong)) from wrong
