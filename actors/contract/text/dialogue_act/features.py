"""A turn of talk as features: hashed n-grams of words and letters, of word shapes, and what the whole looks like.

What a text *is* (a request that can be met, one that lacks something, a courtesy) shows at its ends and in its manner.
So a long text is read at its opening and its close, and the cost does not grow with it. Words that few people use are
replaced by their shape in one family of n-grams: "a table at <Name>" says that something was named, whatever it is.

The hashes are integers computed here: the same in every process and on every machine.
"""

import re
import zlib
from collections.abc import Sequence
from functools import lru_cache

import msgspec
import numpy as np
import numpy.typing as npt

from actors.contract.text.folding import INVISIBLE, fold
from actors.contract.text.tokens import split_tokens

OPENING, CLOSING = 300, 100
"""Characters that are read of either end of a longer text."""

Keys = npt.NDArray[np.uint32]

_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?|\d+|[^\w\s]|\n+|_")
_LENGTHS = (1, 2, 3, 4, 6, 8, 11, 15, 20, 28, 40, 60, 90)
_SIZES = (60, 120, 240, 480, 1_000, 3_000)
_QUESTION = "?？؟;՞፧"
_LETTER_GRAMS = (2, 3, 4, 5)
_MIX_A, _MIX_B = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F)
_WORD_SALT = 3
_BEGIN, _END = "<s>", "</s>"
_RARE, _NAME, _NUMBER = "<x>", "<N>", "<9>"


class TurnFeatures(msgspec.Struct, frozen=True):
    """A text cut into words: folded, and the shape that stands for each where it is a rare word."""

    words: tuple[str, ...]
    shapes: tuple[str, ...]
    folded: str
    marks: tuple[str, ...]


def turn_of(text: str) -> TurnFeatures:
    """Return a text as its words and what the whole looks like."""
    clean = (text if text.isascii() else INVISIBLE.sub("", text)).strip()
    shown = clean if len(clean) <= OPENING + CLOSING else f"{clean[:OPENING]}\n{clean[-CLOSING:]}"
    words: list[str] = []
    shapes: list[str] = []
    capitals = numbers = 0
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
    marks = _marks(clean, shown, len(words), capitals, numbers)
    return TurnFeatures(tuple(words), tuple(shapes), " ".join(words), marks)


@lru_cache(maxsize=65536)
def _folded(found: str) -> tuple[str, ...]:
    return tuple(split_tokens(fold(found)))


def _marks(clean: str, shown: str, words: int, capitals: int, numbers: int) -> tuple[str, ...]:
    length = sum(words > bound for bound in _LENGTHS)
    size = sum(len(clean) > bound for bound in _SIZES)
    named = min(capitals, 3)
    counted = min(numbers, 2)
    specific = min(capitals + numbers, 3)
    marks = [f"length={length}", f"size={size}", f"named={named}", f"counted={counted}"]
    marks.append(f"length={length}&specific={specific}")
    marks.append(f"specific={specific}")
    if any(mark in shown for mark in _QUESTION):
        marks += ["asks", f"asks&length={length}", f"asks&specific={min(specific, 1)}"]
    if ":" in shown:
        marks.append("colon")
    if "\n" in shown:
        marks.append("lines")
    if any(mark in shown for mark in '"“”«»「『`'):
        marks.append("quotes")
    if any(mark in shown for mark in "{}=<>/\\|"):
        marks.append("code")
    return tuple(marks)


@lru_cache(maxsize=65536)
def symbol_key(symbol: str) -> int:
    """Return 64 bits of a symbol: two checksums, since either alone is too short to keep n-grams apart."""
    data = symbol.encode("utf-8", "surrogatepass")
    return zlib.crc32(data) << 32 | zlib.crc32(data[::-1], 0x5A17)


def word_keys(words: Sequence[str]) -> Keys:
    """Return the key of each word alone: what a set of common words is kept as."""
    return _finish(np.array([symbol_key(word) for word in words], dtype=np.uint64), _WORD_SALT)


def features_of(turn: TurnFeatures, common: Keys) -> Keys:
    """Return a turn's features, each once, ascending; ``common`` (ascending) are the words that are not replaced."""
    plain = np.array([symbol_key(each) for each in (_BEGIN, *turn.words, _END)], dtype=np.uint64)
    alone = _finish(plain[1:-1], _WORD_SALT)
    is_common = is_among(alone, common)
    # A word that is met everywhere stands for itself; any other for its shape.
    shaped = np.array([symbol_key(shape) for shape in turn.shapes], dtype=np.uint64)
    outline = plain.copy()
    outline[1:-1] = np.where(is_common, plain[1:-1], shaped)
    two, outline_two = _mix(plain[:-1], plain[1:]), _mix(outline[:-1], outline[1:])
    families = [
        alone,
        _finish(two, 5),
        _finish(_mix(two[:-1], plain[2:]), 7),
        _finish(outline_two, 11),
        _finish(_mix(outline_two[:-1], outline[2:]), 13),
        _finish(_mix(_mix(outline_two[:-2], outline[2:-1]), outline[3:]), 17),
        _finish(np.array([symbol_key(mark) for mark in turn.marks], dtype=np.uint64), 19),
        *_letters(turn.folded),
    ]
    # A page of calls less than ``np.unique`` makes.
    ordered = np.sort(np.concatenate(families))
    first = np.ones(len(ordered), dtype=np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    return ordered[first]


def _letters(folded: str) -> list[Keys]:
    """Return the n-grams of letters, across spaces, which count as letters at the edges of words."""
    codes = np.frombuffer(f" {folded} ".encode("utf-32-le", "surrogatepass"), dtype=np.uint32).astype(np.uint64)
    grams = codes
    found = []
    for size in _LETTER_GRAMS:
        if len(codes) < size:
            break
        grams = _mix(grams[:-1], codes[size - 1 :])
        found.append(_finish(grams, 100 + size))
    return found


def is_among(keys: Keys, among: Keys) -> npt.NDArray[np.bool_]:
    """Return which keys are among some ascending ones."""
    if not len(among):
        return np.zeros(len(keys), dtype=np.bool_)
    spots = np.minimum(np.searchsorted(among, keys), len(among) - 1)
    found: npt.NDArray[np.bool_] = among[spots] == keys
    return found


def _mix(first: npt.NDArray[np.uint64], second: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    mixed = (first * _MIX_A) ^ ((second + _MIX_B) * _MIX_B)
    folded: npt.NDArray[np.uint64] = mixed ^ (mixed >> np.uint64(29))
    return folded


def _finish(hashes: npt.NDArray[np.uint64], salt: int) -> Keys:
    mixed = (hashes ^ np.uint64(salt)) * _MIX_A
    mixed = (mixed ^ (mixed >> np.uint64(31))) * _MIX_B
    return (mixed >> np.uint64(32)).astype(np.uint32)
