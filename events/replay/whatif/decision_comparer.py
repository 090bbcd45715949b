"""Comparing the second timeline's events with the recorded events in their place."""

from collections.abc import Mapping

from events.body_comparison import BodyComparer, BodyComparison
from events.codec import Recorded
from events.decision import NewEvent
from events.replay.whatif.report import Tally
from schemas.event import Event


class DecisionComparer:
    """Compares bodies by actor, and counts the fields that are new since they were recorded."""

    def __init__(self, tallies: Mapping[str, Tally]) -> None:
        """Begin with nothing compared; new fields are counted in ``tallies``, by the actors' names."""
        self._tallies = tallies
        self._bodies = {name: BodyComparer() for name in tallies}

    def differing(self, actor: str, recorded: Recorded, decided: NewEvent) -> BodyComparison | None:
        """Return what a recorded event of an actor says and the one that is decided in its place; None: the same."""
        is_there = decided.subject == recorded.stored.subject
        if is_there and recorded.stored.data == decided.data:
            self._bodies[actor].note_identical(recorded)
            return None
        said = self._bodies[actor].compare(recorded, decided)
        counts = self._tallies[actor].new_fields
        for path in said.new:
            place = f"{decided.topic}.{path}"
            counts[place] = counts.get(place, 0) + 1
        return None if is_there and said.is_same else said


def asks_alike(recorded: Event, decided: Event) -> bool:
    """Whether two requests are equal in all that their answer depends on, so that the recorded answer can be used.

    For a language model that is the call; all other fields of a request are for its owner only.
    """
    call = getattr(recorded, "call", None)
    return call is not None and type(recorded) is type(decided) and call == getattr(decided, "call", None)
