"""Reads the stream of another model while it is forwarded: each event is sent after all texts in it were read. Pure.

An event is sent unchanged, byte for byte, or not at all. Each text that events add to is read through a window of its
own (``actors.contract.answers.window``): the content of each choice, the reasoning, the arguments of each tool call,
and any other text. If something is found, what was sent before cannot be taken back; the rest of the stream is dropped,
and an end written here replaces it.
"""

import re
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from actors.contract.answers.prompt import Prompt
from actors.contract.answers.window import STREAMED, Window
from actors.gateway.http.openai.answers import Decision
from schemas.intake.sse import DONE, Events, is_stream
from schemas.vocabulary.reflex import AnswerFault

MOST_TEXTS = 512
"""Most texts of an answer that are read separately; further ones are read as one."""

LONGEST_EVENT = 4 * 1024 * 1024
"""Bytes of one event: a longer one is not passed on."""

_PART = 4_096
"""Characters of a whole answer that are read at once."""

_END = re.compile(rb"\r\n\r\n|\n\r?\n|\r\r")
_MARKS = frozenset(
    {"id", "object", "model", "role", "type", "finish_reason", "system_fingerprint", "service_tier", "obfuscation"}
)
"""Keys whose values no model writes. Only short values without white space count."""

_LONGEST_MARK = 256

Place = tuple[str | int, ...]


class Watch(msgspec.Struct, frozen=True):
    """The findings for which answers are withheld, and which share of a system layer counts as giving it away."""

    faults: tuple[AnswerFault, ...] = STREAMED
    leak_share: float = 0.6


class _Held(msgspec.Struct, frozen=True):
    """An event that waits, and how far each text must be released before it may be sent."""

    raw: bytes
    needs: tuple[tuple[Window, int], ...]
    characters: int


class GuardedStream:
    """One stream.

    Attributes:
        found: The reason to withhold the rest.
        sent: Characters of its texts that were released.
    """

    def __init__(self, prompt: Prompt, watch: Watch) -> None:
        self.found: tuple[AnswerFault, ...] = ()
        self.sent = 0
        self._prompt = prompt
        self._watch = watch
        self._windows: dict[Place, Window] = {}
        self._buffer = b""
        self._held: deque[_Held] = deque()
        self._first: dict[str, Any] = {}
        self._choices: dict[int, None] = {}

    @property
    def is_read(self) -> bool:
        """Whether all was looked for here, at its end: signatures of orders are reflex's to find, in the record."""
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
            # One by one: what goes out may not depend on how many come at once.
            self.read(raw)
            out.append(self._let_go())
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
        needs: dict[Window, int] = {}
        characters = 0
        for event in (*events.take(raw), *events.end()):
            if event.data.strip() == DONE:
                continue
            for place, text in self.texts_of(event.data):
                window = self.window(place)
                window.take(text)
                needs[window] = window.taken
                characters += len(text)
                self.found = self.found or window.found
        self._held.append(_Held(raw, tuple(needs.items()), characters))

    def _let_go(self) -> bytes:
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

    def window(self, place: Place) -> Window:
        """Return what reads the text at a place."""
        known = place if place in self._windows or len(self._windows) < MOST_TEXTS else ()
        if known not in self._windows:
            self._windows[known] = Window(self._prompt, self._watch.faults, self._watch.leak_share)
        return self._windows[known]

    def texts_of(self, data: bytes) -> Iterator[tuple[Place, str]]:
        """Yield the texts of an event with their places; what is no JSON is a text as it stands."""
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
    """Return what speaks against a whole answer, however long it is; what is no JSON is one text."""
    guarded = GuardedStream(prompt, watch)
    if is_stream(body[:64]):
        for raw in split(body):
            guarded.read(raw)
        guarded.end()
        return guarded.found
    for place, text in guarded.texts_of(body):
        for at in range(0, len(text), _PART):
            guarded.window(place).take(text[at : at + _PART])
    guarded.end()
    return guarded.found


def texts_in(body: Any) -> Iterator[tuple[Place, str]]:
    """Yield the texts of a JSON value with their places, in its order; list items are identified by their ``index``."""
    waiting: list[tuple[Place, Any]] = [((), body)]
    while waiting:  # no recursion: a body may be nested deeply
        place, value = waiting.pop()
        if isinstance(value, str):
            is_mark = place and place[-1] in _MARKS and len(value) <= _LONGEST_MARK and not any(map(str.isspace, value))
            if value and not is_mark:
                yield place, value
        elif isinstance(value, Mapping):
            waiting += [((*place, name), inner) for name, inner in reversed(list(value.items()))]
        elif isinstance(value, list):
            waiting += [((*place, index_of(inner, at)), inner) for at, inner in reversed(list(enumerate(value)))]


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
