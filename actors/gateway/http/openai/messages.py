"""The text of a request that the guards read: every message as a layer of an input, in its role. Pure.

A model is shown more than the last user turn. So all text of a request is read: each message, the tool calls in it, the
definitions of tools, and the texts of unknown parameters. Each of these is a *part* until it becomes a layer.
"""

import base64
import binascii
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any
from urllib.parse import unquote

import msgspec

from actors.contract.text.decoding.plausibility import text_of as text_in
from schemas.vocabulary.gateway import Layer, Role

ROLES: Mapping[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}
"""A message's role -> the role of its layer."""

_NOT_TEXT = frozenset(
    {"role", "type", "id", "tool_call_id", "url", "data", "file_data", "file_id", "format", "detail", "$ref", "ttl"}
)
"""Names of JSON fields whose values are not read: kinds, ids, addresses and encoded files.

But a value with white space is read, and so is text in base64.
"""

_UNREAD = frozenset({"messages", "model", "stream"})
"""Parameters that hold no text, or whose text is read separately."""

_NOT_SHOWN = frozenset({"user", "metadata", "service_tier", "safety_identifier", "prompt_cache_key"})
"""Parameters that OpenAI does not show to a model, but other endpoints may. They change from request to request."""

_SHORTEST_FILE = 12
"""Fewest characters of base64 that can contain an instruction."""

_DEFINITIONS = frozenset({"tools", "functions", "response_format"})
"""Parameters that say what a model may call, or what its answer must look like."""


class ReadMessage(msgspec.Struct, frozen=True):
    """A message as the guards read it."""

    role: Role
    text: str

    @property
    def digest(self) -> bytes:
        """A hash that distinguishes it from other messages."""
        return sha256(f"{self.role}\n{self.text}".encode(errors="surrogatepass")).digest()


def read_message(message: Mapping[str, Any]) -> ReadMessage:
    """Return a message as the guards read it: its text, and all other text in it."""
    shown = {name: value for name, value in message.items() if name != "name" or _is_words(value)}
    return ReadMessage(ROLES[message["role"]], "\n".join(all_text_in(shown)))


def text_of(message: Mapping[str, Any]) -> str:
    """Return the text of a message's content."""
    content = message.get("content") or ""
    if isinstance(content, str):
        return content
    return "\n".join(part["text"] for part in content if isinstance(part.get("text"), str))


def definitions_in(body: Mapping[str, Any]) -> tuple[ReadMessage, ...]:
    """Return what a request shows to a model besides its messages: one part for each tool and each other parameter."""
    found = []
    for name, value in body.items():
        if name in _UNREAD or name in _NOT_SHOWN:
            continue
        for each in value if isinstance(value, list) else (value,):
            text = "\n".join(all_text_in(each))
            if text.strip():
                found.append(ReadMessage("tool" if name in _DEFINITIONS else "document", text))
    return tuple(found)


def unshown_parameters_in(body: Mapping[str, Any]) -> tuple[ReadMessage, ...]:
    """Return the parameters in ``_NOT_SHOWN`` as one part, if they hold text; each request's are read anew."""
    # Under the key of an id, one-word values are taken as ids, and not read.
    texts = [value for name in sorted(_NOT_SHOWN & body.keys()) for value in all_text_in(body[name], "id")]
    return (ReadMessage("document", "\n".join(texts)),) if texts else ()


def layers_of(parts: Iterable[ReadMessage]) -> tuple[Layer, ...]:
    """Return parts as layers; parts without text are left out."""
    return tuple(Layer(role=part.role, content=part.text) for part in parts if part.text.strip())


def merge_layers(layers: Sequence[Layer], most: int) -> tuple[Layer, ...]:
    """Return at most ``most`` layers: the early parts of a long conversation are merged into one layer for each role.

    A client sends its whole history, however long, and a gateway that was started again reads all of it. If that were
    refused, the conversation could never continue.
    """
    if len(layers) <= most:
        return tuple(layers)
    kept = max(0, most - len({layer.role for layer in layers}))
    first = len(layers) - kept
    merged: dict[Role, list[str]] = {}
    for layer in layers[:first]:
        merged.setdefault(layer.role, []).append(layer.content)
    return (*(Layer(role=role, content="\n".join(texts)) for role, texts in merged.items()), *layers[first:])


def digest_of(parts: Sequence[ReadMessage]) -> bytes:
    """Return a hash that distinguishes a sequence of parts from any other."""
    return sha256(b"".join(part.digest for part in parts)).digest()


def all_text_in(value: Any, key: str = "") -> Iterator[str]:
    """Yield the text in a JSON value: texts at any depth, a schema's property names, other names that are words.

    ``key`` is the name of the value. For an encoded file, the text in it is yielded, if there is any.

    Many endpoints show a model its tools as plain JSON, including names unknown here.
    """
    waiting = [(key, value)]
    while waiting:  # no recursion: a body may be nested deeply, and its depth must not multiply its length
        key, value = waiting.pop()
        if isinstance(value, str):
            if key not in _NOT_TEXT or _is_words(value):
                yield value
            elif text := _text_of_file(value):
                yield text
        elif isinstance(value, Mapping):
            names = sorted(value)  # clients may write the fields of the same message in another order
            yield from names if key == "properties" else filter(_is_words, names)
            waiting += [("" if key == "properties" else name, value[name]) for name in reversed(names)]
        elif isinstance(value, list):
            waiting += [(key, inner) for inner in reversed(value)]


def is_not_text(key: str, value: str) -> bool:
    """Return whether the value of a key is a kind, an id, an address or a file, and not text."""
    return key in _NOT_TEXT and not _is_words(value)


def _is_words(value: Any) -> bool:
    """Return whether a value may be words: a text with white space in it, or a value that is no text."""
    return not isinstance(value, str) or any(map(str.isspace, value))


def _text_of_file(value: str) -> str:
    """Return the text in a file that is given as a data URL or in base64; empty where there is none."""
    begin, comma, data = value.partition(",")
    if begin.startswith("data:") and comma and not begin.endswith(";base64"):
        return unquote(data)
    run = (data if begin.startswith("data:") else value).rstrip("=").replace("-", "+").replace("_", "/")
    if len(run) < _SHORTEST_FILE or len(run) % 4 == 1:
        return ""
    try:
        return text_in(base64.b64decode(run + "=" * (-len(run) % 4), validate=True))
    except binascii.Error:
        return ""
