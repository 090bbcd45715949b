"""Notes the sequences missing in the part of a log that was read, to report them: nothing else shows a gap."""

from collections.abc import Sequence

from events.log import Stored
from events.losses import Losses, gaps, merged_ranges

Range = tuple[int, int]
"""A first and a last sequence."""

_MOST_NAMED = 3  # ranges that a warning names; the rest are counted


class Gaps:
    """The part of a log that was read, and the sequences that were seen to be missing there."""

    def __init__(self) -> None:
        self._read: tuple[Range, ...] = ()
        self._missing: set[Range] = set()

    def note_read(self, after: int, upto: int) -> None:
        """Note a range of sequences that was read, with or without filters."""
        if after < upto:
            self._read = merged_ranges((*self._read, (after + 1, upto)))

    def note_gaps_in(self, after: int, batch: Sequence[Stored]) -> None:
        """Note the sequences missing in a batch of a reading without filters that had reached ``after``."""
        self._missing.update(gaps(after, batch))

    def note_missing(self, first: int, last: int) -> None:
        """Note that these sequences are missing, if there are any."""
        if first <= last:
            self._missing.add((first, last))

    def missing(self, losses: Losses) -> tuple[Range, ...]:
        """Return the missing ranges of what was read, in order: those seen, and those recorded as lost.

        A reading with filters sees no gaps; for it only recorded losses are known.
        """
        lost = losses.lost_for_good
        within = [(max(begin, first), min(end, last)) for begin, end in lost for first, last in self._read]
        return merged_ranges((*self._missing, *((begin, end) for begin, end in within if begin <= end)))


def missing_text(name: str, missing: Sequence[Range]) -> str:
    """Return the warning that names the messages a log lacks; empty if it lacks none."""
    if not missing:
        return ""
    count = sum(last - first + 1 for first, last in missing)
    events = "1 event is" if count == 1 else f"{count:,} events are"
    return (
        f"{events} missing from the {name}: {ranges_text(missing)}. What rested on that may be missing, too, or "
        "come out otherwise; `neuraxis log verify` tells what was recorded of it"
    )


def ranges_text(missing: Sequence[Range]) -> str:
    """Return missing ranges as text, the first few by their sequences."""
    named = [f"{first:,}" if first == last else f"{first:,} to {last:,}" for first, last in missing[:_MOST_NAMED]]
    more = f" and {len(missing) - _MOST_NAMED:,} more gaps" if len(missing) > _MOST_NAMED else ""
    plural = "s" if len(named) > 1 or missing[0][0] != missing[0][1] else ""
    return f"sequence{plural} {', '.join(named)}{more}"
