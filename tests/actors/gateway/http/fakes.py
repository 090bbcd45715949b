"""What stands in for the log's records and an operator's acts, where a test is about who may ask for them."""

import json
from collections.abc import AsyncGenerator
from typing import Any

from actors.gateway.http.feedback.service import RatedExchange
from actors.gateway.http.operator_endpoints import (
    AllowancesShown,
    BreakerWasReset,
    NotLearned,
    Verdict,
    VerdictRecorded,
)
from actors.gateway.http.records.endpoints import StreamedEvent
from actors.gateway.http.records.set_overview import SetOverview
from actors.gateway.http.scopes import NotFound
from actors.runtime.membership.heartbeat import MetricsAddress
from events.errors import Unavailable
from events.ledger import ExchangeFilter, ExchangeResult, Page


class Records:
    """Records of two agents."""

    def __init__(self) -> None:
        self.wanted: list[ExchangeFilter] = []

    async def exchanges(self, wanted: ExchangeFilter) -> Page:
        self.wanted.append(wanted)
        return Page(exchanges=(), before=0, head=0)

    async def exchange(self, exchange: str) -> ExchangeResult:
        return ExchangeResult(exchange=exchange, agent=exchange, session="s", started_seq=1)

    async def overview(self, at: int) -> SetOverview:
        raise Unavailable("no process writes the ledger")

    async def why(self, exchange: str) -> bytes:
        return b"{}"

    async def follow(
        self, filter: str, after: int | None, *, words: bool
    ) -> AsyncGenerator[StreamedEvent | None, None]:
        return self._following()

    async def _following(self) -> AsyncGenerator[StreamedEvent | None, None]:
        for seq, agent in enumerate(("theirs", "own", "", "own"), 1):
            yield StreamedEvent(seq, "forged_id.input.received", json.dumps({"agent": agent}), agent)


class Operations:
    """An operator's acts, of which none is done."""

    async def judge(self, verdict: Verdict, agent: str) -> VerdictRecorded:
        if agent and verdict.exchange != agent:
            raise NotFound("there is no such exchange")
        return VerdictRecorded(agent=agent, precedent="p", verdict=verdict.verdict, seq=1)

    async def allow(self, agent: str, allowance: Any) -> int:
        return 1

    async def withdraw(self, agent: str, allowance: str, by: str, why: str) -> int:
        return 1

    async def allowances(self, agent: str) -> AllowancesShown:
        return AllowancesShown(agent=agent, allowances=())

    async def learn_harm(self, exchange: str, by: str, why: str) -> str:
        raise NotLearned(f"exchange {exchange} has no text of its own")

    async def reset_breaker(self, agent: str, session: str, by: str, why: str) -> BreakerWasReset:
        return BreakerWasReset(
            agent=agent, session=session, state_before="VIOLATED", trust_before=0.4, state="NORMAL", trust=1.0, seq=1
        )


class Examinations:
    """Questions about the log that nobody answers."""

    async def what_if(self, exchange: str, settings: dict[str, Any]) -> bytes:
        raise Unavailable("the log cannot be read")

    async def state(self, actor: str, key: str, at: int, path: str) -> bytes:
        raise Unavailable("the log cannot be read")

    async def settings(self) -> bytes:
        return b"{}"


async def rated_by_name(exchange: str) -> RatedExchange:
    """Find an exchange of the agent that has its name."""
    return RatedExchange(exchange=exchange, agent=exchange, session="s")


class Measuring:
    """No metrics at all."""

    async def render(self) -> bytes:
        return b""

    async def targets(self) -> tuple[MetricsAddress, ...]:
        return (MetricsAddress("deciders", "127.0.0.1:9464"),)
