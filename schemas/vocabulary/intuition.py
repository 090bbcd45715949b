"""Learned dangers. Owner: ``intuition``, which alone holds the index of precedents.

A motif is the signature of a harmful precedent; inputs are compared with it. A signature is the set of a text's
shingles: a hash of each three of its words in a row, where its beginning and end count as words.
"""

from functools import partial
from typing import Literal

import msgspec

from schemas.actor import Scope
from schemas.entry import Entry, Grouping, Severity, own_entries, own_events
from schemas.event import Event, Personal, Unit
from schemas.unread import Unread
from schemas.vocabulary.precedents import ProposedAction


class Similar(msgspec.Struct, frozen=True, kw_only=True):
    """A precedent near an input. ``answer`` is its approved answer, given only from a similarity of 0.9 on."""

    precedent: str
    similarity: Unit
    situation: str
    action: ProposedAction
    outcome: Literal["benign", "harmful"]
    harm_level: Unit
    answer: Personal = ""


class IntuitionRejected(Event, frozen=True, kw_only=True, tag="forged_id.intuition.rejected"):
    """A learned danger was recognised; the exchange ends here.

    ``detector`` says which of the two recognised it: the nearest ``motif`` (similarity strictly above ``threshold``),
    or the ``scorer``, the trained model that ``model`` names (``score`` at or above ``score_threshold``). ``score`` is
    None when the scorer is switched off. ``severity`` is the harm level of the motif's precedent, or the score.
    ``layer`` is ``text``, or the role and index of a layer such as ``document[1]``; ``document[1]..user[9]`` where the
    scorer read several layers together. ``unread`` is as in ``IntuitionPassed``.
    """

    detector: Literal["motif", "scorer"]
    motif: str
    similarity: Unit
    threshold: Unit
    severity: Unit
    score: Unit | None
    score_threshold: Unit
    layer: str
    model: str
    precedents: tuple[Similar, ...] = ()
    unread: tuple[Unread, ...] = ()


class IntuitionPassed(Event, frozen=True, kw_only=True, tag="forged_id.intuition.passed"):
    """No learned danger was recognised. ``nearest`` is the most similar motif, empty when none shares a shingle.
    ``model`` is the scorer's trained model; ``none`` where it is switched off.

    The work for one input is bounded. ``unread`` lists the passages (``comparisons``) that were not compared with all
    precedents, the ``characters`` that were not read for that, and what the scorer should have read and did not
    (``telling``). The coherence gate counts it against the input. ``allowed`` names the allowances (texts and phrases
    that an operator lets pass) by which a part of the input was left out before it was judged.
    """

    nearest: str
    similarity: Unit
    score: Unit | None
    model: str
    precedents: tuple[Similar, ...] = ()
    unread: tuple[Unread, ...] = ()
    allowed: tuple[str, ...] = ()


class IntuitionResultPassed(Event, frozen=True, kw_only=True, tag="forged_id.intuition.result_passed"):
    """A tool's result resembles no learned danger; ``source`` is the id of the event that has it.

    The numbers are as in ``IntuitionPassed``.
    """

    source: str
    nearest: str
    similarity: Unit
    score: Unit | None
    model: str
    unread: tuple[Unread, ...] = ()


class IntuitionResultRejected(Event, frozen=True, kw_only=True, tag="forged_id.intuition.result_rejected"):
    """A tool's result resembles a learned danger, and goes no further; the numbers are as in ``IntuitionRejected``."""

    source: str
    detector: Literal["motif", "scorer"]
    motif: str
    similarity: Unit
    threshold: Unit
    score: Unit | None
    score_threshold: Unit
    model: str
    unread: tuple[Unread, ...] = ()


class MotifLearned(Event, frozen=True, kw_only=True, tag="forged_id.intuition.motif_learned"):
    """A harmful precedent became a motif of danger; ``severity`` is its harm level.

    ``shingles`` counts the hashes of its signature.
    """

    motif: str
    severity: Unit
    shingles: int


class MotifRetired(Event, frozen=True, kw_only=True, tag="forged_id.intuition.motif_retired"):
    """A motif is not in force any more, because its precedent was withdrawn."""

    motif: str


IntuitionConfigured, IntuitionFailed = own_events("intuition")


_SIMILAR = Similar(
    precedent="p-1", similarity=0.82, situation="general", action="answer", outcome="harmful", harm_level=0.9
)

_entry = partial(Entry, owner="intuition", scope=Scope.SESSION)

ENTRIES = (
    _entry(
        meaning="A learned danger was recognised in the input; the exchange ends as REJECTED.",
        verdict="decides",
        sample=IntuitionRejected(
            detector="motif",
            motif="p-1",
            similarity=0.82,
            threshold=0.7,
            severity=0.9,
            score=0.41,
            score_threshold=0.93,
            layer="text",
            model="none",
            precedents=(_SIMILAR,),
        ),
        severity=Severity.WARNING,
        grouping=Grouping(copied_fields=("detector", "score", "score_threshold")),
    ),
    _entry(
        meaning="No learned danger was recognised; lists the most similar precedents.",
        verdict="passes",
        sample=IntuitionPassed(nearest="p-1", similarity=0.31, score=0.04, model="none", precedents=()),
    ),
    _entry(
        meaning="A tool's result resembles no learned danger.",
        sample=IntuitionResultPassed(source="0" * 32, nearest="p-1", similarity=0.12, score=0.02, model="none"),
    ),
    _entry(
        meaning="A tool's result resembles a learned danger, and goes into no prompt.",
        sample=IntuitionResultRejected(
            source="0" * 32,
            detector="scorer",
            motif="",
            similarity=0.0,
            threshold=0.7,
            score=0.97,
            score_threshold=0.93,
            model="none",
        ),
        severity=Severity.WARNING,
        grouping=Grouping(copied_fields=("detector", "score", "score_threshold")),
    ),
    _entry(
        scope=Scope.AGENT,
        meaning="A harmful precedent became a motif of danger.",
        sample=MotifLearned(motif="p-1", severity=0.9, shingles=8),
    ),
    _entry(
        scope=Scope.AGENT,
        meaning="A motif counts no more, because its precedent was withdrawn.",
        sample=MotifRetired(motif="p-1"),
    ),
    *own_entries(
        IntuitionConfigured,
        IntuitionFailed,
        owner="intuition",
        scope=Scope.AGENT,
        failed_scope=Scope.SESSION,
        then="its exchange, if it has one, ends as FAILED",
        failed_topic="forged_id.reflex.passed",
    ),
)
