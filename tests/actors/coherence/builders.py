"""What the gate hears of an exchange, stating only what matters to a test."""

from collections.abc import Iterable
from typing import Any

import msgspec

from actors.coherence import ACTOR
from actors.coherence.settings import CoherenceSettings
from schemas.catalogue import entry_of
from schemas.unread import Unread
from schemas.vocabulary.appraisal import AppraisalCompleted, Risks
from schemas.vocabulary.coherence import CoherencePassed, CoherenceRejected
from schemas.vocabulary.intuition import IntuitionPassed, Similar
from schemas.vocabulary.precedents import ProposedAction
from schemas.vocabulary.reflex import Match, ReflexPassed
from schemas.vocabulary.responder import ResponseEmitted
from schemas.vocabulary.swarm import SwarmMeasured
from tests.actors.scenario import HERE, Address, Partition

ENDED = entry_of(ResponseEmitted).sample


def flagged(*patterns: str, confidence: float = 0.6) -> ReflexPassed:
    """Reflex passed an input in which these patterns only flag."""
    return ReflexPassed(
        flags=tuple(
            Match(pattern=name, signature="x", action="FLAG", confidence=confidence, view="plain", span=(0, 1))
            for name in patterns
        )
    )


def similar(action: ProposedAction = "answer", outcome: Any = "benign", similarity: float = 0.6) -> Similar:
    """A precedent that intuition found similar."""
    return Similar(
        precedent=f"{action}-{outcome}-{similarity}",
        similarity=similarity,
        situation="general",
        action=action,
        outcome=outcome,
        harm_level=0.9 if outcome == "harmful" else 0.0,
    )


def felt(precedents: Iterable[Similar] = ()) -> IntuitionPassed:
    """Intuition passed an input that is like these precedents."""
    return IntuitionPassed(nearest="", similarity=0.0, score=None, model="none", precedents=tuple(precedents))


def thought(
    action: ProposedAction = "answer", *, harm: bool = False, layer_0: bool = False, affects_swarm: bool = False
) -> AppraisalCompleted:
    """An input was appraised, and this is the thought about it."""
    return msgspec.structs.replace(  # type: ignore[return-value]
        entry_of(AppraisalCompleted).sample,
        proposed_action=action,
        risks=Risks(harm=harm, layer_0=layer_0),
        affects_swarm=affects_swarm,
    )


def left_unread(share: float) -> Unread:
    """Something that a sense did not look at."""
    return Unread(layer="document[1]", what="base64", amount=9, why="decoding", share=share)


def measured(sci: float) -> SwarmMeasured:
    """The swarm's coherence index moved to ``sci``."""
    return msgspec.structs.replace(entry_of(SwarmMeasured).sample, sci=sci)  # type: ignore[return-value]


def verdict(
    appraisal: AppraisalCompleted,
    precedents: Iterable[Similar] = (),
    *,
    sci: float | None = None,
    flags: Iterable[str] = (),
    settings: CoherenceSettings | None = None,
    address: Address = HERE,
    unread: float | None = None,
    unread_by: str = "reflex",
) -> CoherencePassed | CoherenceRejected:
    """Return the one verdict on an exchange of which all this was heard, in the order of the path.

    ``unread`` is the share that ``unread_by`` did not look at; the other sense left less.
    """
    missed = () if unread is None else (left_unread(unread), left_unread(unread / 2))
    by_reflex, by_intuition = ((), ()) if not missed else ((missed[0],), (missed[1],))
    if unread_by == "intuition":
        by_reflex, by_intuition = by_intuition, by_reflex
    gate = Partition(ACTOR)
    if settings is not None:
        gate.configure(settings)
    if sci is not None:
        gate.hear(measured(sci), Address("", "", ""))
    gate.hear(msgspec.structs.replace(flagged(*flags), unread=by_reflex), address)
    gate.hear(appraisal, address)
    (decided,) = gate.when(msgspec.structs.replace(felt(precedents), unread=by_intuition), address)
    assert isinstance(decided, CoherencePassed | CoherenceRejected)
    return decided
