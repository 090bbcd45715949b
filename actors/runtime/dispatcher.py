"""One subscription for all partitions of a process: each message is read and decoded once, then dispatched.

Every partition gets its messages in the order of the log. Among partitions, the urgent come first. Actors that an
exchange waits for decide at once; those of them that run trained models (classifiers in this process; no language model
is called by a decider) decide after the others. Actors in the background decide when the process would otherwise wait
for the next message.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from actors.runtime.clock import Clock
from actors.runtime.committer import Committer
from actors.runtime.fair_scheduler import SLICE_NS, FairScheduler
from actors.runtime.partition.shard import Shard
from events.decoding import decode
from events.log import Log, Stored, Tail
from events.losses import LOSS_FILTER, Losses
from events.partition_fold import Delivery
from events.routes import consumed_filters, own_filters, partitions_of, routes, without_overlap
from schemas.actor import Actor
from schemas.event import topic_of
from schemas.subjects import topic_filter
from schemas.vocabulary.ledger import LossRecorded
from schemas.vocabulary.memory import TurnsForgotten
from schemas.vocabulary.operator import ForgetOrdered

_AT_ONCE = 64
"""Messages dispatched before other tasks get to run."""

Key = tuple[str, str]
"""An actor's name and a partition of it."""

# An order to forget a person's text, and the event by which the memory actor says that it has forgotten some.
_FORGETS = tuple(topic_filter(topic_of(event)) for event in (ForgetOrdered, TurnsForgotten))
_FORGET_ENDINGS = tuple(filter.removeprefix("log.*.*") for filter in _FORGETS)

SHARED_FILTERS = (*_FORGETS, LOSS_FILTER)
"""What every worker reads besides the messages of its actors."""


class Dispatcher:
    """Dispatches the log's messages to shards, in order.

    Attributes:
        position: Sequence up to which every message has been dispatched.
        filters: The subjects that it reads.
    """

    def __init__(
        self,
        log: Log,
        actors: Sequence[Actor[Any]],
        shards: Mapping[Key, Shard],
        position: int,
        losses: Losses,
        *,
        scheduler: FairScheduler,
        clock: Clock,
    ) -> None:
        self.position = position
        self._scheduler = scheduler
        self._clock = clock
        self._log = log
        self._losses = losses
        self._actors = tuple(actors)
        self._by_name = {actor.name: actor for actor in actors}
        self._shards = shards
        self._routes: dict[str, tuple[tuple[Key, bool], ...]] = {}
        # Messages for actors that run trained models, which get them last, and whether the actor wrote each.
        self._model_deliveries: list[tuple[Shard, Delivery, bool]] = []
        self._tail: Tail | None = None
        self._forgets: list[Stored] = []  # orders to forget, after which snapshots have to be taken anew
        read = [filter for actor in actors for filter in (*consumed_filters(actor), *own_filters(actor))]
        self.filters = without_overlap([*read, *SHARED_FILTERS])

    @property
    def cut_off_s(self) -> float:
        """For how many seconds the log could not be read, although the broker can be reached; 0: it can."""
        return 0.0 if self._tail is None else self._tail.cut_off_s

    async def run(self, committer: Committer, started: Callable[[], None]) -> None:
        """Read and dispatch until cancelled."""
        tail = self._tail = await self._log.tail(self.filters, self.position)
        started()
        try:
            while True:
                batch = await tail.next()
                with self._scheduler.busy():
                    for start in range(0, len(batch), _AT_ONCE):
                        with self._scheduler.paused():
                            await self._dispatch_all(batch[start : start + _AT_ONCE], committer)
                            await self._dispatch_model_deliveries(committer)
                        self._renew_snapshots()
                        await committer.wait_capacity()
                        await self._scheduler.wait_capacity()
                        await asyncio.sleep(0)
        finally:
            await tail.close()

    async def _dispatch_all(self, messages: Sequence[Stored], committer: Committer) -> None:
        """Dispatch messages; if decisions take long, pause so that the appends of earlier ones can be sent."""
        begun = self._clock.elapsed_ns()
        for stored in messages:
            self._dispatch(stored)
            if self._clock.elapsed_ns() - begun >= SLICE_NS:
                committer.start()
                await asyncio.sleep(0)
                begun = self._clock.elapsed_ns()
        committer.start()

    def _dispatch(self, stored: Stored) -> None:
        # Set before dispatching: a shard that starts to recover because of this message must read it from history
        # again.
        self.position = stored.seq
        known = self._routes.get(stored.subject)
        if known is None:
            found = routes(self._actors, stored.subject, self._log.partitions)
            known = self._routes[stored.subject] = tuple(((actor.name, name), own) for actor, name, own in found)
        receivers = [(shard, own) for key, own in known if (shard := self._shards.get(key)) is not None]
        if receivers:
            delivery = decode(stored)
            for shard, own in receivers:
                if shard.actor.in_background:
                    self._scheduler.add_background(partial(shard.on_message, delivery, own))
                elif shard.actor.missing_model is None:  # it runs no trained model
                    shard.on_message(delivery, own)
                else:
                    self._model_deliveries.append((shard, delivery, own))
        if self._losses.note(stored):
            self._fold_again(self._losses.found[-1].event)
        if stored.subject.endswith(_FORGET_ENDINGS):
            self._forgets.append(stored)

    def _fold_again(self, loss: LossRecorded) -> None:
        """Make every partition fold the log again: its state may include messages that the log has lost.

        Where the log has assigned the lost sequences to other messages, this subscription ends anyway, and the process
        starts again.
        """
        if not loss.given_again:
            for shard in self._shards.values():
                shard.reset("log_loss")

    async def _dispatch_model_deliveries(self, committer: Committer) -> None:
        """Dispatch to actors that run trained models, for milliseconds each, once the decisions of others were sent."""
        if not self._model_deliveries:
            return
        model_deliveries, self._model_deliveries = self._model_deliveries, []
        await asyncio.sleep(0)  # the appends that were started are sent meanwhile
        for shard, delivery, own in model_deliveries:
            shard.on_message(delivery, own)
            committer.start()
            await asyncio.sleep(0)

    def _renew_snapshots(self) -> None:
        """Make every partition take a new snapshot if its present one may hold text that must be forgotten.

        This includes actors that do not consume the order to forget: they may keep text of an exchange that has ended.
        """
        forgets, self._forgets = self._forgets, []
        for forget in forgets:  # after the order itself, which actors in the background have not received yet
            self._scheduler.add_background(partial(self._renew_snapshots_for, forget))

    def _renew_snapshots_for(self, forget: Stored) -> None:
        for (name, partition), shard in self._shards.items():
            if partition in partitions_of(self._by_name[name], forget.subject, self._log.partitions):
                shard.renew_snapshot(forget.seq)
