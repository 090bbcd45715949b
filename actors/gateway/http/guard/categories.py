"""Verdicts in the shape of OpenAI's moderations: what an input was refused for, and the numbers that guards gave. Pure.

A category is set where the input was refused for it. A score is the highest number that a guard gave for it; it is left
out where no guard gave one. Of these names only ``illicit`` is OpenAI's: our rules on harm look for requests for
instructions to do harm, which is what that name means. The other categories of OpenAI (hate, harassment, sexual,
violence, self-harm) are left out: no guard looks for them, so ``false`` would not be known to be true.

======================  ============================================================  =================================
category                set                                                           score
======================  ============================================================  =================================
``prompt_injection``    a pattern set on overriding instructions; the breaker's       its confidence; the highest
                        violation ``role_confusion``                                  falsehood of a layer
``jailbreak``           a pattern set on jailbreaks                                   its confidence
``prompt_extraction``   a pattern set on revealing the system prompt                  its confidence
``indirect_injection``  a pattern set on instructions hidden in documents             its confidence
``data_exfiltration``   a pattern set on sending data to other hosts                  its confidence
``known_attack``        any other pattern set, such as those that operators import    its confidence
``learned_attack``      intuition's learned scorer                                    its score
``harmful_precedent``   a precedent that did harm                                     its similarity
``harm``, ``illicit``   the risk of harm; a pattern set on it                         1 or 0; its confidence
``tampering``           the risk to the system's own rules; a pattern set on it       1 or 0; its confidence
``flooding``            the breaker's violation ``context_saturation``                the falsehood it was found with
``dissonant``           an entropy that nothing above explains                        the entropy
``unread``              too much of the input could not be read                       the share not read
======================  ============================================================  =================================

The falsehood of a text, in [0, 1], is how far it gives orders to the model itself. The entropy, in [0, 1], is how much
speaks against what the input asks for; above a threshold the guard coherence refuses it.
"""

import re
from collections.abc import Iterable, Iterator, Mapping

from schemas.event import Event
from schemas.vocabulary.appraisal import AppraisalCompleted
from schemas.vocabulary.arbiter import ArbiterDenied
from schemas.vocabulary.breaker import BreakerTerminated, BreakerTripped
from schemas.vocabulary.coherence import UNREAD, CoherencePassed, CoherenceRejected
from schemas.vocabulary.intuition import IntuitionPassed, IntuitionRejected
from schemas.vocabulary.reflex import Match, ReflexBlocked, ReflexPassed
from schemas.vocabulary.responder import ResponseEmitted

CATEGORIES = (
    "prompt_injection",
    "jailbreak",
    "prompt_extraction",
    "indirect_injection",
    "data_exfiltration",
    "known_attack",
    "learned_attack",
    "harmful_precedent",
    "harm",
    "illicit",
    "tampering",
    "flooding",
    "dissonant",
    "unread",
)

_LANGUAGE = re.compile(r"_[a-z]{2}$")
_SETS: Mapping[str, str] = {
    "prompt_injection": "prompt_injection",
    "policy_negation": "prompt_injection",
    "loose_override": "prompt_injection",
    "jailbreak": "jailbreak",
    "loose_jailbreak": "jailbreak",
    "system_prompt_extraction": "prompt_extraction",
    "indirect_injection": "indirect_injection",
    "exfiltration_markup": "data_exfiltration",
    "exfiltration": "data_exfiltration",
    "constitutional": "tampering",
    "harmful": "harm",
}
"""Pattern set, without its language -> category."""

# What coherence and the breaker call a violation -> category. Layer 0 is the system's own rules.
_VIOLATIONS: Mapping[str, str] = {"harm": "harm", "layer_0": "tampering", UNREAD: "unread"}
_FLAG = "flag:"
"""What stands before the name of a pattern set, where a match of it is a violation."""

_BREAKER_VIOLATIONS: Mapping[str, str] = {"role_confusion": "prompt_injection", "context_saturation": "flooding"}
_SECOND_NAMES = {"harm": "illicit"}
"""Categories that have a second name."""


def category_of(pattern: str) -> str:
    """Return the category of a pattern set, by its name."""
    return _SETS.get(_LANGUAGE.sub("", pattern), _SETS.get(pattern, "known_attack"))


def refused_for(end: ResponseEmitted, events: Iterable[Event]) -> dict[str, bool]:
    """Return for each category whether the input was refused for it."""
    found = set(_reasons(end, tuple(events))) if end.action not in ("PASSED", "EXECUTED", "FAILED") else set()
    found |= {_SECOND_NAMES[name] for name in found & _SECOND_NAMES.keys()}
    return {name: name in found for name in CATEGORIES}


def scores_of(events: Iterable[Event]) -> dict[str, float]:
    """Return the highest score of each category for which a guard gave one, in the order of the categories."""
    highest: dict[str, float] = {}
    for event in events:
        for name, score in _scores(event):
            highest[name] = max(score, highest.get(name, 0.0))
    highest |= {other: highest[name] for name, other in _SECOND_NAMES.items() if name in highest}
    return {name: highest[name] for name in CATEGORIES if name in highest}


def _reasons(end: ResponseEmitted, events: tuple[Event, ...]) -> Iterator[str]:
    for event in events:
        match event:
            case ReflexBlocked(matches=matches):
                yield from (category_of(match.pattern) for match in matches if match.action == "BLOCK")
                yield category_of(event.pattern)
            case IntuitionRejected(detector=detector):
                yield "learned_attack" if detector == "scorer" else "harmful_precedent"
            case CoherenceRejected(violations=violations):
                yield from map(_category_of_violation, violations) if violations else ("dissonant",)
            case BreakerTripped(violation=violation) if end.stage == "BREAKER":
                yield _BREAKER_VIOLATIONS[violation]
            case BreakerTerminated(violation=str(violation)) if (
                end.stage == "BREAKER" and violation in _BREAKER_VIOLATIONS
            ):
                yield _BREAKER_VIOLATIONS[violation]
            case ArbiterDenied(reason="harmful_precedent"):
                yield "harmful_precedent"
            case ArbiterDenied(reason="constitutional_risk"):
                passed = [each for each in events if isinstance(each, CoherencePassed)]
                yield from (_category_of_violation(name) for each in passed for name in each.violations)


def _category_of_violation(name: str) -> str:
    if name.startswith(_FLAG):
        return category_of(name.removeprefix(_FLAG))
    return _VIOLATIONS.get(name, "dissonant")


def _scores(event: Event) -> Iterator[tuple[str, float]]:
    match event:
        case ReflexBlocked(matches=found) | ReflexPassed(flags=found):
            yield from map(_score, found)
            if isinstance(event, ReflexBlocked):
                yield category_of(event.pattern), event.confidence
        case IntuitionRejected() | IntuitionPassed():
            if event.score is not None:
                yield "learned_attack", event.score
            nearest = event.motif if isinstance(event, IntuitionRejected) else event.nearest
            if nearest:
                yield "harmful_precedent", event.similarity
            yield from (
                ("harmful_precedent", each.similarity) for each in event.precedents if each.outcome == "harmful"
            )
        case AppraisalCompleted(layers=layers, risks=risks):
            yield "prompt_injection", max((layer.falsehood for layer in layers), default=0.0)
            yield "harm", float(risks.harm)
            yield "tampering", float(risks.layer_0)
        case CoherenceRejected() | CoherencePassed():
            yield "dissonant", event.entropy
            yield "unread", event.unread
        case BreakerTripped(violation="context_saturation", standing=standing):
            yield "flooding", standing.falsehood


def _score(match: Match) -> tuple[str, float]:
    return category_of(match.pattern), match.confidence
