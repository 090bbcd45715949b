"""An exchange of this system as a tick: what is collected of it until it ends, from recorded events only. Pure.

The memories that the answer's prompt had are the chosen entities; other memories that were recalled or found are the
candidates. The stimulus is the input's text. The terms of a text are the stems of its significant words; of a memory,
the first ones. When terms are compared, not all of them count: of the stimulus, those that occur in any of its memories
(all, if none does); of the memories, these terms, and those that several memories share. Measured on everyday
conversations, all other terms are detail that hides the similarity.

=============  ==================================================================================================
mode           activation
=============  ==================================================================================================
guardian       the highest of: appraisal's falsehood of the input's layers (its texts by role: user, document, ...),
               1 for a risk, and the breaker's stance as a number
explorer       novelty
validator      1 if guardrails rejected an answer since the agent's last tick
translator     1 if the answer is a question back (CLARIFY)
architect      1 if an ACT loop ran, which looks things up
=============  ==================================================================================================

An exchange has no prompt to score if it has no chosen entities, or if its text is forgotten or has no terms.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import chain

import msgspec

from actors.contract.text.judge.features import stem
from actors.contract.text.terms import MOST_READ, terms_of
from actors.self_review.modes import ARCHITECT, EXPLORER, GUARDIAN, TRANSLATOR, VALIDATOR, activations_of
from actors.self_review.settings import SelfReviewSettings
from actors.self_review.tick import MOST_TOKENS, Entity, Tick
from schemas.vocabulary.appraisal import AppraisalCompleted
from schemas.vocabulary.breaker import Stance
from schemas.vocabulary.memory import Recollection
from schemas.vocabulary.responder import ResponseEmitted

_STANCES: Mapping[Stance, float] = {"normal": 0.0, "cautious": 0.5, "guarded": 0.8, "terminated": 1.0}
"""The breaker's stance towards a session -> how much it activates ``guardian``."""

_CACHED_UPTO = 1_024
"""Up to this many characters the terms of a text are cached."""


class Remembered(msgspec.Struct, frozen=True):
    """A memory that was recalled or found: its energy (how strongly), its tokens, and its first terms."""

    energy: float
    tokens: int
    terms: tuple[str, ...]


class Pending(msgspec.Struct, frozen=True, kw_only=True):
    """An open exchange. ``text`` is kept until memory has answered; afterwards only its terms are, as ``stimulus``.

    ``remembered`` is None until then. A ``forgotten`` exchange has lost its text. An exchange that is answered
    ``elsewhere``, by another model, has no known prompt: it says nothing about working memory or decisions. ``danger``,
    from 0 to 1, is how far its input is an attack or asks for harm.
    """

    agent: str
    session: str
    text: str = ""
    stimulus: tuple[str, ...] = ()
    remembered: dict[str, Remembered] | None = None
    forgotten: bool = False
    elsewhere: bool = False
    arousal: float = 0.0
    valence: float = 0.0
    novelty: float = 0.0
    uncertainty: float = 0.0
    danger: float = 0.0
    stance: Stance = "normal"


def pending_of(agent: str, session: str, text: str) -> Pending:
    """Return what is kept of an input."""
    return Pending(agent=agent, session=session, text=text[:MOST_READ])


def with_appraisal(pending: Pending, event: AppraisalCompleted) -> Pending:
    """Return an exchange with appraisal's numbers."""
    falsehood = max((layer.falsehood for layer in event.layers), default=0.0)
    return msgspec.structs.replace(
        pending,
        arousal=event.arousal,
        valence=event.valence,
        novelty=event.novelty,
        uncertainty=event.uncertainty,
        danger=1.0 if event.risks.harm or event.risks.layer_0 else falsehood,
    )


def with_recall(pending: Pending, memories: Iterable[Recollection], settings: SelfReviewSettings) -> Pending:
    """Return an exchange with further memories that were recalled or found; those already known are not replaced."""
    known = dict(pending.remembered or {})
    for each in memories:
        if each.id not in known:
            terms = () if pending.forgotten else _terms(each.text)[: settings.terms_per_memory]
            known[each.id] = Remembered(each.energy, min(each.tokens, MOST_TOKENS), terms)
    stimulus = pending.stimulus or _terms(pending.text)
    return msgspec.structs.replace(pending, text="", stimulus=stimulus, remembered=known)


def without_text(pending: Pending) -> Pending:
    """Return an exchange without its text."""
    known = pending.remembered
    if known is not None:
        known = {name: Remembered(each.energy, each.tokens, ()) for name, each in known.items()}
    return msgspec.structs.replace(pending, text="", stimulus=(), remembered=known, forgotten=True)


def tick_of(
    pending: Pending, response: ResponseEmitted, was_rejected: bool, fatigue: float, settings: SelfReviewSettings
) -> Tick:
    """Return the tick of an exchange; ``was_rejected``: whether guardrails rejected an answer since the tick before."""
    known = pending.remembered or {}
    stimulus, compared_terms = _compared(pending.stimulus, known, settings)
    ids = [each.id for each in response.entities]
    has_prompt = bool(pending.stimulus) and not pending.forgotten
    identity = response.identity
    return Tick(
        session=pending.session,
        arousal=pending.arousal,
        valence=pending.valence,
        novelty=pending.novelty,
        uncertainty=pending.uncertainty,
        modes=_modes(pending, response, was_rejected),
        memory=None if pending.elsewhere else _memory_content(pending, known, ids),
        carry=settings.memory_carried,
        identity_drift=None,
        identity=identity,
        redundancy=0.0 if identity is None else identity.overlap,
        chosen=_entities(ids, known, compared_terms) if has_prompt else (),
        candidates=_entities([each for each in known if each not in ids], known, compared_terms) if has_prompt else (),
        budget=settings.token_budget,
        stimulus_terms=pending.stimulus,
        stimulus_compared=stimulus,
        fatigue=fatigue,
        decision="" if pending.elsewhere else _decision(response),
    )


def _decision(response: ResponseEmitted) -> str:
    return (response.first_mode or response.mode or "") if response.action == "EXECUTED" else response.action


def _memory_content(pending: Pending, known: Mapping[str, Remembered], ids: Iterable[str]) -> dict[str, float]:
    """Return what an exchange adds to working memory: memories, terms by their highest energy, and the stimulus."""
    terms: dict[str, float] = {}
    # In ascending order of energy, so that the last of a term's energies, which stays, is its highest.
    for each in sorted(known.values(), key=lambda memory: memory.energy):
        terms.update(dict.fromkeys(each.terms, each.energy))
    terms.update(dict.fromkeys(pending.stimulus, 1.0))
    content = {f"term {term}": energy for term, energy in terms.items()}
    for name, each in known.items():
        content[name] = max(content.get(name, 0.0), each.energy)
    content.update(dict.fromkeys(ids, 1.0))
    return content


def _modes(pending: Pending, response: ResponseEmitted, was_rejected: bool) -> dict[str, float]:
    return activations_of(
        {
            GUARDIAN: max(pending.danger, _STANCES[pending.stance]),
            EXPLORER: pending.novelty,
            VALIDATOR: float(was_rejected),
            TRANSLATOR: float(response.mode == "CLARIFY"),
            ARCHITECT: float(response.first_mode == "ACT"),
        }
    )


def _compared(
    stimulus: tuple[str, ...], known: Mapping[str, Remembered], settings: SelfReviewSettings
) -> tuple[frozenset[str], frozenset[str]]:
    """Return the terms that count in comparisons: those of the stimulus, and those of memories."""
    memories = Counter(chain.from_iterable([each.terms for each in known.values()]))
    common = frozenset(memories.keys() & stimulus) or frozenset(stimulus)
    return common, common | {term for term, count in memories.items() if count >= settings.agreed_by}


def _entities(
    ids: Iterable[str], known: Mapping[str, Remembered], compared_terms: frozenset[str]
) -> tuple[Entity, ...]:
    # A memory in the answer's prompt whose recall was not recorded here is left out: nothing is known of it.
    found = [(each, known[each]) for each in dict.fromkeys(ids) if each in known]
    return tuple(
        [
            Entity(each, memory.energy, memory.tokens, memory.terms, compared_terms.intersection(memory.terms))
            for each, memory in found
        ]
    )


def _terms(text: str) -> tuple[str, ...]:
    return _cached_terms(text) if len(text) <= _CACHED_UPTO else _stems(text)


def _stems(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(map(stem, terms_of(text))))


# The same memories are recalled again and again. Long texts are rare and would fill the cache.
_cached_terms = lru_cache(maxsize=4096)(_stems)
