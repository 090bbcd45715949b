"""Whether each event's subject has the partition that its keys give, under a manifest's partition counts. Pure."""

from urllib.parse import unquote

from events.log import Stored
from schemas.catalogue import CATALOGUE
from schemas.subjects import NO_PARTITION, Partitions, split_stored


class Placement:
    """Holds a log's events against partition counts, one after another.

    An input or an order lies in the partitions of its own keys; what follows from it lies in its cause's, whatever its
    keys are, and says nothing. Few may lie elsewhere, since a stranger may have published them. What an actor records
    of itself lies in a partition that there is.
    """

    def __init__(self, partitions: Partitions) -> None:
        self._partitions = partitions
        stages = [stage for _, stage in partitions.stages]
        self._agents = frozenset((NO_PARTITION, *(name for stage in stages for name in stage.tokens(False))))
        self._sessions = frozenset((NO_PARTITION, *(name for stage in stages for name in stage.tokens(True))))
        self._right = self._wrong = 0
        self._outside = ""

    def take(self, stored: Stored) -> None:
        """Take the next event."""
        entry = CATALOGUE.get(stored.headers.get("ce-type", ""))
        if entry is None or not (entry.spontaneous or "ce-cause" not in stored.headers):
            return
        try:
            _, agent, session = split_stored(stored.subject)
        except ValueError:
            return
        if entry.spontaneous:
            if agent not in self._agents or session not in self._sessions:
                self._outside = self._outside or f"{stored.subject} at sequence {stored.seq}"
            return
        keys = unquote(stored.headers.get("ce-agent", "")), unquote(stored.headers.get("ce-session", ""))
        if any(keys):
            right = (agent, session) in self._partitions.token_pairs(*keys)
            self._right, self._wrong = self._right + right, self._wrong + (not right)

    @property
    def complaint(self) -> str:
        """What contradicts the partition counts, or nothing."""
        counts = f"{self._partitions.agents} partitions of agents and {self._partitions.sessions} of sessions"
        if self._outside:
            return f"the manifest claims {counts}, but there is {self._outside}"
        if self._wrong > self._right:
            of = f"{self._wrong} of {self._wrong + self._right} inputs and orders"
            return f"the manifest claims {counts}, but {of} lie where these would not put them"
        return ""
