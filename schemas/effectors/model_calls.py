"""A call of a language model, as the requesting events carry it."""

import re
from collections.abc import Mapping
from itertools import accumulate
from typing import Annotated, Any, Literal, NamedTuple

import msgspec

from schemas.event import Milliseconds, Personal

Purpose = Literal["act", "respond", "clarify", "acknowledge", "tiebreak", "reflect", "appraise"]
"""What a model is asked for; each may have a model of its own.

``act``: to plan what to look up before an answer. ``respond``, ``clarify``, ``acknowledge``: to write an answer, by the
mode that was chosen for it. ``tiebreak``: to choose between two modes. ``reflect``: to criticise an answer or past
choices of modes, or to word an idle agent's thought. ``appraise``: to judge how far a text is an attack.
"""

Ended = Literal["stop", "length", "content_filter", "unknown"]
"""How a model's answer ended, in OpenAI's words: by itself, at a length limit, by a filter; ``unknown``: not said."""

Tokens = Annotated[int, msgspec.Meta(ge=0)]
"""A count of a model's tokens; without a tokenizer, an estimate from the number of characters."""

MOST_TOKENS = 2**53 - 1
"""The greatest count that is recorded: every reader of JSON can hold it."""

PersonalKind = Literal["key", "email", "phone", "card", "iban", "ssn", "ip"]
"""Kinds of data that identify a person or give access; ``ssn`` is a social security number of the USA."""


class Masked(msgspec.Struct, frozen=True, kw_only=True):
    """How many different values of a kind were replaced by placeholders in what a model was shown; not the values."""

    kind: PersonalKind
    count: Annotated[int, msgspec.Meta(ge=1)]


MAX_NESTING = 64
"""Deepest nesting of brackets that is read in an answer. Without this limit the size of the decoder's stack would
decide which answers can be read, and a replay could differ."""

# Markdown: ```json at the beginning, ``` at the end. The lookbehind keeps the time linear in a run of white space.
_FENCE = re.compile(r"^```\w*\s*|(?:(?<!\s)\s+)?```$")
_NO_BRACKETS = re.compile(r"[^\[\]{}]+")


class ChatMessage(msgspec.Struct, frozen=True, kw_only=True):
    """One message of a prompt."""

    role: Literal["system", "user", "assistant"]
    content: Personal


class Cut(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a prompt that was too long. Of its ``characters``, ``kept`` are left; of a single text, its two ends.

    ``part`` names it, such as ``text`` (what the person said), ``turns`` or ``document, part 2 of 3``.
    """

    part: str
    characters: Annotated[int, msgspec.Meta(ge=0)]
    kept: Annotated[int, msgspec.Meta(ge=0)]


class Shortened(NamedTuple):
    """A text as it is put into a prompt: of its ``characters``, ``kept`` are left (all, if it was not cut)."""

    text: str
    characters: int
    kept: int


def cuts_of(shown: Mapping[str, Shortened]) -> tuple[Cut, ...]:
    """Return the cuts of a prompt: ``shown`` holds its parts by name."""
    return tuple(
        Cut(part=part, characters=each.characters, kept=each.kept)
        for part, each in shown.items()
        if each.kept < each.characters
    )


class ModelCall(msgspec.Struct, frozen=True, kw_only=True):
    """What a model is to be asked.

    Attributes:
        purpose: What the answer is for; the settings name a model for each purpose.
        messages: The prompt, oldest first.
        most_tokens: The answer's length, at most.
        answer_schema: JSON Schema that the answer must satisfy; None: free text.
        timeout_ms: How long the answer may take, retries included.
        stream_to: NATS inbox for partial text while the model speaks; empty: none.
        cuts: The parts of the prompt that were cut to fit the model's context.
    """

    purpose: Purpose
    messages: tuple[ChatMessage, ...]
    most_tokens: Annotated[int, msgspec.Meta(ge=1)] = 512
    answer_schema: dict[str, Any] | None = None
    timeout_ms: Milliseconds = 30_000
    stream_to: str = ""
    cuts: tuple[Cut, ...] = ()


def without_code_fence(answer: str) -> str:
    """Return a model's answer without surrounding white space and without a code fence around it."""
    return _FENCE.sub("", answer.strip())


def read_answer(answer: str, kind: Any, most: int) -> Any:
    """Decode a model's answer in JSON as a ``kind``; None if it is not one.

    None also if it has more than ``most`` characters, or brackets nested deeper than :data:`MAX_NESTING`.
    """
    if len(answer) > most or _depth(answer) > MAX_NESTING:
        return None
    try:
        return msgspec.json.decode(without_code_fence(answer), type=kind)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return None


def _depth(text: str) -> int:
    steps = (1 if bracket in "[{" else -1 for bracket in _NO_BRACKETS.sub("", text))
    return max(accumulate(steps), default=0)
