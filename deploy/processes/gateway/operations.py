"""Operators' requests at the gateway: carried out by the code of the commands, over a connection as the operator.

The gateway's own broker user may append what applications send, but no operator's events. So each request opens a
connection as the operator and closes it again. Such requests are rare; a gateway that gets none never uses that right.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from actors.gateway.external_events import InvalidField, InvalidInput
from actors.gateway.http.check_results import without_locations
from actors.gateway.http.feedback.service import Lookup
from actors.gateway.http.operator_endpoints import (
    HARM_LEVEL,
    AllowanceShown,
    AllowancesShown,
    BreakerWasReset,
    NotLearned,
    Verdict,
    VerdictRecorded,
)
from actors.gateway.http.request_errors import NotAccepted, Undecided
from actors.gateway.http.scopes import NotFound, check_exchange
from actors.gateway.operator_orders import Order
from deploy.config.configured_log import attach_ledger_or_warn
from deploy.operating.deadline import Deadline
from deploy.operating.guarding import breaker_orders
from deploy.operating.guarding.allowances import (
    allowance_orders,
    allowances_in_force,
    judged_input,
    precedent_name,
    verdict_orders,
    withdrawal_orders,
)
from deploy.operating.guarding.precedents import precedents_in_force
from deploy.operating.order_client import give
from deploy.operating.recorded_inputs import RecordedInput
from events.errors import LogError, UnknownOutcome
from events.jetstream import Access, JetStreamLog
from events.replay.presence_checks import NothingFound
from events.replay.sources import StreamSource
from schemas.vocabulary.allowances import AllowanceRecorded
from schemas.vocabulary.operator import BreakerResetOrdered

AT_ONCE = 8
"""Requests that are carried out at a time: each has a connection of its own, and reads the log."""

_ANSWER_SHARE = 0.9
"""The share of an operation's time that it may wait for an answer; the rest is for reporting how far it has come."""


def not_beside_gateway(log: JetStreamLog) -> str:
    """Return a text that says which part of a log a gateway cannot see without its ledger; empty if it sees all."""
    return f"{log.unseen}, which is not beside this gateway" if log.unseen else ""


class BrokerOperations:
    """Carries out an operator's requests on the log of a broker.

    Args:
        access: How to connect as the operator.
        stream: The stream that holds the log.
        wait_s: Seconds that an operation may take.
        ledger: The ledger file, which holds what was removed from the stream's beginning, if it is on this machine.
        lookup: Finds an exchange by the ledger; None: the log is searched.
    """

    def __init__(
        self, access: Access, stream: str, *, wait_s: float, ledger: Path | None = None, lookup: Lookup | None = None
    ) -> None:
        self._lookup = lookup
        self._access = access
        self._stream = stream
        self._wait_s = wait_s
        self._ledger = ledger
        self._turns = asyncio.Semaphore(AT_ONCE)

    async def judge(self, verdict: Verdict, agent: str) -> VerdictRecorded:
        """Record a person's verdict; if ``agent`` is given, only on an exchange of that agent."""
        async with self._log("exchange") as log:
            source = StreamSource(log)
            judged = await self._judged(source, verdict.exchange)
            check_exchange(verdict.exchange, judged.agent, agent)
            harm_level = HARM_LEVEL if verdict.harm_level is None else verdict.harm_level
            orders = await verdict_orders(source, judged, verdict.verdict, harm_level, verdict.by, verdict.why)
            seq = await self._append(log, orders)
        return VerdictRecorded(
            agent=judged.agent, precedent=precedent_name(judged.exchange), verdict=verdict.verdict, seq=seq
        )

    async def learn_harm(self, exchange: str, by: str, why: str) -> str:
        """Record a harmful precedent of an exchange's input, unless there is one; return its name."""
        async with self._log("exchange") as log:
            source = StreamSource(log)
            try:
                judged = await self._judged(source, exchange)
                orders = await verdict_orders(source, judged, "harm", HARM_LEVEL, by, why)
            except (NothingFound, InvalidInput) as wrong:
                reasons = str(wrong), not_beside_gateway(log) if isinstance(wrong, NothingFound) else ""
                raise NotLearned(without_locations("; ".join(filter(None, reasons)))) from wrong
            known = {each.precedent: each.outcome for each in await precedents_in_force(source, judged.agent)}
            if known.get(precedent_name(judged.exchange)) != "harmful":
                await self._append(log, orders)
        return precedent_name(judged.exchange)

    async def allow(self, agent: str, allowance: AllowanceRecorded) -> int:
        """Record an allowance; return its sequence."""
        async with self._log("allowance") as log:
            return await self._append(log, await allowance_orders(StreamSource(log), agent, allowance))

    async def withdraw(self, agent: str, allowance: str, by: str, why: str) -> int:
        """Withdraw an allowance; return the sequence of that event."""
        async with self._log("allowance") as log:
            return await self._append(log, await withdrawal_orders(StreamSource(log), agent, (allowance,), by, why))

    async def allowances(self, agent: str) -> AllowancesShown:
        """Return an agent's allowances in force."""
        async with self._log("agent") as log:
            source = StreamSource(log)
            shown = tuple(
                AllowanceShown(
                    allowance=each.allowance,
                    text=each.text,
                    phrase=each.phrase,
                    by=each.by,
                    why=each.why,
                    seq=each.seq,
                )
                for each in await allowances_in_force(source, agent)
            )
            left_out = "; ".join(filter(None, (source.unread.text, not_beside_gateway(log))))
        return AllowancesShown(agent=agent, allowances=shown, unread=left_out)

    async def reset_breaker(self, agent: str, session: str, by: str, why: str) -> BreakerWasReset:
        """Reset a session's breaker, and wait for its answer."""
        order, deadline = BreakerResetOrdered(by=by, why=why), Deadline(_ANSWER_SHARE * self._wait_s)
        async with self._log("session") as log:
            try:
                async with deadline.enforced():
                    done = await breaker_orders.reset_breaker(log, agent, session, order, deadline=deadline)
            except breaker_orders.NotCarriedOut as wrong:
                raise Undecided(str(wrong)) from wrong
        return BreakerWasReset(
            agent=agent,
            session=session,
            state_before=done.state_before,
            trust_before=done.trust_before,
            state=done.state,
            trust=done.trust,
            seq=done.answered_seq,
        )

    async def _judged(self, source: StreamSource, exchange: str) -> RecordedInput:
        """Return the input of an exchange; raises NotFound without reading a long log for an id that nobody knows."""
        begin = 0
        if self._lookup is not None:
            with suppress(LogError):  # without a ledger the log is searched
                begin = (await self._lookup(exchange)).started_seq
        return await judged_input(source, exchange, begin)

    async def _append(self, log: JetStreamLog, orders: Sequence[Order]) -> int:
        return (await give(log, orders, self._wait_s)).seq

    @asynccontextmanager
    async def _log(self, field: str) -> AsyncIterator[JetStreamLog]:
        """Open the log for an operator's request; errors become those of HTTP, which name the request's ``field``."""
        has_turn, removed = False, ""
        try:
            async with asyncio.timeout(self._wait_s), self._turns:
                has_turn = True
                async with await JetStreamLog.connect(self._access, stream=self._stream, create=False) as log:
                    await attach_ledger_or_warn(log, self._ledger)
                    removed = not_beside_gateway(log)
                    yield log
        except (TimeoutError, UnknownOutcome):
            if not has_turn:
                raise NotAccepted(
                    f"{AT_ONCE} such requests are carried out at a time, and this one waited {self._wait_s:g} s behind "
                    "others: nothing was done, send it again"
                ) from None
            raise NotAccepted(
                f"the broker has not confirmed this within {self._wait_s:g} s, and it may still be stored: "
                "see whether it is there, and send it again"
            ) from None
        except NothingFound as wrong:
            raise NotFound(without_locations("; ".join(filter(None, (str(wrong), removed))))) from wrong
        except InvalidInput as wrong:
            raise InvalidField(field, str(wrong)) from wrong
