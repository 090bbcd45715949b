"""Notes what of a log this release cannot read, or not fold as it was decided, to report it."""

from collections.abc import Mapping

from events.decoding import Unreadable


def newer_behaviours_text(first: Mapping[str, int]) -> str:
    """Return a warning about states that a newer release decided under a behaviour of its own; empty if there are none.

    ``first``: actor -> the sequence from which on a newer release decided.
    """
    if not first:
        return ""
    return (
        f"the states of {', '.join(sorted(first))} may differ: from sequence {min(first.values()):,} on a newer "
        "release decided under a behaviour that this one does not have"
    )


class UnreadEvents:
    """Events of a log that were left out of what is shown, as this release cannot read them.

    A later release may have written them. Whoever sums up events, and leaves one out, notes it here: a list that lacks
    an entry looks like a complete one.
    """

    def __init__(self) -> None:
        self._sequences: set[int] = set()
        self._first: Unreadable | None = None
        self._newer_behaviours: dict[str, int] = {}

    def note(self, event: Unreadable) -> None:
        """Note an event; one that is noted twice counts once."""
        self._sequences.add(event.stored.seq)
        if self._first is None or event.stored.seq < self._first.stored.seq:
            self._first = event

    def add(self, others: "UnreadEvents") -> None:
        """Note all that ``others`` has noted."""
        self._sequences |= others._sequences
        if others._first is not None:
            self.note(others._first)
        for actor, seq in others._newer_behaviours.items():
            self.note_behaviour(actor, seq)

    def note_behaviour(self, actor: str, seq: int) -> None:
        """Note that from a sequence on an actor's decisions were made under a behaviour that only a newer release has.

        Its events are left in: they are folded by this release's code.
        """
        self._newer_behaviours[actor] = min(seq, self._newer_behaviours.get(actor, seq))

    @property
    def newer_behaviours(self) -> Mapping[str, int]:
        """Actor -> the first sequence from which on a newer release decided; see :meth:`note_behaviour`."""
        return dict(sorted(self._newer_behaviours.items()))

    @property
    def count(self) -> int:
        """How many events were noted."""
        return len(self._sequences)

    @property
    def text(self) -> str:
        """A warning about all of it, with the first event's sequence and why it cannot be read; empty if nothing is."""
        return "; ".join(filter(None, (self._events_text, newer_behaviours_text(self._newer_behaviours))))

    @property
    def _events_text(self) -> str:
        if self._first is None:
            return ""
        where = f"sequence {self._first.stored.seq:,}: {self._first.detail}"
        if self.count == 1:
            return f"an event that this release cannot read is left out ({where})"
        return f"{self.count:,} events that this release cannot read are left out (the first at {where})"
