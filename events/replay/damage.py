"""Damaged rows of a ledger that a replay has read, to be reported."""


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

    def told(self, name: str) -> str:
        """Return what a reader must know of the ledger of this name; empty where all that was read was sound."""
        said = []
        if len(self._rows) == 1:
            said.append(f"row {min(self._rows):,} is not what was written")
        elif self._rows:
            said.append(f"{len(self._rows):,} rows, the first {min(self._rows):,}, are not what was written")
        if self.missing:
            said.append(f"it notes {abs(self.missing):,} {'more' if self.missing > 0 else 'less'} than it holds")
        if not said:
            return ""
        return f"{name} is damaged: {'; '.join(said)}. What rests on it is unsure; `neuraxis log verify` tells all"
