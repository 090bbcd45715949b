"""The entropy of a thought: plain arithmetic on recorded numbers, rounded to six decimals. Pure.

A thought is what an input would lead to: the proposed action, with its risks. Its entropy, from 0 to 1, says how badly
it fits precedents (earlier situations and their outcome) and the swarm (all actors and agents together, whose coherence
index says how far they agree). It is no measure of information.
"""

from collections.abc import Sequence
from typing import Literal

import msgspec

from actors.coherence.settings import CoherenceSettings
from schemas.unread import Unread
from schemas.vocabulary.coherence import UNREAD, CoherencePassed, CoherenceRejected
from schemas.vocabulary.precedents import ProposedAction


class KnownPrecedent(msgspec.Struct, frozen=True):
    """What the gate needs of a similar precedent: what was done, and its outcome."""

    action: ProposedAction
    outcome: Literal["benign", "harmful"]


class Thought(msgspec.Struct, frozen=True):
    """What an input would lead to: the proposed action, whether it affects the swarm, and what it could violate."""

    proposed_action: ProposedAction
    affects_swarm: bool
    violations: tuple[str, ...]


def contradicts(precedent: KnownPrecedent, proposed: ProposedAction) -> bool:
    """Whether a precedent speaks against an action: the opposite was done, or the same was done and did harm."""
    opposite = (precedent.action == "withhold") != (proposed == "withhold")
    return opposite or precedent.outcome == "harmful"


def knowledge_of(precedents: Sequence[KnownPrecedent], proposed: ProposedAction, settings: CoherenceSettings) -> float:
    """Return the share of precedents that contradict an action, in [0, 1]; a configured value if there are none."""
    if not precedents:
        return settings.unknown_knowledge
    return round(sum(contradicts(precedent, proposed) for precedent in precedents) / len(precedents), 6)


def swarm_of(sci: float, affects_swarm: bool, settings: CoherenceSettings) -> float:
    """Return the swarm's term of the entropy, in [0, 1]; ``sci`` is the swarm's coherence index."""
    return round(min(1.0, 1.0 - sci + (settings.swarm_disturbance if affects_swarm else 0.0)), 6)


def counted_share(unread_share: float, settings: CoherenceSettings) -> float:
    """Return the share for which the unread part of an input counts: its own, or 1 if that reaches ``unread_limit``."""
    return 1.0 if unread_share and unread_share >= settings.unread_limit else unread_share


def entropy_of(knowledge: float, swarm: float, share: float, settings: CoherenceSettings) -> float:
    """Return the entropy of a thought that violates nothing, in [0, 1], given the share that counts as unread.

    The part that was not looked at may hold anything. So it counts with the highest entropy, for its share.
    """
    weights = settings.knowledge_weight + settings.swarm_weight
    mean = (settings.knowledge_weight * knowledge + settings.swarm_weight * swarm) / weights
    return round(mean + (1.0 - mean) * share, 6)


def judge(
    thought: Thought,
    precedents: Sequence[KnownPrecedent],
    flags: Sequence[str],
    sci: float,
    settings: CoherenceSettings,
    unread: Unread | None = None,
) -> CoherencePassed | CoherenceRejected:
    """Return the verdict on a thought, with every number it rests on.

    ``flags`` are patterns of reflex that matched and do not block, ``unread`` is the part of the input with the largest
    share not looked at, ``sci`` the swarm's coherence index.
    """
    knowledge = knowledge_of(precedents, thought.proposed_action, settings)
    swarm = swarm_of(sci, thought.affects_swarm, settings)
    unread_share = unread.share if unread is not None else 0.0
    violations = (*thought.violations, *(f"flag:{pattern}" for pattern in dict.fromkeys(flags)))
    mean = entropy_of(knowledge, swarm, 0.0, settings)
    share = counted_share(unread_share, settings)
    raised = entropy_of(knowledge, swarm, share, settings)
    entropy = 1.0 if violations else raised
    constitutional: Literal[0, 1] = 1 if violations else 0
    if share == 1.0 or (raised > settings.entropy_threshold >= mean):  # the unread part alone rejects it
        violations = (*violations, UNREAD)
    verdict = CoherenceRejected if entropy > settings.entropy_threshold else CoherencePassed
    return verdict(
        entropy=entropy,
        threshold=settings.entropy_threshold,
        knowledge=knowledge,
        swarm=swarm,
        constitutional=constitutional,
        violations=violations,
        sci=sci,
        similar=len(precedents),
        unread=unread_share,
        unread_of=unread,
    )
