"""A language model as critic: its prompt, in the role of a pessimist, and how its answer is read. Pure.

A *bias tag* names a fault of an answer, such as ``overconfidence``.
"""

from importlib.resources import files
from typing import Annotated, Any

import msgspec

from actors.contract.text.shortening import shorten
from actors.guardrails.settings import GuardrailsSettings
from schemas.effectors.model_calls import ChatMessage, ModelCall, cuts_of, read_answer
from schemas.event import Unit
from schemas.vocabulary.guardrails import CritiqueRequested
from schemas.wording.delimited_blocks import delimited_blocks

MOST_TAGS = 16
"""Most bias tags of a critique."""

LONGEST_ANSWER = 4_000
"""Most characters of an answer that is read; far more than the schema needs."""

_INSTRUCTION = files(__package__).joinpath("pessimist.md").read_text(encoding="utf-8").strip()
_TAG = r"^[a-z][a-z_]{1,39}$"
"""A bias tag: lower-case letters and underscores, 2 to 40 characters."""

_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "alignment": {"type": "number", "minimum": 0, "maximum": 1},
        "drift": {"type": "number", "minimum": 0, "maximum": 1},
        "bias_tags": {"type": "array", "maxItems": MOST_TAGS, "items": {"type": "string", "pattern": _TAG}},
    },
    "required": ["alignment", "drift", "bias_tags"],
    "additionalProperties": False,
}


class Critique(msgspec.Struct, frozen=True):
    """A model's scores of an answer: how well it fits its question, how far it strays from it, and its biases."""

    alignment: Unit
    drift: Unit
    bias_tags: Annotated[tuple[Annotated[str, msgspec.Meta(pattern=_TAG)], ...], msgspec.Meta(max_length=MOST_TAGS)]


def critique_call(loop_id: str, question: str, answer: str, settings: GuardrailsSettings) -> CritiqueRequested:
    """Return the request for a critique of the answer that a loop came to."""
    texts = {"question": question, "answer": answer}
    shown = {what: shorten(text, settings.critic_characters, len) for what, text in texts.items()}
    blocks = delimited_blocks([(f"the {what}", each.text) for what, each in shown.items()])
    return CritiqueRequested(
        loop_id=loop_id,
        call=ModelCall(
            purpose="reflect",  # the purpose of calls that criticise
            messages=(
                ChatMessage(role="system", content=_INSTRUCTION),
                ChatMessage(role="user", content="\n\n".join(blocks)),
            ),
            most_tokens=settings.critic_tokens,
            answer_schema=_SCHEMA,
            timeout_ms=settings.critic_timeout_ms,
            cuts=cuts_of(shown),
        ),
    )


def critique_of(answer: str) -> Critique | None:
    """Return the critique in a model's answer; None if the answer is not of the form that was asked for."""
    found: Critique | None = read_answer(answer, Critique, LONGEST_ANSWER)
    return found
