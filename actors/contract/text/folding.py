"""Folding of characters: case, accents, compatibility forms, invisible characters and look-alikes.

The result is for comparing words, not for display. The work is linear in the length of the text.
"""

import re
import unicodedata
from functools import lru_cache

INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f"
    "\ufe00-\ufe0f\ufeff\U000e0000-\U000e007f]"
)
"""Invisible characters: joiners, direction marks, selectors, tags."""

SPACELESS = re.compile("[\u0e00-\u0e7f\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff]")
"""Letters of scripts without spaces between words: each letter is a token of its own."""

# Ligatures of whole phrases; their compatibility forms are many times as long.
_PHRASE_IN_ONE = re.compile("[\ufdfa\ufdfb]")
_ACCENTS = re.compile("[\u0300-\u036f]+")
_APOSTROPHES = re.compile("[\u2019\u2018\u02bc`]")

# Cyrillic, Greek, Armenian and phonetic letters that look like Latin ones, after case folding.
LOOKALIKES = str.maketrans(
    "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0456\u0455\u0458\u0501\u04bb\u044c\u0432\u043a\u043c\u043d\u0442"
    "\u04cf\u051b\u051d\u0261\u0251\u026a\u0131\u03b1\u03b5\u03bf\u03b9\u03ba\u03bd\u03c1\u03c4\u03c5\u03c7\u0570"
    "\u0585\u057d\u0578\u1d0f\u0280\u0274\u029c\u029f",
    "aeopcyxisjdhbbkmhtlqwgaiiaeoikvptuxhounornhl",
)
"""Folded letters of other scripts -> the Latin letters that they look like.

A short list, for the trained judges; ``lookalikes`` has the long one, for reflex and intuition.
"""

_NON_ASCII = re.compile("([^\x00-\x7f]+)")
_FEW, _FEW_IN_ALL = 4, 4_096
"""Runs of non-ASCII characters are folded one by one if they are few: a fourth of the text and 4,096 bytes at most."""

_CACHED_FROM = 128
"""From this many characters on, the result of folding a text is cached."""

_LATIN = re.compile("[a-z]")


def fold(text: str) -> str:
    """Return a text in lower case, without accents, compatibility forms and invisible characters."""
    if text.isascii():
        return text.lower()
    return _cached_text(text) if len(text) >= _CACHED_FROM else _folded(text)


def lower_in_place(text: str) -> str:
    """Return a text in lower case in which every character keeps its position.

    The Turkish capital I with a dot, alone among all characters, becomes two in lower case.
    """
    return text.replace("\u0130", "i").lower()


def _folded(text: str) -> str:
    # An ASCII character and its neighbours do not affect each other in folding: a few other runs are folded separately.
    if len(text.encode("utf-8", "replace")) - len(text) > min(len(text) // _FEW, _FEW_IN_ALL):
        return _folded_run(text)
    parts = _NON_ASCII.split(text)
    parts[::2] = (part.lower().replace("`", "'") for part in parts[::2])
    parts[1::2] = map(_cached_run, parts[1::2])
    return "".join(parts)


def _folded_run(text: str) -> str:
    text = unicodedata.normalize("NFKD", _PHRASE_IN_ONE.sub(" ", INVISIBLE.sub("", text)).casefold())
    # Recomposed, so that Hangul syllables stay single characters.
    return _APOSTROPHES.sub("'", unicodedata.normalize("NFC", _ACCENTS.sub("", text)))


_cached_run = lru_cache(maxsize=4096)(_folded_run)
# Cached: several classifiers read the same text one after another. Short texts, which are words, are not cached.
_cached_text = lru_cache(maxsize=8)(_folded)


@lru_cache(maxsize=65536)
def fold_word(word: str) -> str:
    """Return a folded word with its look-alikes replaced by Latin letters, if it mixes them with Latin letters."""
    if word.isascii() or not _LATIN.search(word):
        return word
    return word.translate(LOOKALIKES)
