"""Notes the damaged rows of a ledger that a replay has read, to report them."""


class Damage:
    """Damaged rows of a ledger that were read, collected to be reported.

    Attributes:
        missing: Rows that are missing by the ledger's own count; negative if there are more than counted.
    """

    def __init__(self) -> None:
        self._rows: set[int] = set()
        self.missing = 0

    def note(self, seq: int) -> None:
        """Note a damaged row by its sequence."""
        self._rows.add(seq)

    @property
    def is_found(self) -> bool:
        """Whether any damage was noted."""
        return bool(self._rows or self.missing)

    def warning_text(self, name: str) -> str:
        """Return the warning about the ledger of this name; empty if no damage was noted."""
        faults = []
        if len(self._rows) == 1:
            faults.append(f"row {min(self._rows):,} is not what was written")
        elif self._rows:
            faults.append(f"{len(self._rows):,} rows, the first {min(self._rows):,}, are not what was written")
        if self.missing:
            faults.append(f"it notes {abs(self.missing):,} {'more' if self.missing > 0 else 'less'} than it holds")
        if not faults:
            return ""
        return f"{name} is damaged: {'; '.join(faults)}. What rests on it is unsure; `neuraxis log verify` tells all"
