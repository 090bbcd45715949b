"""One reading for all the partitions in a process: each message is read and decoded once, then handed round."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from actors.runtime.clock import Clock
from actors.runtime.committer import Committer
from actors.runtime.fair_scheduler import SLICE_NS, FairScheduler
from actors.runtime.partition.shard import Shard
from events.codec import decode
from events.log import Log, Stored
from events.losses import LOSS_FILTER, Losses
from events.routes import consumed_filters, own_filters, partitions_of, routes, without_overlap
from events.view import Delivery
from schemas.actor import Actor
from schemas.event import topic_of
from schemas.subjects import topic_filter
from schemas.vocabulary.ledger import LossRecorded
from schemas.vocabulary.memory import TurnsForgotten
from schemas.vocabulary.operator import ForgetOrdered

_SLICE = 64
"""Messages handed out before other tasks get their turn."""

_TURNS_TO_APPEND = 4
"""Turns of the loop from a decision to the bytes of its append on their way."""

Key = tuple[str, str]
"""An actor's name and a partition of it."""

_FORGETS = tuple(topic_filter(topic_of(event)) for event in (ForgetOrdered, TurnsForgotten))
_FORGET_ENDINGS = tuple(filter.removeprefix("log.*.*") for filter in _FORGETS)


class Dispatcher:
    """Hands the log's messages to shards, in order.

    Attributes:
        position: Sequence up to which every message has been handed out.
    """

    def __init__(
        self,
        log: Log,
        actors: Sequence[Actor[Any]],
        shards: Mapping[Key, Shard],
        position: int,
        losses: Losses,
        *,
        turns: FairScheduler,
        clock: Clock,
    ) -> None:
        self.position = position
        self._turns = turns
        self._clock = clock
        self._log = log
        self._losses = losses
        self._actors = tuple(actors)
        self._by_name = {actor.name: actor for actor in actors}
        self._shards = shards
        self._routes: dict[str, tuple[tuple[Key, bool], ...]] = {}
        self._late: list[tuple[Shard, Delivery, bool]] = []
        self._orders: list[Stored] = []
        read = [filter for actor in actors for filter in (*consumed_filters(actor), *own_filters(actor))]
        self.filters = without_overlap([*read, *_FORGETS, LOSS_FILTER])

    async def run(self, committer: Committer, started: Callable[[], None]) -> None:
        """Read until cancelled."""
        tail = await self._log.tail(self.filters, self.position)
        started()
        try:
            while True:
                batch = await tail.next()
                for start in range(0, len(batch), _SLICE):
                    with self._turns.paused():
                        await self._dispatch_all(batch[start : start + _SLICE])
                        await self._dispatch_late()
                    self._renew_snapshots()
                    await committer.wait_capacity()
                    await self._turns.wait_capacity()
                    await asyncio.sleep(0)
        finally:
            await tail.close()

    async def _dispatch_all(self, slice_of: Sequence[Stored]) -> None:
        """Hand messages out; where deciding them takes long, what is decided already goes on its way meanwhile."""
        begun = self._clock.elapsed_ns()
        for stored in slice_of:
            self._dispatch(stored)
            if self._clock.elapsed_ns() - begun >= SLICE_NS:
                await asyncio.sleep(0)
                begun = self._clock.elapsed_ns()

    def _dispatch(self, stored: Stored) -> None:
        # Set first: a shard that starts to recover because of this message reads it from history again.
        self.position = stored.seq
        known = self._routes.get(stored.subject)
        if known is None:
            found = routes(self._actors, stored.subject, self._log.partitions)
            known = self._routes[stored.subject] = tuple(((actor.name, name), own) for actor, name, own in found)
        takers = [(shard, own) for key, own in known if (shard := self._shards.get(key)) is not None]
        if takers:
            delivery = decode(stored)
            for shard, own in takers:
                if shard.actor.missing_model is None:
                    shard.on_message(delivery, own)
                else:
                    self._late.append((shard, delivery, own))
        if self._losses.note(stored):
            self._begin_anew(self._losses.found[-1].event)
        if stored.subject.endswith(_FORGET_ENDINGS):
            self._orders.append(stored)

    def _begin_anew(self, loss: LossRecorded) -> None:
        """Have every partition fold what is left: its state may hold messages that the log has lost.

        Where the sequences were given again there is no need: this reading would have ended.
        """
        if not loss.given_again:
            for shard in self._shards.values():
                shard.reset("log_loss")

    async def _dispatch_late(self) -> None:
        """Hand the slice to actors that ask models, which takes milliseconds, once the decisions of others are sent."""
        if not self._late:
            return
        late, self._late = self._late, []
        for _ in range(_TURNS_TO_APPEND):
            await asyncio.sleep(0)
        for shard, delivery, own in late:
            shard.on_message(delivery, own)
            await asyncio.sleep(0)

    def _renew_snapshots(self) -> None:
        """Have every partition that may have forgotten words in its snapshot take another one.

        Whether or not its actor consumes the order: what it keeps of an exchange that has ended since is words, too.
        """
        orders, self._orders = self._orders, []
        for order in orders:
            for (name, partition), shard in self._shards.items():
                if partition in partitions_of(self._by_name[name], order.subject, self._log.partitions):
                    shard.renew_snapshot(order.seq)
