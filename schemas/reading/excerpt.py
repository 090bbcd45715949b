"""The part of a long text that is looked at: its beginning, its end, and what stands around telling words.

Whatever is left out goes unread, so the parts are chosen where instructions to a model are put: at either end, and
where words of instruction occur, the first ``_MOST_PLACES`` of them. Whoever floods a text with such words can push
others out. Texts up to ``WHOLE`` characters are read whole.
"""

from collections.abc import Iterator

WHOLE = 32_768
"""Characters up to which a text is read whole; of a longer one less is read."""

SCANNED = 2_097_152
"""Characters searched for telling words; nothing beyond is looked at, save the end."""

_HEAD, _TAIL = 8_192, 6_144
_AROUND = 256
_MOST_PLACES = 24
# Searched one by one: that is many times faster than one regular expression of them all.
TELLING = (
    "ignor",
    "disregard",
    "forget",
    "override",
    "bypass",
    "vergiss",
    "olvid",
    "oubli",
    "dimentic",
    "\u5ffd\u7565",
    "\u7121\u8996",
    "\u0438\u0433\u043d\u043e\u0440\u0438\u0440",
    "system prompt",
    "instructions",
    "jailbreak",
    "unrestricted",
    "you are now",
    "from now on",
    "assistant:",
    "system:",
    "an ai ",
    "language model",
    "do anything",
    "api key",
    "password",
)


def excerpt(text: str) -> str:
    """Return a text of at most ``WHOLE`` characters, or the telling parts of a longer one, joined by line ends."""
    if len(text) <= WHOLE:
        return text
    last = len(text) - _TAIL
    parts = [text[:_HEAD]]
    end = _HEAD
    for place in sorted(_telling_places(text, min(last, SCANNED)))[:_MOST_PLACES]:
        if place + _AROUND <= end:
            continue
        start, end = max(end, place - _AROUND), min(place + _AROUND, last)
        parts.append(text[start:end])
    return "\n".join((*parts, text[last:]))


def _telling_places(text: str, until: int) -> Iterator[int]:
    """Yield where telling words begin behind the head, at most as many places of each as are used in all."""
    lowered = text.lower()
    if len(lowered) != len(text):
        lowered = text  # a few characters grow in lower case, and places would no longer fit
    for word in TELLING:
        place = _HEAD
        for _ in range(_MOST_PLACES):
            place = lowered.find(word, place, until)
            if place < 0:
                break
            yield place
            place += _AROUND
