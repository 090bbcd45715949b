"""What a language model is asked about an input, and how its answer is read. Pure.

It is asked how far each part (the input's text, a document, a tool's result) is an attack: its *falsehood*, a number in
[0, 1].

The parts are delimited: they stand between lines with a key that no part can contain, since the key is computed from
all of them. The prompt says that what stands there is data. An answer can only raise a falsehood. So a part that
persuades the model gains nothing.
"""

from collections.abc import Sequence
from importlib.resources import files
from typing import Annotated, Any, get_args

import msgspec

from actors.appraisal.session_memory import DECIMALS
from actors.appraisal.settings import TrustSettings
from actors.contract.text.excerpt import excerpt
from actors.contract.text.shortening import shares, shorten
from schemas.effectors.model_calls import ChatMessage, ModelCall, cuts_of, read_answer
from schemas.vocabulary.appraisal import AttackKind, JudgementRequested, LayerTrust, PartJudged
from schemas.wording.delimited_blocks import delimited_blocks

LONGEST_ANSWER = 4_000
"""Most characters of an answer; a usable one has far fewer."""

SCALE = 10
"""The model's highest falsehood. It answers with integers: a schema can list them, and small models can use them."""

_INSTRUCTION = files(__package__).joinpath("judge.md").read_text(encoding="utf-8").strip()
_KINDS: tuple[AttackKind, ...] = get_args(AttackKind)
_PART_LABELS = {
    "text": "what the user says",
    "user": "what the user said",
    "assistant": "what the assistant is said to have answered",
    "tool": "a tool's result",
    "document": "a document",
}


class _Part(msgspec.Struct, frozen=True):
    """A model's judgement of the part with that number, from 1."""

    part: Annotated[int, msgspec.Meta(ge=1)]
    kind: AttackKind
    falsehood: Annotated[int, msgspec.Meta(ge=0, le=SCALE)]


class _Answer(msgspec.Struct, frozen=True):
    parts: Annotated[tuple[_Part, ...], msgspec.Meta(min_length=1, max_length=64)]


Part = tuple[LayerTrust, str]
"""A part of an input: the local trust in it, and its text."""


def parts_to_judge(parts: Sequence[Part], settings: TrustSettings) -> tuple[Part, ...]:
    """Return the parts to ask a model about, the least trusted first."""
    if not settings.asks:
        return ()
    least = 0.0 if settings.gate == "both" else settings.open_from
    found = [part for part in parts if part[1].strip() and part[0].falsehood >= least]
    return tuple(sorted(found, key=lambda part: -part[0].falsehood)[: settings.parts])


def judgement_request(parts: Sequence[Part], settings: TrustSettings) -> JudgementRequested:
    """Return the request for a model's judgement of some parts of an input."""
    texts = [excerpt(text) for _, text in parts]
    limits = shares([len(text) for text in texts], settings.characters)
    shown = [shorten(text, limit, len) for text, limit in zip(texts, limits, strict=True)]
    blocks = delimited_blocks(
        [
            (f"part {number}, {_PART_LABELS[trust.layer.partition('[')[0]]}", each.text)
            for number, ((trust, _), each) in enumerate(zip(parts, shown, strict=True), start=1)
        ]
    )
    return JudgementRequested(
        layers=tuple(trust for trust, _ in parts),
        waits=settings.waits,
        call=ModelCall(
            purpose="appraise",
            messages=(
                ChatMessage(role="system", content=_INSTRUCTION),
                ChatMessage(role="user", content="\n\n".join(blocks)),
            ),
            most_tokens=settings.most_tokens,
            answer_schema=_schema(len(parts)),
            timeout_ms=settings.timeout_ms,
            cuts=cuts_of(
                {
                    trust.layer: each._replace(characters=len(text))
                    for (trust, text), each in zip(parts, shown, strict=True)
                }
            ),
        ),
        deadline_after_ms=settings.timeout_ms + settings.grace_ms,
    )


def read_judgements(answer: str, layers: Sequence[LayerTrust]) -> tuple[PartJudged, ...] | None:
    """Return the judgements in a model's answer, by part; None if the answer has another form.

    Of several judgements on one part the worst counts. A part that is missing, or one that was not asked about, makes
    the whole answer invalid, since the model then answers something else.
    """
    answered: _Answer | None = read_answer(answer, _Answer, LONGEST_ANSWER)
    judged = answered.parts if answered is not None else ()
    if {each.part for each in judged} != set(range(1, len(layers) + 1)):
        return None
    worst = {each.part: each for each in sorted(judged, key=lambda each: each.falsehood)}
    return tuple(_judged(layer, worst[number]) for number, layer in enumerate(layers, start=1))


def with_judgement(layer: LayerTrust, judged: PartJudged) -> LayerTrust:
    """Return the trust in a part after a model's judgement: lower, if the model sees more falsehood."""
    if judged.falsehood <= layer.falsehood:
        return layer
    return msgspec.structs.replace(
        layer, falsehood=judged.falsehood, truth=min(layer.truth, round(1.0 - judged.falsehood, DECIMALS))
    )


def _judged(layer: LayerTrust, judged_part: _Part) -> PartJudged:
    # A part that is no kind of attack has no falsehood, however confident the model is.
    falsehood = 0.0 if judged_part.kind == "none" else round(judged_part.falsehood / SCALE, DECIMALS)
    added = round(max(0.0, falsehood - layer.falsehood), DECIMALS)
    return PartJudged(layer=layer.layer, local=layer.falsehood, falsehood=falsehood, kind=judged_part.kind, share=added)


def _schema(parts: int) -> dict[str, Any]:
    part = {
        "type": "object",
        "properties": {
            "part": {"type": "integer", "enum": list(range(1, parts + 1))},
            "kind": {"type": "string", "enum": list(_KINDS)},
            "falsehood": {"type": "integer", "enum": list(range(SCALE + 1))},
        },
        "required": ["part", "kind", "falsehood"],
        "additionalProperties": False,
    }
    return {
        "type": "object",
        "properties": {"parts": {"type": "array", "minItems": parts, "maxItems": parts, "items": part}},
        "required": ["parts"],
        "additionalProperties": False,
    }
