"""An exchange of ours as a tick: what is gathered of it until it ends, from recorded events only. Pure.

What an answer had before it are the chosen entities; what came to mind or was found besides, the candidates. The terms
of a memory are the stems of its first telling words. When terms are compared, those of the stimulus count that any of
its memories knows (all of them, where none is known), and of the memories those and what several of them agree on:
measured on ordinary talk, all the others are detail that buries the likeness.

=============  ==================================================================================================
mode           activation
=============  ==================================================================================================
guardian       the highest of: falsehood of the input's layers, 1 for a risk, the breaker's stance
explorer       novelty
validator      1 where guardrails found something since the agent's last tick
translator     1 where the answer is a question back (CLARIFY)
architect      1 where the exchange acted (ACT)
=============  ==================================================================================================

No prompt is judged of an exchange without chosen entities, nor of one whose words are forgotten, or say nothing.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec

from actors.contract.text.judge.features import stem
from actors.contract.text.terms import READ, terms_of
from actors.self_review.modes import ARCHITECT, EXPLORER, GUARDIAN, TRANSLATOR, VALIDATOR, named
from actors.self_review.settings import SelfReviewSettings
from actors.self_review.tick import MOST_TOKENS, Entity, Tick
from schemas.vocabulary.appraisal import AppraisalCompleted
from schemas.vocabulary.breaker import Stance
from schemas.vocabulary.memory import Recollection
from schemas.vocabulary.responder import ResponseEmitted

_STANCES: Mapping[Stance, float] = {"normal": 0.0, "cautious": 0.5, "guarded": 0.8, "terminated": 1.0}


class Remembered(msgspec.Struct, frozen=True):
    """A memory that came to mind, or was found: its energy, its tokens, and its first terms."""

    energy: float
    tokens: int
    terms: tuple[str, ...]


class Pending(msgspec.Struct, frozen=True, kw_only=True):
    """An open exchange. ``text`` is kept until memory has spoken, ``stimulus`` are its terms from then on.

    ``remembered`` is None before; of an exchange that is ``forgotten`` the words are gone. One that is answered
    ``elsewhere`` has a prompt that is not known here: it says nothing of what is in mind, or of what is decided.
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
    return Pending(agent=agent, session=session, text=text[:READ])


def appraised(pending: Pending, event: AppraisalCompleted) -> Pending:
    """Return an exchange with what the senses made of it."""
    falsehood = max((layer.falsehood for layer in event.layers), default=0.0)
    return msgspec.structs.replace(
        pending,
        arousal=event.arousal,
        valence=event.valence,
        novelty=event.novelty,
        uncertainty=event.uncertainty,
        danger=1.0 if event.risks.harm or event.risks.layer_0 else falsehood,
    )


def recalled(pending: Pending, found: Iterable[Recollection], settings: SelfReviewSettings) -> Pending:
    """Return an exchange with what came to mind, or was found; what is known of it already stays as it is."""
    known = dict(pending.remembered or {})
    for each in found:
        if each.id not in known:
            terms = () if pending.forgotten else _terms(each.text)[: settings.terms_per_memory]
            known[each.id] = Remembered(each.energy, min(each.tokens, MOST_TOKENS), terms)
    stimulus = pending.stimulus or _terms(pending.text)
    return msgspec.structs.replace(pending, text="", stimulus=stimulus, remembered=known)


def emptied(pending: Pending) -> Pending:
    """Return an exchange of which the words are gone."""
    known = pending.remembered
    if known is not None:
        known = {name: Remembered(each.energy, each.tokens, ()) for name, each in known.items()}
    return msgspec.structs.replace(pending, text="", stimulus=(), remembered=known, forgotten=True)


def tick_of(
    pending: Pending, response: ResponseEmitted, found: bool, fatigue: float, settings: SelfReviewSettings
) -> Tick:
    """Return the tick that an exchange was, given what guardrails said since the last one."""
    known = pending.remembered or {}
    stimulus, agreed = _compared(pending.stimulus, known, settings)
    ids = [each.id for each in response.entities]
    judged = bool(pending.stimulus) and not pending.forgotten
    identity = response.identity
    return Tick(
        session=pending.session,
        arousal=pending.arousal,
        valence=pending.valence,
        novelty=pending.novelty,
        uncertainty=pending.uncertainty,
        modes=_modes(pending, response, found),
        memory=None if pending.elsewhere else _held(pending, known, ids),
        carry=settings.memory_carried,
        identity_drift=None,
        identity=identity,
        redundancy=0.0 if identity is None else identity.overlap,
        chosen=_entities(ids, known, agreed) if judged else (),
        candidates=_entities([each for each in known if each not in ids], known, agreed) if judged else (),
        budget=settings.token_budget,
        stimulus_terms=pending.stimulus,
        stimulus_telling=stimulus,
        fatigue=fatigue,
        decision="" if pending.elsewhere else _decided(response),
    )


def _decided(response: ResponseEmitted) -> str:
    return (response.first_mode or response.mode or "") if response.action == "EXECUTED" else response.action


def _held(pending: Pending, known: Mapping[str, Remembered], ids: Iterable[str]) -> dict[str, float]:
    """Return what an exchange brings to mind: memories, their terms by the most energetic one, and the stimulus."""
    held = dict.fromkeys(ids, 1.0)
    for name, each in known.items():
        held[name] = max(held.get(name, 0.0), each.energy)
        for term in each.terms:
            held[f"term {term}"] = max(held.get(f"term {term}", 0.0), each.energy)
    held.update((f"term {term}", 1.0) for term in pending.stimulus)
    return held


def _modes(pending: Pending, response: ResponseEmitted, found: bool) -> dict[str, float]:
    return named(
        {
            GUARDIAN: max(pending.danger, _STANCES[pending.stance]),
            EXPLORER: pending.novelty,
            VALIDATOR: float(found),
            TRANSLATOR: float(response.mode == "CLARIFY"),
            ARCHITECT: float(response.first_mode == "ACT"),
        }
    )


def _compared(
    stimulus: tuple[str, ...], known: Mapping[str, Remembered], settings: SelfReviewSettings
) -> tuple[frozenset[str], frozenset[str]]:
    """Return the terms of the stimulus that count when terms are compared, and those of memories."""
    memories = Counter(term for each in known.values() for term in each.terms)
    met = frozenset(term for term in stimulus if term in memories) or frozenset(stimulus)
    return met, met | {term for term, count in memories.items() if count >= settings.agreed_by}


def _entities(ids: Iterable[str], known: Mapping[str, Remembered], agreed: frozenset[str]) -> tuple[Entity, ...]:
    # One of the answer's that never came to mind here is left out: nothing is known of it.
    return tuple(
        Entity(each, known[each].energy, known[each].tokens, known[each].terms, agreed.intersection(known[each].terms))
        for each in dict.fromkeys(ids)
        if each in known
    )


def _terms(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(map(stem, terms_of(text))))
