"""Judging an input: its text and layers against the motifs and the learned scorer."""

from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from actors.intuition.index import Found
from actors.intuition.library import Library
from actors.intuition.reading import Reading, read
from actors.intuition.scorer import MODEL_VERSION, THRESHOLD, score
from actors.intuition.settings import IntuitionSettings
from actors.intuition.signature import signature_of
from actors.intuition.windows import passages
from schemas.event import Event
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.intuition import IntuitionPassed, IntuitionRejected, Similar

NO_MODEL = "none"
"""What a verdict names as its model when the scorer is switched off."""


class Part(msgspec.Struct, frozen=True):
    """A part of an input that is judged: ``text``, or a layer's role and place such as ``document[1]``."""

    name: str
    text: str


class Input(msgspec.Struct, frozen=True):
    """What there is to judge of an input; the first part is its text."""

    parts: tuple[Part, ...]
    situation: str


class _Near(NamedTuple):
    """A motif near a part of the input; ``number`` is its place in the order of recording."""

    motif: str
    similarity: float
    number: int
    part: str


class _Scored(NamedTuple):
    """The scorer's opinion of a part."""

    score: float
    part: str


def input_of(received: InputReceived, settings: IntuitionSettings) -> Input:
    """Return what there is to judge of an input."""
    layers = (
        Part(f"{layer.role}[{place}]", layer.content)
        for place, layer in enumerate(received.layers)
        if layer.role in settings.scanned_layers
    )
    return Input((Part("text", received.text), *layers), received.situation)


def judge(library: Library, settings: IntuitionSettings, asked: Input) -> IntuitionPassed | IntuitionRejected:
    """Return the verdict on an input.

    A motif is heard before the scorer, and the most similar one decides, in whatever part it is. The precedents listed
    are those similar to the input's text: what a document says is not the situation that the exchange is in.
    """
    near, similar = _near(library, settings, asked)
    scored = _scored(asked) if settings.scorer else None
    precedents = tuple(_similar(library, found, settings) for found in similar)
    model = MODEL_VERSION if scored is not None else NO_MODEL
    score_threshold = THRESHOLD if settings.scorer_threshold is None else settings.scorer_threshold
    if near is not None and near.similarity > settings.threshold:
        return IntuitionRejected(
            detector="motif",
            motif=near.motif,
            similarity=near.similarity,
            threshold=settings.threshold,
            severity=library.precedents[near.motif].harm_level,
            score=scored.score if scored is not None else None,
            score_threshold=score_threshold,
            layer=near.part,
            model=model,
            precedents=precedents,
        )
    if scored is not None and scored.score >= score_threshold:
        return IntuitionRejected(
            detector="scorer",
            motif=near.motif if near is not None else "",
            similarity=near.similarity if near is not None else 0.0,
            threshold=settings.threshold,
            severity=scored.score,
            score=scored.score,
            score_threshold=score_threshold,
            layer=scored.part,
            model=model,
            precedents=precedents,
        )
    return IntuitionPassed(
        nearest=near.motif if near is not None else "",
        similarity=near.similarity if near is not None else 0.0,
        score=scored.score if scored is not None else None,
        model=model,
        precedents=precedents,
    )


def missing_model(event: Event) -> str:
    """Return the scorer that a verdict rests on where it is not the one that this process has, else empty."""
    if isinstance(event, IntuitionPassed | IntuitionRejected) and event.model not in (NO_MODEL, MODEL_VERSION):
        return event.model
    return ""


def _near(library: Library, settings: IntuitionSettings, asked: Input) -> tuple[_Near | None, tuple[Found, ...]]:
    """Return the motif nearest to any part of an input, and the precedents similar to its text."""
    if not library.precedents:
        return None, ()
    nearest: _Near | None = None
    similar: tuple[Found, ...] = ()
    for place, part in enumerate(asked.parts):
        reading = read(part.text)
        whole = library.nearest(
            signature_of(reading.words),
            asked.situation,
            most=settings.similar_most if place == 0 else 0,
            floor=settings.similar_floor,
            motif_floor=0.0,
        )
        similar = whole.similar if place == 0 else similar
        for motif in (whole.motif, _in_passages(library, settings, reading, asked.situation)):
            nearest = _nearer(library, nearest, motif, part.name)
    return nearest, similar


def _in_passages(library: Library, settings: IntuitionSettings, reading: Reading, situation: str) -> Found | None:
    """Return the motif most similar to a passage of a text, if it reaches the threshold."""
    best: Found | None = None
    least = settings.threshold
    for passage in passages(library, reading, settings.passage_phrases, settings.passage_words, least):
        if passage.bound < least:
            break  # the ones to come are no more promising
        found = library.nearest(signature_of(passage.words), situation, most=0, floor=1.0, motif_floor=least).motif
        if found is not None and (best is None or _rank(library, found) < _rank(library, best)):
            best, least = found, found.similarity
    return best


def _rank(library: Library, found: Found) -> tuple[float, int]:
    return -found.similarity, library.precedents[found.name].number


def _nearer(library: Library, nearest: _Near | None, found: Found | None, part: str) -> _Near | None:
    """Return the nearer of two motifs; of equally near ones the one recorded first, then the part that comes first."""
    if found is None:
        return nearest
    near = _Near(found.name, found.similarity, library.precedents[found.name].number, part)
    if nearest is None or (-near.similarity, near.number) < (-nearest.similarity, nearest.number):
        return near
    return nearest


def _scored(asked: Input) -> _Scored:
    """Return the highest score of a part, the first of equal ones."""
    return max(_scores(asked), key=lambda scored: scored.score)


def _scores(asked: Input) -> Iterator[_Scored]:
    return (_Scored(score(part.text), part.name) for part in asked.parts)


def _similar(library: Library, found: Found, settings: IntuitionSettings) -> Similar:
    precedent = library.precedents[found.name]
    return Similar(
        precedent=found.name,
        similarity=found.similarity,
        situation=precedent.situation,
        action=precedent.action,
        outcome=precedent.outcome,
        harm_level=precedent.harm_level,
        answer=precedent.answer if found.similarity >= settings.answer_floor else "",
    )
