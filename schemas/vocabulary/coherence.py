"""Whether a thought fits what is known, the swarm and the constitution. Owner: ``coherence``.

A thought is an input with the action proposed for it; the swarm is all actors and agents together.
"""

from typing import Literal

from schemas.actor import Scope
from schemas.entry import Entry, Grouping, Severity, own_entries, own_events
from schemas.event import Event, Unit
from schemas.unread import Unread

UNREAD = "unread"
"""The violation of an input that is rejected because too much of it was not read."""


class CoherenceRejected(Event, frozen=True, kw_only=True, tag="forged_id.coherence.rejected"):
    """The thought is dissonant: its entropy is above the threshold; the exchange ends here.

    ``entropy`` is 1.0 for a ``constitutional`` violation, else (0.4 knowledge + 0.3 swarm) / 0.7.
    ``knowledge`` is the share of similar precedents that contradict the proposed action, ``swarm`` is 1 - ``sci``, more
    where the action affects the swarm. ``violations`` are the causes; ``sci`` is the swarm coherence index and
    ``similar`` the number of precedents it was decided with.

    ``unread`` is the highest share, 0 to 1, of what reflex and intuition left unread because their work is bounded, and
    ``unread_of`` the entry that has it. The entropy is raised by that share of its distance to 1, and to 1 where the
    share reaches the setting ``unread_limit``. Where that rejects the input, ``unread`` is among the violations.
    """

    entropy: Unit
    threshold: Unit
    knowledge: Unit
    swarm: Unit
    constitutional: Literal[0, 1]
    violations: tuple[str, ...]
    sci: Unit
    similar: int
    unread: Unit = 0.0
    unread_of: Unread | None = None


class CoherencePassed(Event, frozen=True, kw_only=True, tag="forged_id.coherence.passed"):
    """The thought is coherent; fields as in ``coherence.rejected``."""

    entropy: Unit
    threshold: Unit
    knowledge: Unit
    swarm: Unit
    constitutional: Literal[0, 1]
    violations: tuple[str, ...]
    sci: Unit
    similar: int
    unread: Unit = 0.0
    unread_of: Unread | None = None


CoherenceConfigured, CoherenceFailed = own_events("coherence")

ENTRIES = (
    Entry(
        owner="coherence",
        scope=Scope.SESSION,
        meaning="The thought is dissonant; the exchange ends as REJECTED.",
        verdict="decides",
        sample=CoherenceRejected(
            entropy=1.0,
            threshold=0.8,
            knowledge=0.5,
            swarm=0.0,
            constitutional=1,
            violations=("harm",),
            sci=1.0,
            similar=0,
        ),
        severity=Severity.WARNING,
        grouping=Grouping(copied_fields=("entropy", "threshold")),
    ),
    Entry(
        owner="coherence",
        scope=Scope.SESSION,
        meaning="The thought is coherent.",
        verdict="passes",
        sample=CoherencePassed(
            entropy=0.285714,
            threshold=0.8,
            knowledge=0.5,
            swarm=0.0,
            constitutional=0,
            violations=(),
            sci=1.0,
            similar=0,
        ),
    ),
    *own_entries(
        CoherenceConfigured,
        CoherenceFailed,
        owner="coherence",
        scope=Scope.SESSION,
        then="its exchange, if it has one, ends as FAILED",
        failed_topic="forged_id.intuition.passed",
    ),
)
