"""Matches the events of a changed decision with the recorded ones, and compares those that have the same id.

An event's id depends on its index among the events of its decision. One event more or less at the beginning (say, a
changed pattern library is recorded before the verdict) would change the ids of all later events, and of all that follow
from them, although their content is the same.
"""

from collections.abc import Mapping, Sequence
from itertools import count, takewhile

import msgspec

from events.decoding import Recorded
from events.make_decision import NewEvent
from events.replay.body_comparison import BodyComparer, BodyComparison
from events.replay.whatif.record_index import RecordIndex
from events.replay.whatif.report import Tally
from schemas.event import Event
from schemas.identity import event_id


def with_recorded_ids(decided: tuple[NewEvent, ...], owners: Sequence[str], past: RecordIndex) -> tuple[NewEvent, ...]:
    """Return the events of a decision with the ids of the recorded events that they correspond to.

    An event corresponds to the first recorded event of its topic that is not taken yet. The others correspond to the
    recorded events that are left, last to last. An event without a counterpart gets an id after them. ``owners`` are
    the names that ids of the actor's events may be made from: the actor's, or both the actor's and the partition's
    where several partitions decide about one message.
    """
    if all(past.topic_of(each.message.id) in ("", each.topic) for each in decided):
        return decided
    first = decided[0]
    owner = next(name for name in owners if event_id(first.cause, name, 0) == first.message.id)
    topics = list(takewhile(bool, (past.topic_of(event_id(first.cause, owner, index)) for index in count())))
    indexes = _indexes([each.topic for each in decided], topics)
    return tuple(_with_index(each, owner, index) for each, index in zip(decided, indexes, strict=True))


def _indexes(decided: Sequence[str], recorded: Sequence[str]) -> list[int]:
    """Return the index of each decided topic among the recorded ones, or one behind them."""
    left = list(range(len(recorded)))
    indexes: dict[int, int] = {}
    for position, topic in enumerate(decided):
        index = next((index for index in left if recorded[index] == topic), None)
        if index is not None:
            left.remove(index)
            indexes[position] = index
    unmatched = [position for position in range(len(decided)) if position not in indexes]
    # From the end, since the verdict on a message comes last among the events of a decision.
    indexes.update(zip(reversed(unmatched), reversed(left), strict=False))
    behind = count(len(recorded))
    return [indexes[position] if position in indexes else next(behind) for position in range(len(decided))]


def _with_index(decided: NewEvent, owner: str, index: int) -> NewEvent:
    message = msgspec.structs.replace(decided.message, id=event_id(decided.cause, owner, index))
    return msgspec.structs.replace(decided, message=message, index=index)


class DecisionComparer:
    """Compares bodies by actor, and counts the fields that are new since they were recorded."""

    def __init__(self, tallies: Mapping[str, Tally]) -> None:
        """Begin with nothing compared; new fields are counted in ``tallies`` (actor -> tally)."""
        self._tallies = tallies
        self._bodies = {name: BodyComparer() for name in tallies}

    def differing(self, actor: str, recorded: Recorded, decided: NewEvent) -> BodyComparison | None:
        """Return the comparison of a recorded event and the one decided again; None if they are the same."""
        is_same_subject = decided.subject == recorded.stored.subject
        if is_same_subject and recorded.stored.data == decided.data:
            self._bodies[actor].note_identical(recorded)
            return None
        comparison = self._bodies[actor].compare(recorded, decided)
        counts = self._tallies[actor].new_fields
        for path in comparison.new:
            path = f"{decided.topic}.{path}"
            counts[path] = counts.get(path, 0) + 1
        return None if is_same_subject and comparison.is_same else comparison


def asks_alike(recorded: Event, decided: Event) -> bool:
    """Whether two requests are equal in all that their answer depends on, so that the recorded answer can be used.

    For a language model that is the call; all other fields of a request are for its owner only.
    """
    call = getattr(recorded, "call", None)
    return call is not None and type(recorded) is type(decided) and call == getattr(decided, "call", None)
