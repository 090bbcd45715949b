"""Splits a text into words and phrases: normalised, hashed, with bounded work for any length.

Words are runs of letters, digits and underscores after case folding, without accents, compatibility forms and invisible
characters; look-alikes count as the letters that they look like, as in reflex's search for known threats. In scripts
without spaces between words each character is a word. A phrase ends at the end of a sentence or line, at a colon, a
quotation mark or a bracket. Of a text longer than :data:`MOST_CHARACTERS`, that many characters are read, half from its
beginning and half from its end.
"""

import re
import unicodedata
from functools import cache, lru_cache
from hashlib import blake2b
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from actors.contract.text.lookalikes import CONFUSABLES
from actors.intuition.index import Hashes

MOST_CHARACTERS = 256 * 1024
"""Most characters of a text that are read."""

_LONG_WORD = 64
"""Most letters of a word whose hash is cached."""

# Han, kana, Thai, Lao, Tibetan, Myanmar and Khmer.
_UNSPACED = (
    "\u0e01-\u0edf\u0f00-\u0fff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U0003ffff"
)
_WORD = re.compile(rf"[^\W{_UNSPACED}]+|[{_UNSPACED}]")
# A row of dots is looked at once, not again from each of its dots.
_PHRASE_END = re.compile(r"""[!?;:\n\r\v\f\x85\u2028\u2029"“”«»„()\[\]{}<>|。]+|(?<!\.)\.++(?=\s|$)""")
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff]"
)
# Ligatures of whole phrases; normalisation makes them many times as long.
_PHRASE_IN_ONE = re.compile("[\ufdfa\ufdfb]")
# Without letters they contain no words, and normalising thousands of combining marks in a row takes quadratic time.
_WORDLESS = re.compile(r"[^\w\s\x00-\x7f]{32,}")

_ACCENTS = re.compile("[\u0300-\u036f]+")
_LOOKALIKES = str.maketrans(CONFUSABLES)


class HashedText(NamedTuple):
    """A text in the form that is compared.

    Attributes:
        words: The hash of each word.
        phrases: Where each phrase begins in ``words``, and finally where the last one ends; phrases are not empty.
    """

    words: Hashes
    phrases: npt.NDArray[np.int64]


def read(text: str, most: int = MOST_CHARACTERS, most_words: int = MOST_CHARACTERS) -> HashedText:
    """Read a text, or ``most`` characters of it: half of them from its beginning, half from its end.

    Words beyond ``most_words`` are not read: a signature covers no more.
    """
    words: list[str] = []
    phrases = [0]
    for phrase in _PHRASE_END.split(normalise(text, most)):
        words += _WORD.findall(phrase)
        if len(words) > phrases[-1]:
            phrases.append(len(words))
        if len(words) >= most_words:
            del words[most_words:]
            phrases[-1] = len(words)
            break
    hashes = {word: _hash_of(word) for word in set(words)}
    return HashedText(np.fromiter(map(hashes.__getitem__, words), np.uint64, len(words)), np.array(phrases, np.int64))


def normalise(text: str, most: int = MOST_CHARACTERS) -> str:
    """Return the text that is split into words: shortened to what is read, normalised, case folded."""
    text = _cut(text, most)
    if text.isascii():
        return text.lower()
    text = _INVISIBLE.sub("", _PHRASE_IN_ONE.sub(" ", _WORDLESS.sub(" ", text)))
    text = unicodedata.normalize("NFKD", text).translate(_LOOKALIKES).casefold().translate(_LOOKALIKES)
    # Recomposed, so that Hangul syllables stay single characters.
    return _cut(unicodedata.normalize("NFC", _ACCENTS.sub("", text)), most)


def hash_of(text: str, kind: str) -> int:
    """Return the stable 64-bit hash of a text as something of a kind, such as a word; never 0."""
    # Copying a hash object that has the prefix takes half the time of making one.
    digest = _empty_hash(kind).copy()
    digest.update(text.encode("utf-8", "surrogatepass"))
    return int.from_bytes(digest.digest(), "little") or 1


@cache
def _empty_hash(kind: str) -> blake2b:
    return blake2b(digest_size=8, person=kind.encode())


def _hash_of(word: str) -> int:
    return _hash_of_short(word) if len(word) <= _LONG_WORD else hash_of(word, "word")


@lru_cache(maxsize=1 << 16)
def _hash_of_short(word: str) -> int:
    return hash_of(word, "word")


def _cut(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]}\n{text[len(text) - half :]}"
