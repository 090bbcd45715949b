"""Reads the stream of another model while it is forwarded: each event is sent after all texts in it were read. Pure.

An event is sent unchanged, byte for byte, or not at all. Each text that events add to is read through a window of its
own (``actors.contract.answers.window``): the content of each choice, the reasoning, the arguments of each tool call,
and any other text. If something is found, what was sent before cannot be taken back; the rest of the stream is dropped
and replaced by an end that this module writes.
"""

import re
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from actors.contract.answers.prompt import Prompt
from actors.contract.answers.window import STREAMED, AnswerWindow
from actors.gateway.http.openai.answers import Decision
from schemas.intake.sse import DONE, Events, is_stream
from schemas.vocabulary.reflex import AnswerFault

MOST_TEXTS = 512
"""Most texts of an answer that are read separately; further ones are read as one."""

LONGEST_EVENT = 4 * 1024 * 1024
"""Most bytes of one event: a longer one is not sent on."""

_PIECE = 4_096
"""Characters of a whole answer that are read at once."""

# A blank line ends an event.
_END = re.compile(rb"\r\n\r\n|\n\r?\n|\r\r")
_NOT_TEXT = frozenset(
    {"id", "object", "model", "role", "type", "finish_reason", "system_fingerprint", "service_tier", "obfuscation"}
)
"""Keys whose values no model writes: they are not read, if they are short and without white space."""

_LONGEST_NOT_TEXT = 256
"""Most characters of such a value."""

TextPath = tuple[str | int, ...]
"""The position of a text in a JSON value: the keys and indexes that lead to it."""


class Watch(msgspec.Struct, frozen=True):
    """The findings for which answers are withheld, and which share of a system layer counts as giving it away."""

    faults: tuple[AnswerFault, ...] = STREAMED
    leak_share: float = 0.6


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
    """

    def __init__(self, prompt: Prompt, watch: Watch) -> None:
        self.found: tuple[AnswerFault, ...] = ()
        self.sent = 0
        self._prompt = prompt
        self._watch = watch
        self._windows: dict[TextPath, AnswerWindow] = {}
        self._buffer = b""
        self._held: deque[_Held] = deque()
        self._first: dict[str, Any] = {}
        self._choices: dict[int, None] = {}

    @property
    def is_read(self) -> bool:
        """Whether the stream was searched for everything. Instructions to a model are searched for by reflex only."""
        return "orders" not in self._watch.faults

    def take(self, piece: bytes) -> bytes:
        """Take a piece of the stream; return the bytes of it, and of earlier pieces, that may be sent now.

        Raises:
            ValueError: an event in it is too long.
        """
        self._buffer += piece
        *events, self._buffer = split(self._buffer)
        if len(self._buffer) > LONGEST_EVENT:
            raise ValueError(f"an event of the upstream's answer has more than {LONGEST_EVENT:,} bytes")
        out = []
        for raw in events:
            # One by one: what is sent must not depend on how many arrive at once.
            self.read(raw)
            out.append(self._release())
        return b"".join(out)

    def end(self) -> None:
        """End the stream: all that is still held has been read, and waits for the verdict on the rest."""
        if self._buffer:
            self.read(self._buffer)
            self._buffer = b""
        for window in self._windows.values():
            if not self.found:
                window.end()
                self.found = window.found

    def rest(self) -> bytes:
        """Release what is still held."""
        self.sent += sum(each.characters for each in self._held)
        rest = b"".join(each.raw for each in self._held)
        self._held.clear()
        return rest

    def refusal(self, notice: str, decision: Decision) -> bytes:
        """Return the events that end the stream in place of what is held; ``notice`` is sent if no text was sent."""
        delta = {"role": "assistant", "content": notice} if not self.sent else {}
        choices = [
            {"index": index, "delta": delta, "finish_reason": "content_filter"} for index in self._choices or (0,)
        ]
        known = {"id": f"chatcmpl-{decision.exchange}", "object": "chat.completion.chunk", **self._first}
        body = {**known, "choices": choices, "neuraxis": decision}
        self._held.clear()
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
                self.found = self.found or window.found
        self._held.append(_Held(raw, tuple(needs.items()), characters))

    def _release(self) -> bytes:
        out = []
        while (
            self._held
            and not self.found
            and all(window.released >= position for window, position in self._held[0].needs)
        ):
            held = self._held.popleft()
            self.sent += held.characters
            out.append(held.raw)
        return b"".join(out)

    def window(self, path: TextPath) -> AnswerWindow:
        """Return the window that reads the text at a path."""
        known = path if path in self._windows or len(self._windows) < MOST_TEXTS else ()
        if known not in self._windows:
            self._windows[known] = AnswerWindow(self._prompt, self._watch.faults, self._watch.leak_share)
        return self._windows[known]

    def texts_of(self, data: bytes) -> Iterator[tuple[TextPath, str]]:
        """Yield the texts of an event with their paths; data that is no JSON is one text."""
        try:
            body: Any = msgspec.json.decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            yield ("",), data.decode("utf-8", "replace")
            return
        if isinstance(body, dict):
            self._first = self._first or {name: body[name] for name in ("id", "created", "model") if name in body}
            for choice in body.get("choices") or ():
                if isinstance(choice, dict) and isinstance(index := choice.get("index", 0), int):
                    self._choices[index] = None
        yield from texts_in(body)


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


def texts_in(body: Any) -> Iterator[tuple[TextPath, str]]:
    """Yield the texts of a JSON value with their paths, in its order; list items are identified by their ``index``."""
    waiting: list[tuple[TextPath, Any]] = [((), body)]
    while waiting:  # no recursion: a body may be nested deeply
        path, value = waiting.pop()
        if isinstance(value, str):
            is_no_text = (
                path and path[-1] in _NOT_TEXT and len(value) <= _LONGEST_NOT_TEXT and not any(map(str.isspace, value))
            )
            if value and not is_no_text:
                yield path, value
        elif isinstance(value, Mapping):
            waiting += [((*path, name), inner) for name, inner in reversed(list(value.items()))]
        elif isinstance(value, list):
            waiting += [((*path, index_of(inner, at)), inner) for at, inner in reversed(list(enumerate(value)))]


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
