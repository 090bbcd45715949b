"""Matches the events of a changed decision with the recorded ones.

An event's id depends on its index among the events of its decision. One event more or less at the beginning (say, a
changed pattern library is recorded before the verdict) would change the ids of all later events, and of all that follow
from them, although their content is the same.
"""

from collections.abc import Sequence
from itertools import count, takewhile

import msgspec

from events.make_decision import NewEvent
from events.replay.whatif.record_index import RecordIndex
from schemas.identity import event_id


def with_recorded_ids(decided: tuple[NewEvent, ...], owners: Sequence[str], past: RecordIndex) -> tuple[NewEvent, ...]:
    """Return the events of a decision with the ids of the recorded events that they correspond to.

    An event corresponds to the first recorded event of its topic that is not taken yet. The others correspond to the
    recorded events that are left, last to last. An event without a counterpart gets an id after them. ``owners`` are
    the names that an id of the actor's may be made from: its own, or with its partition's where several partitions
    decide about one message.
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
