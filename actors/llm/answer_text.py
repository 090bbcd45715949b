"""Makes an answer of a model's output: removes thoughts, and checks the requested format. Pure."""

import re
from typing import Any

import msgspec
from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError
from referencing import Registry
from referencing.exceptions import Unresolvable

from actors.llm.wire.thought_filter import without_thoughts

# A model may write nothing but line ends to the end of its answer. So none of them is matched in two ways.
_FENCED = re.compile(r"```(?:json)?(?=\s*\n)(.*?)```", re.DOTALL | re.IGNORECASE)
"""A code fence of Markdown, and the text in it with white space around."""

_REGISTRY: Registry[Any] = Registry()
"""An empty registry of schemas: a reference to another schema is an error, and never downloaded."""

_MOST_CHARACTERS_PER_TOKEN = 16
"""More characters per token than any tokenizer reaches on average over more than a few words."""


class AnswerInvalid(ValueError):
    """A model's output is not an answer; ``error`` is a stable code of what is wrong."""

    def __init__(self, error: str) -> None:
        self.error = error
        super().__init__(error)


def read_answer_text(written: str, schema: dict[str, Any] | None, most_tokens: int) -> str:
    """Return the answer in a model's output; for a schema, the JSON text that satisfies it.

    An endpoint may ignore the requested length: a text is cut if it certainly exceeds it (see :func:`is_too_long`).
    Endpoints without ``response_format`` let models write a code fence or words around the JSON; these are removed.

    Raises:
        AnswerInvalid: it is empty, is not JSON, is JSON that is too long (JSON cannot be cut), or does not satisfy the
            schema (or the schema is invalid).
    """
    text = without_thoughts(written)
    if not text:
        raise AnswerInvalid("EmptyAnswer")
    if schema is None:
        return text[: most_tokens * _MOST_CHARACTERS_PER_TOKEN]
    if is_too_long(text, most_tokens):
        raise AnswerInvalid("TooLong")
    text, answer = _json_in(text)
    try:
        Draft202012Validator.check_schema(schema)
        satisfied = Draft202012Validator(schema, registry=_REGISTRY).is_valid(answer)
    except (SchemaError, Unresolvable, RecursionError, re.error) as wrong:
        raise AnswerInvalid("SchemaUnusable") from wrong
    if not satisfied:
        raise AnswerInvalid("SchemaNotSatisfied")
    return text


def is_too_long(text: str, most_tokens: int) -> bool:
    """Return whether a text certainly has more than ``most_tokens`` tokens."""
    return len(text) > most_tokens * _MOST_CHARACTERS_PER_TOKEN


def _json_in(text: str) -> tuple[str, Any]:
    """Return the JSON in a text, and its value: the whole text, the part in a fence, or the part in braces."""
    fenced = _FENCED.search(text)
    begin, end = text.find("{"), text.rfind("}")
    for each in (text, fenced[1].strip() if fenced else "", text[begin : end + 1] if 0 <= begin < end else ""):
        try:
            return each, msgspec.json.decode(each)
        except (msgspec.DecodeError, RecursionError):
            continue
    raise AnswerInvalid("NotJson")
