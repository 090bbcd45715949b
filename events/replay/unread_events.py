"""Notes the events that a reader of a log left out, since this release cannot read them, to report them."""

from events.decoding import Unreadable


class UnreadEvents:
    """Events of a log that were left out of what is shown, as this release cannot read them.

    A later release may have written them. Whoever sums up events, and leaves one out, notes it here: a list that lacks
    an entry looks like a complete one.
    """

    def __init__(self) -> None:
        self._sequences: set[int] = set()
        self._first: Unreadable | None = None

    def note(self, event: Unreadable) -> None:
        """Note an event; one that is noted twice counts once."""
        self._sequences.add(event.stored.seq)
        if self._first is None or event.stored.seq < self._first.stored.seq:
            self._first = event

    def add(self, others: "UnreadEvents") -> None:
        """Note what others hold."""
        self._sequences |= others._sequences
        if others._first is not None:
            self.note(others._first)

    @property
    def count(self) -> int:
        """How many were noted."""
        return len(self._sequences)

    @property
    def text(self) -> str:
        """What is said of them, with the sequence of the first and why it cannot be read; empty if there is none."""
        if self._first is None:
            return ""
        where = f"sequence {self._first.stored.seq:,}: {self._first.detail}"
        if self.count == 1:
            return f"an event that this release cannot read is left out ({where})"
        return f"{self.count:,} events that this release cannot read are left out (the first at {where})"
