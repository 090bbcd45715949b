"""Finding the first event after which a condition on an actor's state holds: one fold that checks every state."""

from collections.abc import Callable
from typing import Any

import msgspec

from events.codec import Recorded, Unreadable
from events.replay.replay import Replay
from events.replay.run_replay import Point, run_replay
from events.replay.sources import Source
from events.replay.states.conditions import MISSING, Condition, kind_of
from events.replay.states.diffing import path_text
from events.replay.states.partition_state import entries_under, no_such_path, value_at
from events.routes import partition_filters
from events.view import Processed, View
from schemas.actor import Actor
from schemas.subjects import split_stored

_LONGEST = 60


class BisectResult(msgspec.Struct, frozen=True, kw_only=True):
    """The event that made a condition hold; ``before`` and ``after`` are absent (UNSET) where the path led nowhere.

    ``seq`` is 0, and the rest empty, where it held of the initial state.
    """

    actor: str
    partition: str
    seq: int = 0
    time_ns: int = 0
    topic: str = ""
    exchange: str = ""
    before: Any = msgspec.UNSET
    after: Any = msgspec.UNSET


class NoSuchPath(LookupError):
    """A path that does not exist in any of the states; the message names paths that do."""

    code = "no_such_path"


class KindMismatch(ValueError):
    """A condition that compares values of different kinds, so that it can never hold; the message names both kinds."""

    code = "other_kind"


class _Search:
    """Looks at every state that a partition takes, in order; ``found`` is the first of which the condition holds.

    ``led_somewhere`` says whether the condition's path did in any of them, ``suited`` whether it led to a value of a
    kind that the condition may hold of, and ``unfit`` is the last one that was not.
    """

    def __init__(self, actor: Actor[Any], partition: str, key: str, condition: Condition) -> None:
        self.found: BisectResult | None = None
        self.led_somewhere = self.suited = False
        self.unfit: Any = MISSING
        self._actor, self._partition, self._key, self._condition = actor, partition, key, condition
        self._latest: Recorded | Unreadable | None = None
        self._seen: Any = MISSING
        self._value: Any = MISSING

    def look(self, state: Any) -> None:
        """Look at the state after the latest message."""
        if self.found is not None or state is self._seen:
            return
        self._seen = state
        before, self._value = self._value, self._at(state)
        if self._condition.holds(self._value):
            self.found = self._result(before)

    def settled(self, settled: Processed) -> None:
        """Look at the state before a message."""
        self.look(settled.before)
        self._latest = settled.delivery

    def spontaneous(self, own: Recorded, state: Any) -> None:
        """Look at the state before an event that no message led to."""
        self.look(state)
        self._latest = own

    def stray(self, group: tuple[Recorded, ...]) -> None:
        """Take events whose cause was settled before: what they change is theirs."""
        self._latest = group[-1]

    def _at(self, state: Any) -> Any:
        """Return what the path leads to: the value of which it holds, of all the entries kept under the key.

        The whole state is the place to look where the path leads nowhere below any of them.
        """
        values = list(self._found(state).values()) or [MISSING]
        self.led_somewhere = self.led_somewhere or values != [MISSING]
        for value in values:
            if self._condition.suits(value):
                self.suited = self.suited or value is not MISSING
            else:
                self.unfit = value
        return next(filter(self._condition.holds, values), values[-1])

    def _found(self, state: Any) -> dict[str, Any]:
        return value_at(state, dict(entries_under(state, self._key)), self._condition.path)

    def _result(self, before: Any) -> BisectResult:
        latest = self._latest
        place = BisectResult(actor=self._actor.name, partition=self._partition, after=_plain(self._value))
        if latest is None:
            return place
        return msgspec.structs.replace(
            place,
            seq=latest.stored.seq,
            time_ns=latest.stored.time_ns,
            topic=split_stored(latest.stored.subject)[0],
            exchange=latest.message.exchange if isinstance(latest, Recorded) else "",
            before=_plain(before),
        )


def _plain(value: Any) -> Any:
    return msgspec.UNSET if value is MISSING else value


async def first_holding(
    source: Source,
    actor: Actor[Any],
    partition: str,
    key: str,
    condition: Condition,
    upto: Point,
    progress: Callable[[int], None],
) -> BisectResult | None:
    """Return the first event up to a point after which ``condition`` holds; None if it never does.

    The condition may hold, cease and hold again, so every state is checked.

    Raises:
        NoSuchPath: its path does not exist in any state, so it could never hold.
        KindMismatch: its path never has a value of the kind that it compares with.
        Misconfigured, LogError: as ``events.replay.run_replay.run_replay`` does.
    """
    search = _Search(actor, partition, key, condition)
    replay = Replay([actor], source.partitions, only={actor.name: partition})

    def watch(view: View) -> None:
        view.on_processed, view.on_system_event, view.on_orphan = search.settled, search.spontaneous, search.stray

    replay.on_view = watch
    filters = partition_filters(actor, partition, source.partitions)
    await run_replay(source, replay, upto, filters=filters, progress=progress)
    view = replay.view_of(actor, partition) or replay.view(actor, partition)
    search.look(view.state)
    if search.found is None and not search.led_somewhere and condition.operator != "exists":
        raise NoSuchPath(no_such_path(view.state, dict(entries_under(view.state, key)), path_text(condition.path)))
    if search.found is None and not search.suited and search.unfit is not MISSING:
        held, literal = search.unfit, condition.literal
        raise KindMismatch(
            f"{path_text(condition.path)} holds {kind_of(held)}, such as {_short(held)}, and never what it is compared "
            f"with: {_short(literal)}, {kind_of(literal)}"
        )
    return search.found


def _short(value: Any) -> str:
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
