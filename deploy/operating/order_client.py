"""Giving an operator's orders: appending them, and waiting for an answer."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from actors.gateway import Client, NoEnd, Order, Receipt
from actors.gateway.wait_deadlines import Within
from deploy.health.stage_watch import StageWatch, watching_stages
from events.decoding import Recorded
from events.errors import Unavailable
from events.jetstream import JetStreamLog
from events.log import Log


async def give(log: Log, orders: Sequence[Order], within: Within) -> Receipt:
    """Append the orders of one operation, by a client that is opened for it; raises what ``Client.order`` raises."""
    async with Client.open(log) as client:
        return await client.order(orders, within)


class NobodyServes(Unavailable):
    """An order is in the log, and no worker runs that would carry it out."""

    code = "no_owner"


class OrderClient:
    """Gives orders that an actor answers, and stops waiting once it is certain that nobody serves that actor.

    Attributes:
        client: Appends the orders.
    """

    def __init__(self, client: Client, stages: StageWatch) -> None:
        self.client = client
        self._stages = stages

    @classmethod
    @asynccontextmanager
    async def open(cls, log: JetStreamLog) -> AsyncIterator["OrderClient"]:
        """Open a client for an ``async with`` block; raises as ``Client.open``."""
        async with watching_stages(log.connection, log.partitions) as stages, Client.open(log) as client:
            yield cls(client, stages)

    async def answer_of(
        self,
        actor: str,
        filters: Sequence[str],
        after: int,
        is_wanted: Callable[[Recorded], bool],
        *,
        agent: str,
        session: str = "",
        what: str,
        within: Within,
    ) -> Recorded:
        """Wait for an actor's answer to an order about an agent and session; the rest is as in ``Client.first``.

        Raises:
            NobodyServes: no worker runs the actor for them.
            NoEnd, UnreadableEnd: see ``Client.first``.
        """
        try:
            return await self.client.first(
                filters,
                after,
                is_wanted,
                what=what,
                within=within,
                unserved=lambda: self._stages.why_unserved(actor, agent, session),
            )
        except NoEnd as wrong:
            if not wrong.unserved_stage:
                raise
            raise NobodyServes(
                f"nobody serves {wrong.unserved_stage}: it is carried out when a worker does; `neuraxis doctor` "
                "tells more"
            ) from None
