"""Compares the second timeline's events with the recorded events of the same id."""

from collections.abc import Mapping

from events.decoding import Recorded
from events.make_decision import NewEvent
from events.replay.body_comparison import BodyComparer, BodyComparison
from events.replay.whatif.report import Tally
from schemas.event import Event


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
