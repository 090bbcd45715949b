"""Reads the stream of another model while it is forwarded: each event is sent after all texts in it were read. Pure.

An event is sent unchanged, byte for byte, or not at all. Each text that events add to is read through a window of its
own (``actors.contract.answers.window``): the content of each choice, the reasoning, the arguments of each tool call,
the tokens of ``logprobs``, comments between events, and any other text. A text that others have followed for a while,
such as the reasoning before the content, no longer holds them back. If something is found, what was sent before cannot
be taken back; the rest of the stream is dropped and replaced by an end that this module writes.
"""

import json
import re
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from actors.contract.answers.credentials import PromptSecrets
from actors.contract.answers.prompt import Prompt
from actors.contract.answers.window import STREAMED, WINDOW, AnswerWindow
from actors.gateway.http.openai.answers import Decision
from schemas.intake.sse import DONE, Events, is_stream
from schemas.vocabulary.reflex import AnswerFault

MOST_TEXTS = 512
"""Most texts of an answer that are read separately; further ones are read as one."""

LONGEST_EVENT = 4 * 1024 * 1024
"""Most bytes of one event: a longer one is not sent on."""

MOST_HELD = 16 * 1024 * 1024
"""Most bytes of a stream that are held back: the same limit as for a whole answer."""

_LONG_PROMPT = 30_000
"""Characters of system layers from which reading them takes more than a few milliseconds."""

_PIECE = 4_096
"""Characters of a whole answer that are read at once."""

# A blank line ends an event.
_END = re.compile(rb"\r\n\r\n|\n\r?\n|\r\r")
_LONGEST_END = 4
"""Bytes of the longest blank line, with the end of the line before it."""

_NOT_TEXT = frozenset(
    {"id", "object", "model", "role", "type", "finish_reason", "system_fingerprint", "service_tier", "obfuscation"}
)
"""Names of JSON fields whose values no model writes. Where such a value is short and without white space, it is read by
itself, and only searched for API keys."""

_LONGEST_NOT_TEXT = 256
"""Most characters of a value that is taken for no text."""

_SHORTEST_CREDENTIAL = 16
"""Fewest characters of a value, or of a name in JSON, that is searched for API keys."""

_PLAIN_NAME = re.compile(r"[A-Za-z_]{1,64}")
"""A name that cannot be an API key: those have digits."""

# Fields with the tokens of a text, and with other tokens that could have stood in their places.
_LOGPROBS, _ALTERNATIVES = "logprobs", "top_logprobs"

_LINE = re.compile(rb"\r\n|\n|\r")
_BLANKS = re.compile(r"[\s\x1e]*")
"""What may stand between JSON values that follow one another."""

TextPath = tuple[str | int, ...]
"""The position of a text in a JSON value: the keys and indexes that lead to it."""


class Watch(msgspec.Struct, frozen=True):
    """The faults that answers are withheld for, and the share of a system layer, in [0, 1], that counts as a leak."""

    faults: tuple[AnswerFault, ...] = STREAMED
    leak_share: float = 0.6


class EventCutter:
    """Cuts a stream into its events, from bytes that come in pieces of any size."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    @property
    def held(self) -> int:
        """The bytes that have come of an event that has not ended."""
        return len(self._buffer)

    def take(self, piece: bytes) -> list[bytes]:
        """Return the events that a piece completes, each with its closing blank line.

        Raises:
            ValueError: an event is longer than :data:`LONGEST_EVENT`.
        """
        self._buffer += piece
        # An event may come in thousands of pieces: only the new one is searched for its end, which may begin before it.
        searched = max(0, len(self._buffer) - len(piece) - _LONGEST_END)
        events = []
        if _END.search(self._buffer, searched) is not None:
            *events, rest = split(bytes(self._buffer))
            self._buffer = bytearray(rest)
        if len(self._buffer) > LONGEST_EVENT:
            raise ValueError(f"an event of the upstream's answer has more than {LONGEST_EVENT:,} bytes")
        return events

    def rest(self) -> bytes:
        """Return what has come of an event without an end, and forget it."""
        rest, self._buffer = bytes(self._buffer), bytearray()
        return rest


class _Held(msgspec.Struct, frozen=True):
    """An event that is held back, and how far each window must have released its text before it may be sent."""

    raw: bytes
    needs: tuple[tuple[AnswerWindow, int], ...]
    characters: int


class GuardedStream:
    """One stream, and how far it may be sent.

    Attributes:
        found: The reasons to withhold the rest.
        sent: Characters of its texts that were released.
        cutter: Cuts it into events.
    """

    def __init__(self, prompt: Prompt, watch: Watch) -> None:
        self.found: tuple[AnswerFault, ...] = ()
        self.sent = 0
        self._prompt = prompt
        self._watch = watch
        self._of_prompt: tuple[PromptSecrets, AnswerWindow] | None = None
        self._windows: dict[TextPath, AnswerWindow] = {}
        self._received = 0  # characters of all texts
        self._last_text_at: dict[AnswerWindow, int] = {}  # window -> ``_received`` after its latest text
        self.cutter = EventCutter()
        self._held: deque[_Held] = deque()
        self._held_bytes = 0
        self._first: dict[str, Any] = {}  # the fields of the first event that all events have in common
        self._choices: dict[int, None] = {}  # the indexes of the choices

    @property
    def is_read(self) -> bool:
        """Whether the stream was searched for all faults. Only reflex finds ``orders`` (attacks on what reads it)."""
        return "orders" not in self._watch.faults

    @property
    def is_prompt_long(self) -> bool:
        """Whether :meth:`read_prompt` takes more than a few milliseconds."""
        return sum(len(layer.content) for layer in self._prompt.layers if layer.role == "system") > _LONG_PROMPT

    def read_prompt(self) -> tuple[PromptSecrets, AnswerWindow]:
        """Return the secrets of the prompt, and a window that has read it; it is read once, perhaps in a thread."""
        if self._of_prompt is None:
            window = AnswerWindow(self._prompt, self._watch.faults, self._watch.leak_share)
            self._of_prompt = PromptSecrets(self._prompt), window
        return self._of_prompt

    def take(self, piece: bytes) -> bytes:
        """Take a piece of the stream; return the bytes of it, and of earlier pieces, that may be sent now.

        Raises:
            ValueError: an event in it is too long, or too much of the stream would be held back.
        """
        out = []
        for raw in self.cutter.take(piece):
            # One by one: what is sent must not depend on how many arrive at once.
            self.read(raw)
            out.append(self._release())
        if self._held_bytes > MOST_HELD and not self.found:
            raise ValueError(f"more than {MOST_HELD:,} bytes of the upstream's answer are held back until its end")
        return b"".join(out)

    def end(self) -> None:
        """End the stream: read what is left of it. The events that are still held wait for the verdict."""
        if rest := self.cutter.rest():
            self.read(rest)
        for window in self._windows.values():
            if not self.found:
                window.end()
                self.found = window.found

    def rest(self) -> bytes:
        """Release what is still held."""
        self.sent += sum(each.characters for each in self._held)
        rest = b"".join(each.raw for each in self._held)
        self._forget_held()
        return rest

    def refusal(self, notice: str, decision: Decision) -> bytes:
        """Return the events that end the stream in place of what is held; ``notice`` is sent if no text was sent."""
        delta = {"role": "assistant", "content": notice} if not self.sent else {}
        choices = [
            {"index": index, "delta": delta, "finish_reason": "content_filter"} for index in self._choices or (0,)
        ]
        known = {"id": f"chatcmpl-{decision.exchange}", "object": "chat.completion.chunk", **self._first}
        body = {**known, "choices": choices, "neuraxis": decision}
        self._forget_held()
        return b"data: " + msgspec.json.encode(body) + b"\n\ndata: " + DONE + b"\n\n"

    def read(self, raw: bytes) -> None:
        """Read an event, and hold it."""
        events = Events()
        needs: dict[AnswerWindow, int] = {}
        characters = 0
        for event in (*events.feed(raw), *events.end()):
            if event.data.strip() == DONE:
                continue
            for path, text in self.texts_of(event.data):
                window = self.window(path)
                window.take(text)
                needs[window] = window.received
                characters += len(text)
                self._received += len(text)
                self._last_text_at[window] = self._received
                self.found = self.found or window.found
        for name, text in self._lines_beside(raw):
            window = self.window(("", name))
            window.take(text)
            window.pause()  # a comment that keeps the connection open must not wait for the next one
            needs[window] = window.received
            self._last_text_at[window] = self._received
            self.found = self.found or window.found
        self._held.append(_Held(raw, tuple(needs.items()), characters))
        self._held_bytes += len(raw)

    def _forget_held(self) -> None:
        self._held.clear()
        self._held_bytes = 0

    def _lines_beside(self, raw: bytes) -> Iterator[tuple[str, str]]:
        """Yield the lines of an event that hold no data, such as comments, each with the name of its field."""
        for line in _LINE.split(raw):
            field, _, value = line.decode("utf-8", "replace").partition(":")
            if not line or field.strip() in ("data", "\ufeffdata") or line.lstrip()[:1] in (b"{", b"["):
                continue
            if field in ("event", "id", "retry") and _is_no_text(value.strip()):
                self._search_for_credentials(value)
            else:
                yield ("", value.removeprefix(" ")) if not field else ("line", line.decode("utf-8", "replace"))

    def _search_for_credentials(self, text: str) -> None:
        if "secret" in self._watch.faults and len(text) >= _SHORTEST_CREDENTIAL:
            secrets, _ = self.read_prompt()
            self.found = self.found or (("secret",) if secrets.found_in(text) else ())

    def _release(self) -> bytes:
        out = []
        while self._held and self._may_go(self._held[0]):
            held = self._held.popleft()
            self._held_bytes -= len(held.raw)
            self.sent += held.characters
            out.append(held.raw)
        return b"".join(out)

    def _may_go(self, held: _Held) -> bool:
        """Return whether the texts of an event were read far enough: every window has released its part of them.

        A window whose text others have followed for ``WINDOW`` characters is paused: it releases what it holds, unless
        that may be the beginning of a key or the like.
        """
        for window, position in held.needs:
            if window.released < position and self._received - self._last_text_at[window] >= WINDOW:
                window.pause()
                self.found = self.found or window.found
            if window.released < position:
                return False
        return not self.found

    def window(self, path: TextPath) -> AnswerWindow:
        """Return the window that reads the text at a path."""
        known = path if path in self._windows or len(self._windows) < MOST_TEXTS else ()
        if known not in self._windows:
            _, beside = self.read_prompt()
            self._windows[known] = AnswerWindow(self._prompt, self._watch.faults, self._watch.leak_share, beside)
        return self._windows[known]

    def texts_of(self, data: bytes) -> Iterator[tuple[TextPath, str]]:
        """Yield the texts of an event with their paths; data that is no JSON is one text."""
        values = json_values(data)
        if not values:
            yield ("",), data.decode("utf-8", "replace")
        for value in values:
            if isinstance(value, dict):
                known = {name: value[name] for name in ("id", "created", "model") if _is_encodable(value.get(name))}
                self._first = self._first or known
                for choice in value.get("choices") or ():
                    if isinstance(choice, dict) and isinstance(index := choice.get("index", 0), int):
                        self._choices[index] = None
            for path, text in _strings_in(value):
                if path is None:
                    self._search_for_credentials(text)
                else:
                    yield path, text


def faults_in(body: bytes, prompt: Prompt, watch: Watch) -> tuple[AnswerFault, ...]:
    """Return the faults of a whole answer of any length; an answer that is no JSON is one text."""
    guarded = GuardedStream(prompt, watch)
    if is_stream(body[:64]):
        for raw in split(body):
            guarded.read(raw)
        guarded.end()
        return guarded.found
    for path, text in guarded.texts_of(body):
        for at in range(0, len(text), _PIECE):
            guarded.window(path).take(text[at : at + _PIECE])
    guarded.end()
    return guarded.found


def json_values(data: bytes) -> list[Any]:
    """Return the JSON values that follow one another in some data, such as JSON lines; of a list, its items.

    If what follows the first value is no JSON, it is the last value, as a text. Data that does not begin with an object
    or a list has none.
    """
    try:
        whole: Any = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    else:
        return whole if isinstance(whole, list) else [whole] if isinstance(whole, dict) else []
    text, values, at = data.decode("utf-8", "replace").removeprefix("\ufeff"), list[Any](), 0
    while (blank := _BLANKS.match(text, at)) and (at := blank.end()) < len(text):
        try:
            value, at = json.JSONDecoder().raw_decode(text, at)
        except (ValueError, RecursionError):
            value, at = text[at:], len(text)
        if not values and not isinstance(value, dict | list):
            return []
        values += value if isinstance(value, list) else [value]
    return values


def texts_in(body: Any) -> Iterator[tuple[TextPath, str]]:
    """Yield the texts of a JSON value with their paths, in its order; list items are identified by their ``index``.

    The tokens of ``logprobs``, and their bytes, have one path for all: together they are a text. So are the first
    alternatives of all tokens, and so on.
    """
    return ((path, text) for path, text in _strings_in(body) if path is not None)


def _strings_in(body: Any) -> Iterator[tuple[TextPath | None, str]]:
    """Yield the texts of a JSON value as ``texts_in`` does; path None: no text, but a name or a value beside texts."""
    waiting: list[tuple[TextPath, Any]] = [((), body)]
    while waiting:  # no recursion: a body may be nested deeply
        path, value = waiting.pop()
        if isinstance(value, str):
            if value:
                # Half of a surrogate pair could not be recorded.
                text = value if value.isascii() else value.encode("utf-8", "replace").decode()
                yield None if path and path[-1] in _NOT_TEXT and _is_no_text(text) else path, text
        elif isinstance(value, Mapping):
            yield from (
                (None, name) for name in value if len(name) >= _SHORTEST_CREDENTIAL and not _PLAIN_NAME.fullmatch(name)
            )
            waiting += [((*path, name), inner) for name, inner in reversed(list(value.items()))]
        elif isinstance(value, list):
            is_tokens = _LOGPROBS in path and path[-1] != _ALTERNATIVES
            if is_tokens and value and all(isinstance(each, int) and 0 <= each < 256 for each in value):
                yield path, bytes(value).decode("utf-8", "replace")
                continue
            inner_values = [
                ((*path, "" if is_tokens else index_of(inner, at)), inner)
                for at, inner in enumerate(value)
                if isinstance(inner, str | dict | list)  # there may be a million numbers
            ]
            waiting += reversed(inner_values)


def _is_encodable(value: Any) -> bool:
    return isinstance(value, int) or (isinstance(value, str) and value.isascii())


def _is_no_text(value: str) -> bool:
    return len(value) <= _LONGEST_NOT_TEXT and not any(map(str.isspace, value))


def index_of(item: Any, at: int) -> int:
    """Return the identity of a list item across events: its ``index``, else its position ``at``."""
    index = item.get("index") if isinstance(item, Mapping) else None
    return index if isinstance(index, int) else at


def split(data: bytes) -> list[bytes]:
    """Return the events of a stream, each with its closing blank line, and the last, incomplete part."""
    found, at = [], 0
    for end in _END.finditer(data):
        found.append(data[at : end.end()])
        at = end.end()
    return [*found, data[at:]]
