"""Which recorded event each event of a changed decision corresponds to.

An event's id depends on its index among the events of its decision. One event more or less in front (say, a changed
library is announced before the verdict) would change the ids of all events behind it, and of all that follow from them,
although their content is the same.
"""

from collections.abc import Sequence
from itertools import count, takewhile

import msgspec

from events.decision import NewEvent
from events.replay.whatif.record_index import RecordIndex
from schemas.identity import event_id


def with_recorded_ids(decided: tuple[NewEvent, ...], owners: Sequence[str], past: RecordIndex) -> tuple[NewEvent, ...]:
    """Return the events of a decision with the ids of the recorded events that they correspond to.

    An event corresponds to the first recorded event of its topic that is not taken yet. The others correspond to the
    recorded events that are left, last to last. An event without a counterpart gets an id after them. ``owners`` are
    the names with which the actor may have made ids.
    """
    if all(past.topic_of(each.message.id) in ("", each.topic) for each in decided):
        return decided
    first = decided[0]
    owner = next(name for name in owners if event_id(first.cause, name, 0) == first.message.id)
    topics = list(takewhile(bool, (past.topic_of(event_id(first.cause, owner, index)) for index in count())))
    places = _places([each.topic for each in decided], topics)
    return tuple(_at(each, owner, index) for each, index in zip(decided, places, strict=True))


def _places(decided: Sequence[str], recorded: Sequence[str]) -> list[int]:
    """Return the place of each decided topic among the recorded ones, or behind them."""
    left = list(range(len(recorded)))
    places: dict[int, int] = {}
    for number, topic in enumerate(decided):
        place = next((place for place in left if recorded[place] == topic), None)
        if place is not None:
            left.remove(place)
            places[number] = place
    unlike = [number for number in range(len(decided)) if number not in places]
    # From the end, since the verdict on a message stands behind what is said beside it.
    places.update(zip(reversed(unlike), reversed(left), strict=False))
    behind = count(len(recorded))
    return [places[number] if number in places else next(behind) for number in range(len(decided))]


def _at(decided: NewEvent, owner: str, index: int) -> NewEvent:
    message = msgspec.structs.replace(decided.message, id=event_id(decided.cause, owner, index))
    return msgspec.structs.replace(decided, message=message, index=index)
