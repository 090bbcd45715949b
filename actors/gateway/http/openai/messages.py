"""What the guards are given of a conversation: every message as a part of an input, with the role it speaks in. Pure.

A model is shown more than the last user turn. So all words of a request are read: each message, the calls of tools in
it, the definitions of tools, and the texts of parameters that are not known here.
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

_MARKS = frozenset(
    {"role", "type", "id", "tool_call_id", "url", "data", "file_data", "file_id", "format", "detail", "$ref", "ttl"}
)
"""Keys whose text no model reads as words: kinds, ids, addresses and encoded files. Only text without white space, and
such as holds no text in base64."""

_UNREAD = frozenset({"messages", "model", "stream"})
"""What is no words, or read by itself."""

_ASIDE = frozenset({"user", "metadata", "service_tier", "safety_identifier", "prompt_cache_key"})
"""Parameters that OpenAI shows no model; others may. They change from request to request."""

_LEAST_FILE = 12
"""Characters of base64 that may hold an order."""

_DEFINITIONS = frozenset({"tools", "functions", "response_format"})
"""Parameters that say what a model may call, or what its answer must look like."""


class ReadMessage(msgspec.Struct, frozen=True):
    """A message as the guards read it."""

    role: Role
    words: str

    @property
    def digest(self) -> bytes:
        """What tells it from other messages."""
        return sha256(f"{self.role}\n{self.words}".encode(errors="surrogatepass")).digest()


def read_message(message: Mapping[str, Any]) -> ReadMessage:
    """Return a message as the guards read it: its text, and whatever else in it is words."""
    shown = {name: value for name, value in message.items() if name != "name" or _is_words(value)}
    return ReadMessage(ROLES[message["role"]], "\n".join(words_in(shown)))


def text_of(message: Mapping[str, Any]) -> str:
    """Return what a message says in text."""
    content = message.get("content") or ""
    if isinstance(content, str):
        return content
    return "\n".join(part["text"] for part in content if isinstance(part.get("text"), str))


def definitions_in(body: Mapping[str, Any]) -> tuple[ReadMessage, ...]:
    """Return what beside its messages a request shows to a model: a part for each tool and each further parameter."""
    found = []
    for name, value in body.items():
        if name in _UNREAD or name in _ASIDE:
            continue
        for each in value if isinstance(value, list) else (value,):
            words = "\n".join(words_in(each))
            if words.strip():
                found.append(ReadMessage("tool" if name in _DEFINITIONS else "document", words))
    return tuple(found)


def asides_in(body: Mapping[str, Any]) -> tuple[ReadMessage, ...]:
    """Return what is read each time of what a request says of itself, such as its metadata."""
    said = [value for name in sorted(_ASIDE & body.keys()) for value in words_in(body[name], "id")]
    return (ReadMessage("document", "\n".join(said)),) if said else ()


def layers_of(parts: Iterable[ReadMessage]) -> tuple[Layer, ...]:
    """Return parts as layers; those without words are left out."""
    return tuple(Layer(role=part.role, content=part.words) for part in parts if part.words.strip())


def merge_layers(layers: Sequence[Layer], most: int) -> tuple[Layer, ...]:
    """Return layers, at most so many: of a long conversation what its roles said first is one layer each.

    A client sends its whole history, however many messages that are, and a gateway that was started again reads all of
    it: refused, the conversation could never go on.
    """
    if len(layers) <= most:
        return tuple(layers)
    kept = max(0, most - len({layer.role for layer in layers}))
    first = len(layers) - kept
    said: dict[Role, list[str]] = {}
    for layer in layers[:first]:
        said.setdefault(layer.role, []).append(layer.content)
    return (*(Layer(role=role, content="\n".join(words)) for role, words in said.items()), *layers[first:])


def digest_of(parts: Sequence[ReadMessage]) -> bytes:
    """Return what tells a sequence of parts from any other."""
    return sha256(b"".join(part.digest for part in parts)).digest()


def words_in(value: Any, key: str = "") -> Iterator[str]:
    """Yield the words in a JSON value: texts at any depth, a schema's properties, and other names that are words.

    ``key`` is the name that the value has. Of an encoded file the text is yielded that it holds, if it does.

    Many endpoints show a model its tools as the JSON that they are, names that nobody knows included.
    """
    waiting = [(key, value)]
    while waiting:  # no recursion: a body may be nested deeply, and its depth must not multiply its length
        key, value = waiting.pop()
        if isinstance(value, str):
            if key not in _MARKS or _is_words(value):
                yield value
            elif said := _file_in(value):
                yield said
        elif isinstance(value, Mapping):
            names = sorted(value)  # clients write the same message in any order
            yield from names if key == "properties" else filter(_is_words, names)
            waiting += [("" if key == "properties" else name, value[name]) for name in reversed(names)]
        elif isinstance(value, list):
            waiting += [(key, inner) for inner in reversed(value)]


def is_mark(key: str, value: str) -> bool:
    """Whether the value of a key is a kind, an id, an address or a file, and no words."""
    return key in _MARKS and not _is_words(value)


def _is_words(value: Any) -> bool:
    return not isinstance(value, str) or any(map(str.isspace, value))


def _file_in(value: str) -> str:
    """Return the text that a mark holds: a file as a data URL, or in base64; empty where it is none."""
    begin, comma, data = value.partition(",")
    if begin.startswith("data:") and comma and not begin.endswith(";base64"):
        return unquote(data)
    run = (data if begin.startswith("data:") else value).rstrip("=").replace("-", "+").replace("_", "/")
    if len(run) < _LEAST_FILE or len(run) % 4 == 1:
        return ""
    try:
        said = text_in(base64.b64decode(run + "=" * (-len(run) % 4), validate=True))
    except binascii.Error:
        return ""
    return said
