"""Finds the first event after which a condition on an actor's state holds, by one fold that checks every state."""

from collections.abc import Callable
from typing import Any

import msgspec

from events.decoding import Recorded, Unreadable, exchange_of
from events.partition_fold import Processed, View
from events.replay.replay import Replay
from events.replay.run_replay import Point, run_replay
from events.replay.sources import Source
from events.replay.states.conditions import MISSING, Condition, kind_of
from events.replay.states.diffing import path_text
from events.replay.states.partition_state import ContainsKey, entries_under, no_such_path, value_at
from events.routes import partition_filters
from schemas.actor import Actor
from schemas.subjects import split_stored

_MAX_VALUE_CHARACTERS = 60  # of a value in an error message


class BisectResult(msgspec.Struct, frozen=True, kw_only=True):
    """The event that made a condition hold; ``before`` and ``after`` are absent (UNSET) where the path did not exist.

    ``seq`` is 0, and the rest empty, if the initial state fulfilled it.
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
    """Checks every state of a partition, in order; ``found`` describes the first one for which the condition holds.

    ``path_exists``: the condition's path existed in some state. ``kind_fits``: it led to a value of a kind for which
    the condition can hold. ``other_kind`` is the last value of another kind.
    """

    def __init__(self, actor: Actor[Any], partition: str, key: str, condition: Condition) -> None:
        self.found: BisectResult | None = None
        self.path_exists = self.kind_fits = False
        self.other_kind: Any = MISSING
        self._actor, self._partition, self._key, self._condition = actor, partition, key, condition
        self._may_contain = ContainsKey(key)
        self._latest: Recorded | Unreadable | None = None
        self._last_checked: Any = MISSING
        self._value: Any = MISSING

    def check(self, state: Any) -> None:
        """Check the state after the latest message."""
        if self.found is not None or state is self._last_checked:
            return
        self._last_checked = state
        before, self._value = self._value, self._value_in(state)
        if self._condition.holds(self._value):
            self.found = self._result(before)

    def on_processed(self, processed: Processed) -> None:
        """Check the state before a message."""
        self.check(processed.before)
        self._latest = processed.delivery

    def on_spontaneous(self, own: Recorded, state: Any) -> None:
        """Check the state before an event that no message led to."""
        self.check(state)
        self._latest = own

    def on_orphan(self, group: tuple[Recorded, ...]) -> None:
        """Note events whose cause was processed before: they may change the state themselves."""
        self._latest = group[-1]

    def _value_in(self, state: Any) -> Any:
        """Return the value at the path, below one of the entries kept under the key: one that fulfils the condition, if
        any.

        If the path exists below none of them, it is looked up from the top of the state.
        """
        values = list(self._values_in(state).values()) or [MISSING]
        self.path_exists = self.path_exists or values != [MISSING]
        for value in values:
            if self._condition.can_hold_for(value):
                self.kind_fits = self.kind_fits or value is not MISSING
            else:
                self.other_kind = value
        return next(filter(self._condition.holds, values), values[-1])

    def _values_in(self, state: Any) -> dict[str, Any]:
        entries = dict(entries_under(state, self._key, may_contain=self._may_contain))
        return value_at(state, entries, self._condition.path)

    def _result(self, before: Any) -> BisectResult:
        latest = self._latest
        result = BisectResult(actor=self._actor.name, partition=self._partition, after=_plain(self._value))
        if latest is None:
            return result
        return msgspec.structs.replace(
            result,
            seq=latest.stored.seq,
            time_ns=latest.stored.time_ns,
            topic=split_stored(latest.stored.subject)[0],
            exchange=exchange_of(latest),
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
        view.on_processed = search.on_processed
        view.on_spontaneous = search.on_spontaneous
        view.on_orphan = search.on_orphan

    replay.on_view = watch
    filters = partition_filters(actor, partition, source.partitions)
    await run_replay(source, replay, upto, filters=filters, progress=progress)
    source.unread.add(replay.unread)
    view = replay.view_of(actor, partition) or replay.view(actor, partition)
    search.check(view.state)
    if search.found is None and not search.path_exists and condition.operator != "exists":
        raise NoSuchPath(no_such_path(view.state, dict(entries_under(view.state, key)), path_text(condition.path)))
    if search.found is None and not search.kind_fits and search.other_kind is not MISSING:
        held, literal = search.other_kind, condition.literal
        raise KindMismatch(
            f"{path_text(condition.path)} holds {kind_of(held)}, such as {_short(held)}, and never what it is compared "
            f"with: {_short(literal)}, {kind_of(literal)}"
        )
    return search.found


def _short(value: Any) -> str:
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= _MAX_VALUE_CHARACTERS else f"{text[: _MAX_VALUE_CHARACTERS - 1]}…"
