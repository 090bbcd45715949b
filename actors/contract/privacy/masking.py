"""Replaces personal data with placeholders such as ``[EMAIL_1]``, and puts it back. Pure, except for the recogniser.

Within one prompt the same value has the same placeholder, numbered in the order of occurrence. So masking the same
prompt again with the same recogniser gives the same result.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator

from actors.contract.privacy.recognising import PersonalSpan
from schemas.effectors.model_calls import Masked, PersonalKind

Recognise = Callable[[str], tuple[PersonalSpan, ...]]
"""Finds the personal data in a text."""

_PLACEHOLDER = re.compile(r"\[[A-Z]{2,5}_\d{1,7}\]")
_PLACEHOLDER_BYTES = re.compile(_PLACEHOLDER.pattern.encode())
# The beginning of a placeholder at the end of a piece.
_PARTIAL_PLACEHOLDER = re.compile(r"\[(?:[A-Z]{0,5}|[A-Z]{2,5}_\d{0,7})$")
# Characters that JSON escapes.
_JSON_ESCAPED = re.compile(r"[\"\\\x00-\x1f]")


MOST_PUT_BACK = 256 * 1024
"""Most characters of values that are put back into one answer; further placeholders stay.

A value may be a whole key, of thousands of characters, and a model may repeat its placeholder as often as it likes.
"""


class Room:
    """The characters of values that may still be put back into one answer."""

    def __init__(self) -> None:
        self._left = MOST_PUT_BACK

    def take(self, value: str) -> bool:
        """Take the characters that a value needs; return whether enough were left."""
        if len(value) > self._left:
            return False
        self._left -= len(value)
        return True


class Masks:
    """The placeholders of one prompt.

    Args:
        recognise: A text -> the personal data in it.
        prompt: All of its texts; a placeholder that already occurs in one of them is not used.
    """

    def __init__(self, recognise: Recognise, prompt: Iterator[str]) -> None:
        self._recognise = recognise
        self._unusable = {each for text in prompt for each in _PLACEHOLDER.findall(text)}
        # Value -> placeholder, placeholder -> value, and the last number of each kind.
        self._names: dict[tuple[PersonalKind, str], str] = {}
        self._values: dict[str, str] = {}
        self._numbers: Counter[PersonalKind] = Counter()

    @property
    def counts(self) -> tuple[Masked, ...]:
        """The number of different values that were masked, by kind."""
        kinds = Counter(kind for kind, _ in self._names)
        return tuple(Masked(kind=kind, count=count) for kind, count in sorted(kinds.items()))

    def mask(self, text: str) -> str:
        """Return a text with placeholders for the personal data in it."""
        parts, at = [], 0
        for each in self._recognise(text):
            parts += [text[at : each.start], self._name(each.kind, text[each.start : each.end])]
            at = each.end
        return "".join([*parts, text[at:]])

    def restore(self, text: str, room: Room | None = None) -> str:
        """Return a text with its placeholders replaced by their values; unknown placeholders stay.

        ``room`` is that of the whole answer, if this is a part of one.
        """
        room = room or Room()

        def restored(found: re.Match[str]) -> str:
            value = self._values.get(found[0])
            return value if value is not None and room.take(value) else found[0]

        return _PLACEHOLDER.sub(restored, text)

    def restore_json(self, body: bytes, room: Room | None = None) -> bytes:
        """Return a JSON text with its placeholders replaced by their values, and everything else byte for byte.

        A placeholder may be in JSON within a text, such as the arguments of a tool call. A value with characters that
        JSON escapes is then not put back, since it would break that inner JSON. ``room``: as for :meth:`restore`.
        """
        room = room or Room()

        def restored(found: re.Match[bytes]) -> bytes:
            value = self._values.get(found[0].decode())
            if value is None or _JSON_ESCAPED.search(value) or not room.take(value):
                return found[0]
            return json.dumps(value, ensure_ascii=False)[1:-1].encode()

        return _PLACEHOLDER_BYTES.sub(restored, body)

    def _name(self, kind: PersonalKind, value: str) -> str:
        known = self._names.get((kind, value))
        if known is not None:
            return known
        name = ""
        while not name or name in self._unusable:
            self._numbers[kind] += 1
            name = f"[{kind.upper()}_{self._numbers[kind]}]"
        self._names[kind, value] = name
        self._values[name] = value
        return name


class StreamRestorer:
    """Puts values back into a text that arrives piece by piece: a placeholder may extend across pieces.

    ``room`` is that of the whole answer, if the text is one of several.
    """

    def __init__(self, masks: Masks, room: Room | None = None) -> None:
        self._masks = masks
        self._room = room or Room()
        self._held = ""

    @property
    def holds(self) -> bool:
        """Whether a placeholder may have begun."""
        return bool(self._held)

    def take(self, piece: str) -> str:
        """Add a piece; return the complete part of it and of what was held before."""
        text = self._held + piece
        partial = _PARTIAL_PLACEHOLDER.search(text)
        at = len(text) if partial is None else partial.start()
        self._held = text[at:]
        return self._masks.restore(text[:at], self._room)

    def end(self) -> str:
        """Return what is still held: it turned out not to be a placeholder."""
        held, self._held = self._held, ""
        return held
