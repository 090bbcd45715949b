"""Judges an input: compares its text and layers with the motifs, and scores them with the learned scorer.

A motif is the signature (the set of word triples) of a precedent that did harm; a precedent is an earlier situation
with its outcome.
"""

from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from actors.contract.text.decoded_views import read_decoded_views
from actors.contract.text.decoding import decoded_texts
from actors.contract.text.excerpt import MOST_FOR_DECODING, excerpt_of
from actors.contract.text.joined_parts import joined_parts
from actors.contract.text.judge.model import Model
from actors.contract.text.judge.weights import added_weights
from actors.contract.text.judge.worst_passage import read_text, unread_share
from actors.intuition.comparing import compare
from actors.intuition.index import SimilarEntry
from actors.intuition.library import Library
from actors.intuition.scorer import MODEL_VERSION, THRESHOLD, score, scorer_of
from actors.intuition.settings import IntuitionSettings
from schemas.event import Event
from schemas.unread import DECIMALS, Unread, layers_left_out, saturating_share
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.intuition import (
    IntuitionPassed,
    IntuitionRejected,
    IntuitionResultPassed,
    IntuitionResultRejected,
    Similar,
)

VERDICTS = (IntuitionPassed, IntuitionRejected, IntuitionResultPassed, IntuitionResultRejected)
"""The events that depend on the scorer."""

TEXT = "text"
"""The name of the part that is the user's text."""

MOST_ANSWERS = 256 * 1024
"""Most bytes of the precedents' answers in a verdict, encoded: an event must fit into a message of the broker."""

UNCOMPARED_HALF = 64
"""This many omitted comparisons count as if half of the input were not compared (``saturating_share``)."""

UNREAD_WEIGHT = 0.5
"""The share of the input that counts as unread if no text was read for comparing; it is not 1, since scorer and reflex
have read the input."""

MOST_UNREAD = 16
"""Most parts that a verdict lists among those that the scorer has not read."""

MOST_DECODED = 32
"""Most parts whose disguises are undone for comparing; for further parts, reflex and the scorer still undo them."""

NO_MODEL = "none"
"""The model that a verdict names when the scorer is switched off."""


class Part(msgspec.Struct, frozen=True):
    """A part of an input that is judged: ``text``, or a layer's role and index such as ``document[1]``."""

    name: str
    text: str


class Input(msgspec.Struct, frozen=True):
    """What is judged of an input; the first part is its text. ``left_out`` counts layers that are not read.

    ``situation`` is the input's kind, a name that its caller chooses. ``allowed`` names the operators' orders by which
    text was left out, so that it is not judged.
    """

    parts: tuple[Part, ...]
    situation: str
    left_out: int = 0
    allowed: tuple[str, ...] = ()


class _Scored(NamedTuple):
    """The score of a part, or of several that were read together."""

    score: float
    part: str


def input_of(received: InputReceived, settings: IntuitionSettings) -> Input:
    """Return what is to be judged of an input."""
    layers = (
        Part(f"{layer.role}[{index}]", layer.content)
        for index, layer in enumerate(received.layers)
        if layer.role in settings.scanned_layers
    )
    return Input((Part(TEXT, received.text), *layers), received.situation, received.left_out)


def judge(
    library: Library, settings: IntuitionSettings, judged: Input, models: tuple[str, ...] = ()
) -> IntuitionPassed | IntuitionRejected:
    """Return the verdict on an input.

    ``models`` are those that the recorded verdict depends on, if the input was judged before; else it is empty. A motif
    takes precedence over the scorer, and the most similar motif decides, in whichever part it is. The listed precedents
    are those similar to the input's text: a document does not describe the situation of the exchange.
    """
    part_names = _parts(judged)
    compared = _with_decoded(part_names) if library.precedents else part_names
    near, similar, cut, uncompared_characters = compare(library, settings, tuple(compared), judged.situation)
    scorer = scorer_of(models)
    scored, missed = _scored(part_names, settings.scored_characters, scorer) if settings.scorer else (None, ())
    left_out = layers_left_out(judged.left_out)
    unread = (*left_out, *_uncompared(cut, uncompared_characters, sum(map(len, compared))), *missed)
    precedents = tuple(_listed(library, similar, settings))
    model = scorer.name if scored is not None else NO_MODEL
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
            layer=tuple(compared.values())[near.part],
            model=model,
            precedents=precedents,
            unread=unread,
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
            unread=unread,
        )
    return IntuitionPassed(
        nearest=near.motif if near is not None else "",
        similarity=near.similarity if near is not None else 0.0,
        score=scored.score if scored is not None else None,
        model=model,
        precedents=precedents,
        unread=unread,
        allowed=judged.allowed,
    )


def judge_result(
    library: Library, settings: IntuitionSettings, source: str, result: str, models: tuple[str, ...] = ()
) -> IntuitionResultPassed | IntuitionResultRejected:
    """Return the verdict on a tool's result, which is in the event ``source``.

    It names no kind of situation, so it is of the kind that inputs have by default.
    """
    found = judge(library, settings, Input((Part("tool", result),), situation="general"), models)
    kind = IntuitionResultPassed if isinstance(found, IntuitionPassed) else IntuitionResultRejected
    # The numbers are as in the verdict on an input, under the same names.
    return kind(source=source, **{name: getattr(found, name) for name in kind.__struct_fields__ if name != "source"})


def missing_model(event: Event) -> str:
    """Return the scorer that a verdict depends on if this process does not have it, else empty."""
    return next((name for name in models_of(event) if name != MODEL_VERSION and added_weights(name) is None), "")


def models_of(event: Event) -> tuple[str, ...]:
    """Return the scorer that a verdict depends on; none if it was switched off."""
    if isinstance(event, VERDICTS) and event.model != NO_MODEL:
        return (event.model,)
    return ()


def _parts(judged: Input) -> dict[str, str]:
    """Return each text of the input once, with the name of the first part that has it; the input's text comes first."""
    part_names: dict[str, str] = {}
    for part in judged.parts:
        part_names.setdefault(part.text, part.name)
    return part_names


def _with_decoded(part_names: dict[str, str]) -> dict[str, str]:
    """Return the texts of an input, and their forms with disguises undone, each with the name of its part."""
    compared = dict(part_names)
    for text, name in list(part_names.items())[:MOST_DECODED]:
        shown = excerpt_of(text, MOST_FOR_DECODING).text
        views = (view.text for view in read_decoded_views(shown).found)
        for decoded_text in (*views, *(decoded.text for decoded in decoded_texts(shown) if decoded.has_words)):
            compared.setdefault(decoded_text, name)
    return compared


def _scored(part_names: dict[str, str], characters: int, scorer: Model) -> tuple[_Scored, tuple[Unread, ...]]:
    """Return the highest score, the first of equal ones, and what should have been read for it but was not."""
    texts = [text for text in part_names if text.strip()]
    best, missed = _Scored(0.0, TEXT), []
    for joined in joined_parts(texts, characters):
        part = _range_of_names(part_names, texts[joined.indexes[0]], texts[joined.indexes[-1]])
        scored = score(joined.text, scorer)
        if scored > best.score:
            best = _Scored(scored, part)
        if joined.text.strip():
            read = read_text(joined.text)
            amount = joined.unread + read.unread
            share = unread_share(read.shown, amount)
            if amount:
                # "telling": passages around words that attacks use, which are what the scorer reads
                missed.append(Unread(layer=part, what="telling", amount=amount, why="scored_characters", share=share))
    return best, tuple(sorted(missed, key=lambda each: -each.share)[:MOST_UNREAD])


def _uncompared(cut: int, characters: int, all_characters: int) -> Iterator[Unread]:
    """Yield what was not compared with precedents: ``cut`` comparisons, and ``characters`` out of all.

    ``why`` names the limit: the setting ``work``, or ``comparing.MOST_READ``.
    """
    if cut:
        share = saturating_share(cut, UNCOMPARED_HALF)
        yield Unread(layer="", what="comparisons", amount=cut, why="work", share=share)
    if characters:
        share = round(UNREAD_WEIGHT * characters / all_characters, DECIMALS)
        yield Unread(layer="", what="characters", amount=characters, why="most_read", share=share)


def _range_of_names(part_names: dict[str, str], first: str, last: str) -> str:
    return part_names[first] if first == last else f"{part_names[first]}..{part_names[last]}"


def _listed(library: Library, similar: tuple[SimilarEntry, ...], settings: IntuitionSettings) -> Iterator[Similar]:
    """Yield the similar precedents, with their answers as long as these fit into the size limit of a verdict."""
    bytes_left = MOST_ANSWERS
    for found in similar:
        precedent = _similar(library, found, settings)
        bytes_left -= len(msgspec.json.encode(precedent.answer))
        yield precedent if bytes_left >= 0 else msgspec.structs.replace(precedent, answer="")


def _similar(library: Library, found: SimilarEntry, settings: IntuitionSettings) -> Similar:
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
