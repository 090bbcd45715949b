"""Hides personal data from a model: placeholders in the request, and the data put back into the answer.

A request without personal data is forwarded byte for byte. Otherwise its body is written again with placeholders. An
event of a stream is written again only if it contains a part of a placeholder.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from actors.contract.privacy.masking import Masks, Room, StreamRestorer
from actors.contract.privacy.recognising import found_in, recogniser
from actors.contract.privacy.settings import PrivacySettings
from actors.gateway.external_events import InvalidInput
from actors.gateway.http.openai.chunks import event_of
from actors.gateway.http.openai.messages import is_not_text
from actors.gateway.http.openai.passthrough.guarding import MOST_TEXTS, EventCutter, TextPath, index_of
from schemas.effectors.model_calls import Masked
from schemas.intake.sse import DONE, Events

_HEAD = ("id", "object", "created", "model")
"""Fields that every event of a stream has in common. An event that is written here, with the rest of a text that was
held back, copies them from the stream's first event."""

_NOT_SHOWN = frozenset({"model", "user", "metadata", "safety_identifier", "prompt_cache_key"})
"""Parameters that are not shown to a model, so they are not masked."""


class MaskedRequest:
    """One request with its personal data masked; false if it has none.

    Attributes:
        body: The bytes that are sent.
        cutter: Cuts the answer's stream into events.

    Raises:
        InvalidInput: it is nested too deeply.
    """

    def __init__(self, body: bytes, settings: PrivacySettings) -> None:
        self.body = body
        # The texts in which a placeholder may have begun. All others would only take memory, and time for each event.
        self._restoring: dict[TextPath, StreamRestorer] = {}
        self._room = Room()  # how much personal data may still be put back into the answer
        self.cutter = EventCutter()
        self._first: dict[str, Any] = {}
        parsed: Any = msgspec.json.decode(body)
        self._masks = Masks(lambda text: found_in(text, settings.regions), _texts(parsed))
        try:
            masked = {
                name: value if name in _NOT_SHOWN else _masked(name, value, self._masks)
                for name, value in parsed.items()
            }
            if self._masks.counts:
                self.body = msgspec.json.encode(masked)
        except RecursionError:
            raise InvalidInput("the body is nested too deeply to mask personal data in it: send it flatter") from None

    def __bool__(self) -> bool:
        return bool(self._masks.counts)

    @property
    def record_fields(self) -> tuple[tuple[Masked, ...], str]:
        """What was masked and which recogniser found it, for the record."""
        return self._masks.counts, recogniser()

    def restored(self, body: bytes) -> bytes:
        """Return a whole answer with the data put back."""
        return self._masks.restore_json(body, self._room)

    def take(self, piece: bytes) -> bytes:
        """Take a piece of a stream; return its complete events, with the data put back.

        Raises:
            ValueError: an event in it is too long.
        """
        return b"".join(map(self._event, self.cutter.take(piece)))

    def end(self) -> bytes:
        """Return the rest of a stream."""
        rest = self.cutter.rest()
        return (self._event(rest) if rest else b"") + self._flushed()

    def _event(self, raw: bytes) -> bytes:
        # A placeholder begins with a bracket, other than that of a list in JSON.
        if b"[" not in raw.replace(b"[{", b"").replace(b"[]", b"") and not self._restoring:
            return raw
        events = Events()
        [data] = [event.data for event in (*events.feed(raw), *events.end())] or [b""]
        if data.strip() == DONE:
            return self._flushed() + raw
        try:
            body: Any = msgspec.json.decode(data)
            restored = self._restored((), body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return self._masks.restore_json(raw, self._room)
        if isinstance(body, dict):
            self._first = self._first or {name: body[name] for name in _HEAD if name in body}
        before = self._flushed() if b'"finish_reason"' in data and _is_over(body) else b""
        after = self._flushed() if len(self._restoring) > MOST_TEXTS else b""
        return before + (raw if restored == body else event_of(restored)) + after

    def _restored(self, path: TextPath, value: Any) -> Any:
        """Return a JSON value with the data put back into its texts; the end of a text may be held back."""
        if isinstance(value, str):
            if is_not_text(str(path[-1]) if path else "", value):
                return value
            restorer = self._restoring.pop(path, None) or StreamRestorer(self._masks, self._room)
            text = restorer.take(value)
            if restorer.holds:
                self._restoring[path] = restorer
            return text
        if isinstance(value, Mapping):
            return {name: self._restored((*path, name), inner) for name, inner in value.items()}
        if isinstance(value, list):
            return [self._restored((*path, index_of(inner, at)), inner) for at, inner in enumerate(value)]
        return value

    def _flushed(self) -> bytes:
        """Return events for held text that turned out not to be a placeholder."""
        held, self._restoring = self._restoring, {}
        return b"".join(event_of({**self._first, **_at(path, each.end())}) for path, each in held.items())


def _texts(value: Any) -> Iterator[str]:
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, str):
            yield each
        elif isinstance(each, Mapping):
            waiting += each.values()
        elif isinstance(each, list):
            waiting += each


def _masked(key: str, value: Any, masks: Masks) -> Any:
    if isinstance(value, str):
        return value if is_not_text(key, value) else masks.mask(value)
    if isinstance(value, Mapping):
        return {name: _masked(name, inner, masks) for name, inner in value.items()}
    return [_masked(key, inner, masks) for inner in value] if isinstance(value, list) else value


def _at(path: TextPath, text: str) -> dict[str, Any]:
    """Return the JSON object that has a text at a path, and nothing else."""
    value: Any = text
    for step in reversed(path):
        if isinstance(step, int):
            value = [{"index": step, **value}] if isinstance(value, dict) else [value]
        else:
            value = {step: value}
    return value if isinstance(value, dict) else {}


def _is_over(body: Any) -> bool:
    choices = body.get("choices") if isinstance(body, dict) else None
    return any(isinstance(each, dict) and each.get("finish_reason") for each in choices or ())
