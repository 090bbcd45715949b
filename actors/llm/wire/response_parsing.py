"""Parses the answers of endpoints as tolerantly as possible. Pure.

Endpoints of the OpenAI protocol differ in every field: lists that are null, texts in parts, counts as texts, a number
as the model, errors under a good status. An answer is not given up for a defect in a field: a field that cannot be read
is left empty. Only if there is no answer at all, :class:`NotTheProtocol` is raised, or :class:`Refused` if the endpoint
says why.
"""

import codecs
import json
import math
import re
from typing import Any

import msgspec

from actors.llm.wire.refusals import code_of, is_error, reason_in, reason_of
from schemas.effectors.model_calls import MOST_TOKENS, Ended, Tokens

MOST_NAME = 200
"""Most characters of a model's name or a finish reason that are kept."""

_BOM = "\ufeff"
"""The byte order mark."""

# The names below are those that endpoints of different makers use for the same thing.
_TEXT_KEYS = ("text", "content", "output_text", "value", "refusal")
_THOUGHT_TYPES = frozenset({"thinking", "reasoning", "thought", "redacted_thinking", "tool_use", "tool_call"})
_PROMPT_COUNTS = ("prompt_tokens", "input_tokens", "prompt_eval_count", "promptTokens")
_ANSWER_COUNTS = ("completion_tokens", "output_tokens", "eval_count", "completionTokens")
_CONTEXTS = (
    "max_model_len",
    "context_length",
    "context_window",
    "max_context_length",
    "loaded_context_length",
    "max_input_tokens",
    "n_ctx",
)
_NO_END = frozenset(
    {"null", "none", "unfinished", "not_finished", "continue", "in_progress", "finish_reason_unspecified"}
)
"""Finish reasons that say that the answer goes on."""

_BROKEN_OFF = ("error", "abort", "cancel", "insufficient_system_resource")
"""Words of finish reasons of an answer that its endpoint broke off: vLLM's, SGLang's, DeepSeek's."""

_DEEPEST = 6
"""Most levels of nested content in which text is looked for."""

_SURROGATES = re.compile("[\ud800-\udfff]")
"""Halves of a pair, and bytes that were decoded alone."""

_LONE_SURROGATES = re.compile("[\ud800-\udc7f\udd00-\udfff]")
"""Surrogates that stand for no byte; ``surrogateescape`` uses U+DC80 to U+DCFF for bytes."""


class NotTheProtocol(ValueError):
    """An endpoint's answer does not follow the protocol; ``error`` is a stable code of how.

    ``said`` is the text of a page that came instead of an answer.
    """

    def __init__(self, error: str = "NotTheProtocol", said: str = "") -> None:
        self.error = error
        self.said = said
        super().__init__(error)


class Refused(ValueError):
    """An endpoint reported an error; ``status`` is the HTTP status that it states (0: none), ``said`` its reason.

    ``midway``: it had accepted the request, and reported the error in its stream.
    """

    def __init__(self, status: int, said: str, *, midway: bool = False) -> None:
        self.status = status
        self.said = said
        self.midway = midway
        super().__init__(f"an error in the answer, {status or 'without a status'}")


class Completion(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of an endpoint; ``model`` and ``finish_reason`` as it wrote them, tokens 0 if it states none."""

    text: str
    model: str = ""
    finish_reason: str = ""
    prompt_tokens: Tokens = 0
    completion_tokens: Tokens = 0


class Piece(msgspec.Struct, frozen=True, kw_only=True):
    """The content of one document of an answer: the whole answer, or one event of a stream.

    ``choices`` is their number: an event may carry only usage. ``thinks``: it contains a thought in a field for
    thoughts. ``whole``: its text is a full ``message``, which an event of a stream may contain besides the new part.
    """

    text: str = ""
    choices: int = 0
    finish_reason: str = ""
    model: str = ""
    prompt_tokens: Tokens = 0
    completion_tokens: Tokens = 0
    thinks: bool = False
    whole: bool = False


class ListedModel(msgspec.Struct, frozen=True):
    """A model that an endpoint lists, with its context in tokens; 0 if it is not stated."""

    name: str
    context: int = 0


def document_of(body: bytes) -> Any:
    """Parse JSON in any Unicode encoding, with or without byte order mark, with split characters in it.

    Raises:
        NotTheProtocol: it is not JSON.
    """
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    try:
        encoding = json.detect_encoding(body)
        # A character may be split over two pieces by the endpoint; `join_surrogates` puts the halves together.
        text = body.decode(encoding, "surrogateescape" if encoding.startswith("utf-8") else "strict")
        return json.loads(text.removeprefix(_BOM).strip())
    except (ValueError, RecursionError) as wrong:
        is_page = body.lstrip(b"\xef\xbb\xbf \r\n\t")[:1] == b"<"
        if is_page:
            raise NotTheProtocol("HtmlPage", reason_of(body)) from wrong
        raise NotTheProtocol from wrong


def join_surrogates(text: str) -> str:
    """Join the halves of split characters in a text; a half without its other half is replaced."""
    joiner = SurrogateJoiner()
    return joiner.take(text) + joiner.end()


class SurrogateJoiner:
    """Joins split characters in a text that comes in pieces: a half waits for the next piece.

    A half is one of a pair of surrogates, or a byte of UTF-8 that was decoded alone (``surrogateescape``).
    """

    def __init__(self) -> None:
        self._held = ""
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._is_joining = False

    def take(self, piece: str) -> str:
        """Return the complete part of the text so far."""
        if not self._is_joining and not _SURROGATES.search(piece):
            return piece
        self._is_joining = True
        text = self._held + piece
        self._held = text[-1] if "\ud800" <= text[-1:] <= "\udbff" else ""
        return self._decode(_bytes_of(text.removesuffix(self._held)))

    def end(self) -> str:
        """Return the rest when no further piece comes."""
        return self._decode(_bytes_of(self._held), final=True) if self._is_joining else ""


def _bytes_of(text: str) -> bytes:
    joined = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    return _LONE_SURROGATES.sub("\ufffd", joined).encode("utf-8", "surrogateescape")


def piece_of(document: Any) -> Piece:
    """Parse one document of an answer.

    Raises:
        Refused: it reports an error, whatever else it contains.
        NotTheProtocol: it is not an object.
    """
    if isinstance(document, list):
        document = next((each for each in document if isinstance(each, dict)), None)
    if not isinstance(document, dict):
        raise NotTheProtocol
    if is_error(document):
        raise Refused(code_of(document), reason_in(document))
    choices = _choices(document)
    message = _message(choices[0]) if choices else {}
    text = _text(message.get("content")) or _text(message.get("refusal")) if message else ""
    text = text or (_text(choices[0].get("text")) if choices else "")
    finish = _name(choices[0].get("finish_reason") or choices[0].get("stop_reason")) if choices else ""
    finish = "" if finish.lower() in _NO_END else finish
    usage = _usage(document)
    return Piece(
        text=text,
        choices=len(choices),
        finish_reason=finish,
        model=_name(document.get("model")),
        prompt_tokens=_count(usage, _PROMPT_COUNTS),
        completion_tokens=_count(usage, _ANSWER_COUNTS),
        thinks=any(message.get(name) for name in ("reasoning_content", "reasoning", "thinking")),
        whole=bool(choices) and message is choices[0].get("message"),
    )


def read_answer(body: bytes) -> Completion:
    """Parse a whole answer; raises NotTheProtocol, or Refused where it reports an error."""
    piece = piece_of(document_of(body))
    if not piece.choices:
        raise NotTheProtocol("NoChoice")
    return join_pieces([piece])


def join_pieces(pieces: list[Piece]) -> Completion:
    """Combine the pieces of an answer into a completion; for each field the last value counts."""

    def last(name: str) -> Any:
        return next((value for piece in reversed(pieces) if (value := getattr(piece, name))), None)

    return Completion(
        text=join_surrogates("".join(piece.text for piece in pieces)),
        model=last("model") or "",
        finish_reason=last("finish_reason") or "",
        prompt_tokens=last("prompt_tokens") or 0,
        completion_tokens=last("completion_tokens") or 0,
    )


def read_models(body: bytes) -> tuple[ListedModel, ...]:
    """Parse an endpoint's list of models; raises as :func:`read_answer` does."""
    document = document_of(body)
    if isinstance(document, dict):
        if is_error(document):
            raise Refused(code_of(document), reason_in(document))
        document = document.get("data") or document.get("models") or ()
    if not isinstance(document, list | tuple):
        raise NotTheProtocol
    listed = [_listed_model(each) for each in document]
    return tuple(dict.fromkeys(each for each in listed if each.name))


def finish_reason_of(finish_reason: str) -> Ended:
    """Return an endpoint's finish reason as OpenAI's."""
    word = finish_reason.lower().replace("-", "_")
    if "length" in word or "max_tokens" in word or "token_limit" in word or "max_output" in word:
        return "length"
    if any(part in word for part in ("filter", "safety", "refus", "blocklist", "prohibited", "recitation", "moderat")):
        return "content_filter"
    return "unknown" if not word or word == "unknown" or any(part in word for part in _BROKEN_OFF) else "stop"


def _choices(document: dict[str, Any]) -> list[dict[str, Any]]:
    found = document.get("choices")
    if isinstance(found, dict):
        found = [found]
    if not isinstance(found, list):
        # Ollama's own format, which some gateways forward.
        found = [document] if isinstance(document.get("message"), dict) and "role" in document["message"] else []
    return [each for each in found if isinstance(each, dict)]


def _message(choice: dict[str, Any]) -> dict[str, Any]:
    delta = choice.get("delta")
    is_new = isinstance(delta, dict) and bool(_text(delta.get("content")))
    found = delta if is_new else choice.get("message") or delta
    if isinstance(found, str):
        return {"content": found}
    return found if isinstance(found, dict) else {}


def _text(content: Any, depth: int = 0) -> str:
    """Return the text of a content: a text, a list of parts, or a value that should have been sent as a text."""
    if isinstance(content, str):
        return content
    if content is None or depth > _DEEPEST:
        return ""
    if isinstance(content, list):
        return "".join(_text(part, depth + 1) for part in content)
    if isinstance(content, dict):
        if content.get("type") in _THOUGHT_TYPES:
            return ""
        key = next((key for key in _TEXT_KEYS if isinstance(content.get(key), str | list | dict)), None)
        if key is not None:
            return _text(content[key], depth + 1)
        # A structure that was requested as JSON text, but sent as an object.
        return json.dumps(content) if depth == 0 and "type" not in content else ""
    return json.dumps(content) if depth == 0 else ""


def _name(value: Any) -> str:
    if isinstance(value, dict):
        value = value.get("type") or value.get("id") or value.get("name")
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return ""
    return join_surrogates(str(value))[:MOST_NAME]


def _usage(document: dict[str, Any]) -> dict[str, Any]:
    groq = document.get("x_groq")
    for found in (document.get("usage"), groq.get("usage") if isinstance(groq, dict) else None, document):
        if isinstance(found, dict):
            return found
    return {}


def _count(usage: dict[str, Any], names: tuple[str, ...]) -> int:
    value = next((usage[name] for name in names if usage.get(name) is not None), None)
    return number_of(value)


def number_of(value: Any) -> int:
    """Return a count, given as a number or as a text; 0 for anything else, or below zero."""
    if isinstance(value, dict):
        value = value.get("total")
    if isinstance(value, str):
        try:
            value = float(value.strip().replace(",", "").replace("_", ""))
        except ValueError:
            return 0
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return 0
    return min(max(int(value), 0), MOST_TOKENS)


def _listed_model(entry: Any) -> ListedModel:
    if not isinstance(entry, dict):
        return ListedModel(_name(entry))
    name = next((word for key in ("id", "name", "model") if (word := _name(entry.get(key)))), "")
    parts = [entry, *(entry[key] for key in ("meta", "top_provider", "limits") if isinstance(entry.get(key), dict))]
    counts = [number_of(part.get(key)) for part in parts for key in _CONTEXTS]
    return ListedModel(name, min((number for number in counts if number), default=0))
