"""Replay: fold recorded events through the same views as live, run no effect, and re-decide on demand.

Feed a :class:`Replay` every stored message from sequence 1 on, in order; where they come from (the stream, a ledger
file) is its caller's affair. With ``verify`` every decision is made again from the state before it and compared
byte for byte with what was recorded.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from events.codec import Recorded, Unreadable, decode
from events.decision import APPEND_REFUSED, Cause, Decided, address, decide
from events.forgotten import SEALED, Forgotten
from events.log import Seal, Stored
from events.routes import consumed_filters, own_filters, routes, without_overlap
from events.view import Settled, View
from schemas.actor import Actor
from schemas.envelope import Envelope
from schemas.errors import UndecodableEvent
from schemas.event import Failed, topic_of
from schemas.persistent import state_hash
from schemas.subjects import Partitions, split_stored

BACKLOG = 10_000
"""Waiting messages of a partition from which the oldest are decided, to see whether any events can be owed for them.

Settings and timers that a leader recorded while it was further behind than this are folded where the replay stands
instead of where the leader stood, and counted as unverified.
"""

BEYOND_BACKLOG = "beyond_backlog"


class Difference(msgspec.Struct, frozen=True):
    """A decision that came out otherwise than recorded.

    ``seq`` and ``topic`` are the decided message's, or the event's own where no message led to it; ``field`` names
    what differs first (``count``, ``subject``, ``id``, ``cause``, ``address``, ``place``, ``body``); ``recorded`` and
    ``redecided`` are its two values as text.
    """

    actor: str
    partition: str
    seq: int
    topic: str
    exchange: str
    field: str
    recorded: str
    redecided: str


class Coverage(msgspec.Struct):
    """What became of an actor's decisions in a verification.

    ``identical`` and ``different`` were re-decided. ``silent`` of the identical ones led to no event. ``pending`` were
    not decided yet when the log ended. ``unverified`` counts, by reason, those that could not be re-decided; ``sealed``
    is the reason where words are needed that were forgotten, or whose keys are out of reach.
    These add up to the messages consumed; forged events, which no message led to, are ``different`` besides.
    ``facts`` are own events that no decision yields (settings); ``timers`` those that time yielded, checked against
    the pending deadlines.
    """

    identical: int = 0
    silent: int = 0
    different: int = 0
    pending: int = 0
    timers: int = 0
    facts: int = 0
    unverified: dict[str, int] = {}


class Report(msgspec.Struct, frozen=True):
    """The outcome of a replay.

    ``state_hashes`` maps ``actor/partition`` to the hash of its final state. ``differences`` holds the first
    ones, in the order met; ``coverage`` counts all. ``unreadable`` are messages no one could decode, by error code.
    """

    events: int
    first_seq: int
    last_seq: int
    state_hashes: dict[str, str]
    coverage: dict[str, Coverage]
    differences: tuple[Difference, ...]
    unreadable: dict[str, int]
    fold_errors: int

    @property
    def clean(self) -> bool:
        """Whether every decision that could be made again came out as recorded."""
        return not self.fold_errors and not any(c.different for c in self.coverage.values())

    @property
    def sealed(self) -> int:
        """How many decisions could not be made again for want of words that cannot be opened."""
        return sum(counts.unverified.get(SEALED, 0) for counts in self.coverage.values())


class Replay:
    """Folds stored messages into the views of every partition of the given actors.

    Attributes:
        views: (actor name, partition) -> view, for the partitions that had any message, or were asked for.
        on_silent: Called, after the fold, for each message that led to nothing and that no recorded event settles.
    """

    def __init__(
        self,
        actors: Sequence[Actor[Any]],
        partitions: Partitions,
        *,
        verify: bool = False,
        keep: int = 20,
        backlog: int = BACKLOG,
        only: Mapping[str, str] | None = None,
    ) -> None:
        """Begin before the first message.

        Args:
            actors: Whose views are folded.
            partitions: The partition counts of the log.
            verify: Make every decision again.
            keep: How many differences are kept; all are counted.
            backlog: See ``BACKLOG``.
            only: Actor name -> the one partition of it that is folded; an actor not named is folded whole.
        """
        self._only = only or {}
        self.views: dict[tuple[str, str], View] = {}
        self.on_silent: Callable[[View, Settled], None] | None = None
        self._actors = tuple(actors)
        self._partitions = partitions
        self._verify = verify
        self._keep = keep
        self._backlog = backlog
        self._owed: dict[tuple[str, str], int] = {}
        self._silent: dict[tuple[str, str], int] = {}
        self._routes: dict[str, tuple[tuple[View, bool], ...]] = {}
        self._forgotten: dict[tuple[str, str], Forgotten] = {}
        self._coverage = {actor.name: Coverage(unverified={}) for actor in actors}
        self._differences: list[Difference] = []
        self._unreadable: Counter[str] = Counter()
        self._events = self._first = self._last = 0

    @property
    def filters(self) -> tuple[str, ...]:
        """The filters over all that the replayed actors consumed and published."""
        return without_overlap(one for actor in self._actors for one in (*consumed_filters(actor), *own_filters(actor)))

    @property
    def coverage(self) -> Mapping[str, Coverage]:
        """The counts so far, by actor."""
        return self._coverage

    def feed(self, stored: Stored) -> None:
        """Take the next message of the log."""
        self._events += 1
        self._first = self._first or stored.seq
        self._last = stored.seq
        takers = self._routes.get(stored.subject)
        if takers is None:
            takers = self._routes[stored.subject] = tuple(self._route(stored.subject))
        if not takers:
            return
        offered = decode(stored)
        if isinstance(offered, Unreadable):
            self._unreadable[offered.code] += 1
        for view, own in takers:
            if own and self._verify and isinstance(offered, Unreadable) and offered.code == UndecodableEvent.code:
                # Damage is what a verification is there to find; a newer release's event stops it as any reading.
                self._differ(view, offered, ("body", _text(stored.data), f"it cannot be read: {offered.detail}"))
            elif own:
                view.record(offered)
            else:
                view.offer(offered)
                if len(view.waiting) > self._backlog:
                    self._settle_silent(view)

    def finish(self) -> Report:
        """Settle what the log's end left open, and report.

        Messages behind the last own event that lead to nothing are folded, as a living actor would have; one that
        leads to an event is pending, and the fold of its partition ends before it.
        """
        for view in self.views.values():
            if 0 < view.open_decision < self._last:
                # Nothing lies between the events of one decision, so the rest of this one will never come.
                view.close_decision()
            while view.waiting:
                if not self._decide_silent(view):
                    self._coverage[view.actor.name].pending += len(view.waiting)
                    break
        return Report(
            self._events,
            self._first,
            self._last,
            {f"{name}/{part}": state_hash(view.state) for (name, part), view in sorted(self.views.items())},
            self._coverage,
            tuple(self._differences),
            dict(self._unreadable),
            sum(view.fold_errors for view in self.views.values()),
        )

    def _settle_silent(self, view: View) -> None:
        """Fold the older half of a partition's waiting messages, as long as they lead to nothing.

        Own events settle what came before them. An actor that hardly ever speaks would otherwise have the whole log
        waiting in memory. What leads to an event waits for it.
        """
        key = view.actor.name, view.partition
        if self._owed.get(key) == view.waiting[0].stored.seq or self._other_behaviour(view):
            return
        while len(view.waiting) > self._backlog // 2:
            if not self._decide_silent(view):
                self._owed[key] = view.waiting[0].stored.seq
                return
            self._silent[key] = view.place

    def _decide_silent(self, view: View) -> bool:
        """Decide and fold the oldest waiting message if it leads to nothing; otherwise leave all as it was."""
        before, place, time_ns, offered = view.state, view.place, view.time_ns, view.waiting[0]
        if view.decide_next():
            view.state, view.place, view.time_ns = before, place, time_ns
            view.waiting.appendleft(offered)
            return False
        coverage = self._coverage[view.actor.name]
        reason = self._why_not(view, Settled(offered, before, ()))
        if reason:
            self._leave_unverified(view, reason)
        else:
            coverage.identical += 1
            coverage.silent += 1
        if self.on_silent is not None:
            self.on_silent(view, Settled(offered, before, ()))
        return True

    def _check_stray(self, view: View, group: Sequence[Recorded]) -> None:
        """Notice events of a message that was settled before: it led to other events, or was folded as silent."""
        if group[0].envelope.cause_seq <= self._silent.get((view.actor.name, view.partition), 0):
            self._coverage[view.actor.name].identical -= 1
            self._coverage[view.actor.name].silent -= 1
        self._differ(view, group[0], ("count", _topics([own.envelope.topic for own in group]), _topics([])))

    def _route(self, subject: str) -> Iterator[tuple[View, bool]]:
        try:
            found = tuple(routes(self._actors, subject, self._partitions))
        except ValueError:
            return
        for actor, partition, own in found:
            if self._only.get(actor.name, partition) != partition:
                continue
            yield self.view(actor, partition), own

    def view(self, actor: Actor[Any], partition: str) -> View:
        """Return the view of a partition, made where it is new."""
        view = self.views.get((actor.name, partition))
        if view is None:
            view = self.views[actor.name, partition] = View(actor, partition, self._partitions)
            self._forgotten[actor.name, partition] = Forgotten(actor)
            if self._verify:
                view.on_settled = lambda settled: self._check(view, settled)
                view.on_spontaneous = lambda own, state: self._check_spontaneous(view, own, state)
                view.on_stray = lambda group: self._check_stray(view, group)
        return view

    def _check(self, view: View, settled: Settled) -> None:
        actor, coverage = view.actor, self._coverage[view.actor.name]
        reason = self._why_not(view, settled)
        if reason:
            self._leave_unverified(view, reason)
            return
        offered = settled.offered
        decided, _ = decide(actor, settled.before, offered, self._partitions, view.partition)
        found = compare(settled.recorded, decided)
        if found is None:
            coverage.identical += 1
            coverage.silent += not decided
        elif isinstance(offered, Recorded) and self._forgotten_of(view).may_have_changed(offered.message):
            self._leave_unverified(view, SEALED)
        else:
            self._differ(view, offered, found)

    def _why_not(self, view: View, settled: Settled) -> str:
        """Return why a decision cannot be made again, or nothing; called once for each, in order."""
        refused = any(
            isinstance(r.message.event, Failed) and r.message.event.reason == APPEND_REFUSED for r in settled.recorded
        )
        forgotten = self._forgotten_of(view)
        sealed = forgotten.needed_for(settled)
        forgotten.fold(settled)
        return (
            self._other_behaviour(view)
            or (APPEND_REFUSED if refused else "")
            or (SEALED if sealed else "")
            or _missing_model(view, settled)
        )

    def _forgotten_of(self, view: View) -> Forgotten:
        return self._forgotten[view.actor.name, view.partition]

    @staticmethod
    def _other_behaviour(view: View) -> str:
        if view.configured is None or view.configured.behaviour == view.actor.behaviour:
            return ""
        return f"behaviour_{view.configured.behaviour}"

    def _check_spontaneous(self, view: View, own: Recorded, state: Any) -> None:
        coverage = self._coverage[view.actor.name]
        is_fact = own.envelope.topic == topic_of(view.actor.configured) or view.actor.timer is None
        if own.envelope.cause_seq < self._silent.get((view.actor.name, view.partition), 0):
            self._leave_unverified(view, BEYOND_BACKLOG)
        elif is_fact:
            coverage.facts += 1
        elif own.stored.seal is Seal.CLOSED:
            self._leave_unverified(view, SEALED)
        elif reason := self._other_behaviour(view):
            self._leave_unverified(view, reason)
        elif found := compare((own,), self._due(view, own, state)):
            self._differ(view, own, found)
        else:
            coverage.timers += 1

    def _due(self, view: View, own: Recorded, state: Any) -> tuple[Decided, ...]:
        """Return the event that time yields next, addressed as a shell would have."""
        timer = view.actor.timer(state) if view.actor.timer is not None else None
        if timer is None:
            return ()
        _, agent_token, session_token = split_stored(own.stored.subject)
        cause = Cause(timer.cause, view.place, view.time_ns, "", "", "", agent_token, session_token)
        return address(view.actor.name, cause, (timer.emission,), self._partitions)

    def _leave_unverified(self, view: View, reason: str) -> None:
        unverified = self._coverage[view.actor.name].unverified
        unverified[reason] = unverified.get(reason, 0) + 1

    def _differ(self, view: View, offered: Recorded | Unreadable, found: tuple[str, str, str]) -> None:
        self._coverage[view.actor.name].different += 1
        if len(self._differences) < self._keep:
            exchange = offered.message.exchange if isinstance(offered, Recorded) else ""
            topic = split_stored(offered.stored.subject)[0]
            self._differences.append(
                Difference(view.actor.name, view.partition, offered.stored.seq, topic, exchange, *found)
            )


def _missing_model(view: View, settled: Settled) -> str:
    if view.actor.missing_model is None:
        return ""
    names = (view.actor.missing_model(own.message.event) for own in settled.recorded)
    return next((f"model_{name}" for name in names if name), "")


def compare(recorded: Sequence[Recorded], decided: Sequence[Decided]) -> tuple[str, str, str] | None:
    """Return what differs first between recorded and re-decided events as (field, recorded, re-decided), or None."""
    if len(recorded) != len(decided):
        return "count", _topics([r.envelope.topic for r in recorded]), _topics([d.topic for d in decided])
    for was, now in zip(recorded, decided, strict=True):
        pairs = (
            ("subject", was.stored.subject, now.subject),
            ("id", was.envelope.id, now.message.id),
            ("cause", was.envelope.cause, now.cause),
            ("address", _address(was.message), _address(now.message)),
            ("place", _place(was.envelope), _place(now)),
        )
        for field, left, right in pairs:
            if left != right:
                return field, left, right
        if was.stored.data != now.data:
            return "body", _text(was.stored.data), _text(now.data)
    return None


def _topics(topics: Sequence[str]) -> str:
    return f"{len(topics)} events: {', '.join(topics)}"


def _address(message: Any) -> str:
    return f"agent {message.agent!r}, session {message.session!r}, exchange {message.exchange!r}"


def _place(event: Envelope | Decided) -> str:
    return f"{event.index}/{event.count} behind {event.cause_seq}"


def _text(data: bytes) -> str:
    return data.decode(errors="replace")
