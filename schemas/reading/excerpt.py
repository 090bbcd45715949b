"""The part of a long text that is looked at: its beginning, its end, and what stands around telling words.

The parts are chosen where instructions to a model are put: at either end, and where words of instruction occur. The
whole text is searched for these words, as they are and in leetspeak, rot13 and backwards; of the places that have any,
those with the most different ones come first, since an order has several ("ignore", "instructions", "system prompt")
where other texts repeat one. Places with several that are not read all the same are counted: whoever floods a text with
such words can push others out, and is told on by that count. Texts up to ``WHOLE`` characters are read whole.
"""

import codecs
from functools import lru_cache
from typing import NamedTuple

WHOLE = 16_384
"""Characters up to which a text is read whole; of a longer one less is read."""

SEVERAL = 2
"""Different telling words that make a place one that should be read."""

_HEAD, _TAIL = 4_096, 3_072
_AROUND = 256
_MOST_PLACES = 16
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

LEET = str.maketrans("0134578@$", "oieastbas")
"""Leetspeak's digits and marks -> the letters they stand for."""

PLAIN_TELLING = tuple(word for word in TELLING if word.isascii() and sum(map(str.isalpha, word)) >= 6)
"""Telling words that are looked for in rewritings, too: shorter ones, and words of few letters, turn up by chance."""

_SOUGHT = (
    *TELLING,
    *(codecs.decode(word, "rot13") for word in PLAIN_TELLING),
    *(word[::-1] for word in PLAIN_TELLING),
)


class Excerpt(NamedTuple):
    """What is read of a text, and how many characters around telling words are not."""

    text: str
    unread: int


def excerpt(text: str) -> str:
    """Return a text of at most ``WHOLE`` characters, or the telling parts of a longer one, joined by line ends."""
    return excerpt_of(text).text


def excerpt_of(text: str) -> Excerpt:
    """Return what is read of a text, with what is left out of it."""
    return _of_long(text) if len(text) > WHOLE else Excerpt(text, 0)


@lru_cache(maxsize=4)
def _of_long(text: str) -> Excerpt:
    # Several actors read the same text, and searching it takes most of the time.
    last = len(text) - _TAIL
    places, unread = telling_places(text, _HEAD, last, _MOST_PLACES, 2 * _AROUND)
    parts = [text[:_HEAD]]
    end = _HEAD
    for place in places:
        if place + _AROUND <= end:
            continue
        start, end = max(end, place - _AROUND), min(place + _AROUND, last)
        parts.append(text[start:end])
    return Excerpt("\n".join((*parts, text[last:])), unread)


def telling_places(text: str, begin: int, end: int, most: int, stretch: int) -> tuple[list[int], int]:
    """Return where to read a text between two places: at most so many places, ascending, one for each stretch.

    Also how many characters of stretches with several telling words are not among them.
    """
    lowered = text.lower()
    if len(lowered) != len(text):
        lowered = text  # a few characters grow in lower case, and places would no longer fit
    lowered = lowered.translate(LEET)  # no telling word has a digit: plain ones are found all the same
    firsts: dict[int, int] = {}
    words: dict[int, int] = {}
    for word in _SOUGHT:
        place = lowered.find(word, begin, end)
        while place >= 0:
            number = (place - begin) // stretch
            words[number] = words.get(number, 0) + 1
            firsts[number] = min(place, firsts.get(number, place))
            place = lowered.find(word, begin + (number + 1) * stretch, end)
    if len(firsts) <= most:
        return sorted(firsts.values()), 0
    ranked: list[int] = []
    for count in sorted(set(words.values()), reverse=True):
        equal = sorted(number for number, found in words.items() if found == count)
        room = most - len(ranked)
        # Of equals some from everywhere: what comes first must not hide what comes later.
        ranked += equal if len(equal) <= room else [equal[(2 * n + 1) * len(equal) // (2 * room)] for n in range(room)]
        if len(ranked) >= most:
            break
    read = set(ranked)
    unread = sum(found >= SEVERAL and number not in read for number, found in words.items())
    return sorted(firsts[number] for number in read), unread * stretch
