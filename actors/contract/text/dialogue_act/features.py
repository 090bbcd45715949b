"""The features of a turn in a dialogue: hashed n-grams of words, letters and word shapes, and a few of the whole text.

The kind of a turn (a request that can be answered, one that lacks something, a courtesy) shows at its beginning and end
and in its style. So only the beginning and end of a long text are read, and the cost does not grow with its length. In
some n-grams a rare word is replaced by its shape: "a table at <Name>" says that something was named, whatever its name.
A *text feature* is one of the whole text, such as its length in steps or that it has a question mark.

The hashes are integers computed here: the same in every process and on every machine.
"""

import re
from collections.abc import Sequence
from functools import lru_cache

import msgspec
import numpy as np
import numpy.typing as npt

from actors.contract.text.folding import INVISIBLE, fold
from actors.contract.text.hashing import Keys, finish, mix, symbol_hash
from actors.contract.text.tokens import split_tokens

OPENING, CLOSING = 300, 100
"""Characters that are read at either end of a longer text."""


_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?|\d+|[^\w\s]|\n+|_")
# Upper limits of the classes into which numbers of words and of characters are put, for features of the whole text.
_LENGTHS = (1, 2, 3, 4, 6, 8, 11, 15, 20, 28, 40, 60, 90)
_SIZES = (60, 120, 240, 480, 1_000, 3_000)
_QUESTION = "?？؟;՞፧"
_LETTER_GRAMS = (2, 3, 4, 5)
"""Lengths of the n-grams of letters."""

_WORD_SALT = 3
"""Added to the hashes of words, so that they differ from those of other features."""

# Symbols for the ends of the text, and shapes of words: rare, a name, a number.
_BEGIN, _END = "<s>", "</s>"
_RARE, _NAME, _NUMBER = "<x>", "<N>", "<9>"


class TurnFeatures(msgspec.Struct, frozen=True):
    """A text split into words: each word folded, and the shape that replaces it if it is rare.

    ``folded`` are the words joined by spaces. ``text_features`` describe the whole text: its length and size in steps
    (``length=3``), how many names and numbers it has, and whether it has a question mark, code or the like (``asks``,
    ``code``).
    """

    words: tuple[str, ...]
    shapes: tuple[str, ...]
    folded: str
    text_features: tuple[str, ...]


def turn_of(text: str) -> TurnFeatures:
    """Return a text as words and features of the whole."""
    clean = (text if text.isascii() else INVISIBLE.sub("", text)).strip()
    shown = clean if len(clean) <= OPENING + CLOSING else f"{clean[:OPENING]}\n{clean[-CLOSING:]}"
    words: list[str] = []
    shapes: list[str] = []
    capitals = numbers = 0  # names and numbers
    cased = shown != shown.upper()
    opening = True
    for found in _WORD.findall(shown):
        for word in _folded(found):
            shape = _RARE
            if word.isdecimal():
                shape, numbers = _NUMBER, numbers + 1
            elif cased and found[0].isupper() and not opening and found not in ("I", "I'm", "I'd", "I'll", "I've"):
                shape, capitals = _NAME, capitals + 1
            words.append(word)
            shapes.append(shape)
        opening = found[0] in ".!?。？！\n:"
    text_features = _text_features(clean, shown, len(words), capitals, numbers)
    return TurnFeatures(tuple(words), tuple(shapes), " ".join(words), text_features)


@lru_cache(maxsize=65536)
def _folded(text: str) -> tuple[str, ...]:
    return tuple(split_tokens(fold(text)))


def _text_features(clean: str, shown: str, words: int, capitals: int, numbers: int) -> tuple[str, ...]:
    length = sum(words > bound for bound in _LENGTHS)
    size = sum(len(clean) > bound for bound in _SIZES)
    named = min(capitals, 3)
    counted = min(numbers, 2)
    specific = min(capitals + numbers, 3)
    text_features = [f"length={length}", f"size={size}", f"named={named}", f"counted={counted}"]
    text_features.append(f"length={length}&specific={specific}")
    text_features.append(f"specific={specific}")
    if any(mark in shown for mark in _QUESTION):
        text_features += ["asks", f"asks&length={length}", f"asks&specific={min(specific, 1)}"]
    if ":" in shown:
        text_features.append("colon")
    if "\n" in shown:
        text_features.append("lines")
    if any(mark in shown for mark in '"“”«»「『`'):
        text_features.append("quotes")
    if any(mark in shown for mark in "{}=<>/\\|"):
        text_features.append("code")
    return tuple(text_features)


def word_keys(words: Sequence[str]) -> Keys:
    """Return the key of each word; a set of common words is stored in this form."""
    return finish(np.array([symbol_hash(word) for word in words], dtype=np.uint64), _WORD_SALT)


def features_of(turn: TurnFeatures, common: Keys) -> Keys:
    """Return a turn's features, each once, ascending; words in ``common`` (ascending) are not replaced by a shape."""
    plain = np.array([symbol_hash(each) for each in (_BEGIN, *turn.words, _END)], dtype=np.uint64)
    word_features = finish(plain[1:-1], _WORD_SALT)
    is_common = is_among(word_features, common)
    # A common word stands for itself, any other word is replaced by its shape.
    shaped = np.array([symbol_hash(shape) for shape in turn.shapes], dtype=np.uint64)
    outline = plain.copy()
    outline[1:-1] = np.where(is_common, plain[1:-1], shaped)
    two, outline_two = mix(plain[:-1], plain[1:]), mix(outline[:-1], outline[1:])
    kinds = [
        word_features,
        finish(two, 5),
        finish(mix(two[:-1], plain[2:]), 7),
        finish(outline_two, 11),
        finish(mix(outline_two[:-1], outline[2:]), 13),
        finish(mix(mix(outline_two[:-2], outline[2:-1]), outline[3:]), 17),
        finish(np.array([symbol_hash(each) for each in turn.text_features], dtype=np.uint64), 19),
        *_letters(turn.folded),
    ]
    # Faster than ``np.unique``, whose many internal calls dominate at this size.
    ordered = np.sort(np.concatenate(kinds))
    first = np.ones(len(ordered), dtype=np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    return ordered[first]


def _letters(folded: str) -> list[Keys]:
    """Return the n-grams of letters, also across spaces; a space counts as a letter at the edge of a word."""
    codes = np.frombuffer(f" {folded} ".encode("utf-32-le", "surrogatepass"), dtype=np.uint32).astype(np.uint64)
    grams = codes
    found = []
    for size in _LETTER_GRAMS:
        if len(codes) < size:
            break
        grams = mix(grams[:-1], codes[size - 1 :])
        found.append(finish(grams, 100 + size))
    return found


def is_among(keys: Keys, among: Keys) -> npt.NDArray[np.bool_]:
    """Return for each key whether it is in ``among`` (ascending)."""
    if not len(among):
        return np.zeros(len(keys), dtype=np.bool_)
    nearest = np.minimum(np.searchsorted(among, keys), len(among) - 1)
    found: npt.NDArray[np.bool_] = among[nearest] == keys
    return found
