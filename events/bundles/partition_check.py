"""Checks a manifest's partition counts: does each event's subject name the partition that its keys give? Pure."""

from urllib.parse import unquote

from events.log import Stored
from schemas.catalogue import CATALOGUE
from schemas.subjects import NO_PARTITION, Partitions, split_stored


class PartitionCheck:
    """Compares the subjects of a log's events with partition counts.

    An input or an operator's order lies in the partitions of its own keys (agent and session). An event that follows
    from it lies in its cause's partitions, whatever its own keys are, and is not compared. A minority of inputs may lie
    elsewhere, since other publishers may have written them. A spontaneous event lies in some existing partition.
    """

    def __init__(self, partitions: Partitions) -> None:
        self._partitions = partitions
        generations = [counts for _, counts in partitions.generations]
        self._agents = frozenset((NO_PARTITION, *(name for counts in generations for name in counts.tokens(False))))
        self._sessions = frozenset((NO_PARTITION, *(name for counts in generations for name in counts.tokens(True))))
        self._matching = self._contradicting = 0
        self._unknown_partition = ""

    def take(self, stored: Stored) -> None:
        """Check the next event."""
        entry = CATALOGUE.get(stored.headers.get("ce-type", ""))
        if entry is None or not (entry.spontaneous or "ce-cause" not in stored.headers):
            return
        try:
            _, agent, session = split_stored(stored.subject)
        except ValueError:
            return
        if entry.spontaneous:
            if agent not in self._agents or session not in self._sessions:
                self._unknown_partition = self._unknown_partition or f"{stored.subject} at sequence {stored.seq}"
            return
        keys = unquote(stored.headers.get("ce-agent", "")), unquote(stored.headers.get("ce-session", ""))
        if any(keys):
            matches = (agent, session) in self._partitions.token_pairs(*keys)
            self._matching, self._contradicting = self._matching + matches, self._contradicting + (not matches)

    @property
    def complaint(self) -> str:
        """What contradicts the partition counts; empty if nothing does."""
        counts = f"{self._partitions.agents} partitions of agents and {self._partitions.sessions} of sessions"
        if self._unknown_partition:
            return f"the manifest claims {counts}, but there is {self._unknown_partition}"
        if self._contradicting > self._matching:
            share = f"{self._contradicting} of {self._contradicting + self._matching} inputs and orders"
            return f"the manifest claims {counts}, but {share} lie where these would not put them"
        return ""
