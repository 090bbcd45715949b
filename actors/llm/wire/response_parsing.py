"""What endpoints answer, read as liberally as sense allows. Pure.

Those that speak OpenAI's protocol differ in every field: lists that are null, texts in parts, counts that are texts, a
number for a model, errors under a good status. Nothing of an answer is worth losing it for: what cannot be read of its
fields is none. Only where there is no answer at all, :class:`NotTheProtocol` is raised, or :class:`Refused` where
the endpoint says why.
"""

import codecs
import json
import math
import re
from typing import Any

import msgspec

from actors.llm.wire.refusals import code_of, is_error, reason_in, reason_of
from schemas.model_calls import Ended, Tokens

MOST_WORD = 200
"""Characters of an endpoint's names that are kept."""

MOST_TOKENS = 2**53 - 1
"""The highest count that every reader of JSON takes."""

_BOM = "\ufeff"
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
_DEEPEST = 6
_HALVES = re.compile("[\ud800-\udfff]")
_NO_BYTES = re.compile("[\ud800-\udc7f\udd00-\udfff]")


class NotTheProtocol(ValueError):
    """An endpoint answered with something else than the protocol says; ``error`` is a stable code for what.

    ``said`` is what a page says that came in an answer's place.
    """

    def __init__(self, error: str = "NotTheProtocol", said: str = "") -> None:
        self.error = error
        self.said = said
        super().__init__(error)


class Refused(ValueError):
    """An endpoint told of an error; ``status`` is the HTTP status that it names, 0 for none, ``said`` its reason.

    ``midway``: it had taken the request, and told of it in its stream.
    """

    def __init__(self, status: int, said: str, *, midway: bool = False) -> None:
        self.status = status
        self.said = said
        self.midway = midway
        super().__init__(f"an error in the answer, {status or 'without a status'}")


class Completion(msgspec.Struct, frozen=True, kw_only=True):
    """What an endpoint came to; ``model`` and ``finish_reason`` are in its own words, tokens 0 where it tells none."""

    text: str
    model: str = ""
    finish_reason: str = ""
    prompt_tokens: Tokens = 0
    completion_tokens: Tokens = 0


class Piece(msgspec.Struct, frozen=True, kw_only=True):
    """What one document of an answer brings: the whole, or one event of a stream.

    ``choices`` counts its choices: an event may carry usage alone. ``thinks``: it brings a thought in a field for it.
    ``whole``: its text is a ``message``, which an event of a stream may carry besides what is new.
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
    """A model that an endpoint lists, with its context in tokens; 0 where it does not say."""

    name: str
    context: int = 0


def document_of(body: bytes) -> Any:
    """Read JSON: of whichever Unicode encoding, with a byte order mark or not, with halves of characters in it.

    Raises:
        NotTheProtocol: it is none.
    """
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    try:
        encoding = json.detect_encoding(body)
        # Halves of a character, as an endpoint may send them in two pieces, are put together by `mended`.
        text = body.decode(encoding, "surrogateescape" if encoding.startswith("utf-8") else "strict")
        return json.loads(text.removeprefix(_BOM).strip())
    except (ValueError, RecursionError) as wrong:
        is_page = body.lstrip(b"\xef\xbb\xbf \r\n\t")[:1] == b"<"
        if is_page:
            raise NotTheProtocol("HtmlPage", reason_of(body)) from wrong
        raise NotTheProtocol from wrong


def join_surrogates(text: str) -> str:
    """Put the halves of characters in a text together; what stays half of one is replaced."""
    mending = SurrogateJoiner()
    return mending.take(text) + mending.end()


class SurrogateJoiner:
    """Puts the halves of characters together in a text that comes in pieces: a half waits for the next piece.

    A half is one of a pair of surrogates, or a byte of UTF-8 that was read by itself (``surrogateescape``).
    """

    def __init__(self) -> None:
        self._held = ""
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._mends = False

    def take(self, piece: str) -> str:
        """Return the text so far that has come whole."""
        if not self._mends and not _HALVES.search(piece):
            return piece
        self._mends = True
        text = self._held + piece
        self._held = text[-1] if "\ud800" <= text[-1:] <= "\udbff" else ""
        return self._decode(_bytes_of(text.removesuffix(self._held)))

    def end(self) -> str:
        """Return what is left when no piece comes any more."""
        return self._decode(_bytes_of(self._held), final=True) if self._mends else ""


def _bytes_of(text: str) -> bytes:
    joined = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    return _NO_BYTES.sub("\ufffd", joined).encode("utf-8", "surrogateescape")


def piece_of(document: Any) -> Piece:
    """Read one document of an answer.

    Raises:
        Refused: it tells of an error, whatever else it brings.
        NotTheProtocol: it is no object.
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
    finish = _word(choices[0].get("finish_reason") or choices[0].get("stop_reason")) if choices else ""
    finish = "" if finish.lower() in _NO_END else finish
    usage = _usage(document)
    return Piece(
        text=text,
        choices=len(choices),
        finish_reason=finish,
        model=_word(document.get("model")),
        prompt_tokens=_count(usage, _PROMPT_COUNTS),
        completion_tokens=_count(usage, _ANSWER_COUNTS),
        thinks=any(message.get(name) for name in ("reasoning_content", "reasoning", "thinking")),
        whole=bool(choices) and message is choices[0].get("message"),
    )


def read_answer(body: bytes) -> Completion:
    """Read a whole answer; raises NotTheProtocol, or Refused where it tells of an error."""
    piece = piece_of(document_of(body))
    if not piece.choices:
        raise NotTheProtocol("NoChoice")
    return join_pieces([piece])


def join_pieces(pieces: list[Piece]) -> Completion:
    """Put a completion together from what an endpoint told piece by piece; of each field the last word counts."""

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
    """Read an endpoint's list of models; raises as :func:`read_answer` does."""
    document = document_of(body)
    if isinstance(document, dict):
        if is_error(document):
            raise Refused(code_of(document), reason_in(document))
        document = document.get("data") or document.get("models") or ()
    if not isinstance(document, list | tuple):
        raise NotTheProtocol
    listed = [_listed(each) for each in document]
    return tuple(dict.fromkeys(each for each in listed if each.name))


def finish_reason_of(finish_reason: str) -> Ended:
    """Return what an endpoint's word on an answer's end means, in OpenAI's words."""
    word = finish_reason.lower().replace("-", "_")
    if "length" in word or "max_tokens" in word or "token_limit" in word or "max_output" in word:
        return "length"
    if any(part in word for part in ("filter", "safety", "refus", "blocklist", "prohibited", "recitation", "moderat")):
        return "content_filter"
    return "unknown" if not word or "error" in word or word == "unknown" else "stop"


def _choices(document: dict[str, Any]) -> list[dict[str, Any]]:
    found = document.get("choices")
    if isinstance(found, dict):
        found = [found]
    if not isinstance(found, list):
        # Ollama's own form, which some gateways pass on.
        found = [document] if isinstance(document.get("message"), dict) and "role" in document["message"] else []
    return [each for each in found if isinstance(each, dict)]


def _message(choice: dict[str, Any]) -> dict[str, Any]:
    delta = choice.get("delta")
    is_new = isinstance(delta, dict) and bool(_text(delta.get("content")))
    found = delta if is_new else choice.get("message") or delta
    if isinstance(found, str):
        return {"content": found}
    return found if isinstance(found, dict) else {}


def _text(content: Any, deep: int = 0) -> str:
    """Return the words of a content: a text, a list of parts, or a value that should have been written as a text."""
    if isinstance(content, str):
        return content
    if content is None or deep > _DEEPEST:
        return ""
    if isinstance(content, list):
        return "".join(_text(part, deep + 1) for part in content)
    if isinstance(content, dict):
        if content.get("type") in _THOUGHT_TYPES:
            return ""
        key = next((key for key in _TEXT_KEYS if isinstance(content.get(key), str | list | dict)), None)
        if key is not None:
            return _text(content[key], deep + 1)
        # A structure that was asked for as JSON, and given as it is.
        return json.dumps(content) if deep == 0 and "type" not in content else ""
    return json.dumps(content) if deep == 0 else ""


def _word(value: Any) -> str:
    if isinstance(value, dict):
        value = value.get("type") or value.get("id") or value.get("name")
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return ""
    return join_surrogates(str(value))[:MOST_WORD]


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
    """Return a count however it is written: a number, or one in a text; 0 for what is none, or below zero."""
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


def _listed(entry: Any) -> ListedModel:
    if not isinstance(entry, dict):
        return ListedModel(_word(entry))
    name = next((word for key in ("id", "name", "model") if (word := _word(entry.get(key)))), "")
    beside = [entry, *(entry[key] for key in ("meta", "top_provider", "limits") if isinstance(entry.get(key), dict))]
    told = [number_of(place.get(key)) for place in beside for key in _CONTEXTS]
    return ListedModel(name, min((number for number in told if number), default=0))
