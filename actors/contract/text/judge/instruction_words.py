"""Instruction words: words typical of instructions to a model, and where a text contains them, also rewritten.

A text of any length is searched in one pass, as one byte for each visible character. Accented letters, look-alikes and
other forms of a letter count as that letter; invisible characters are skipped. Text with spaces between its letters
(``i g n o r e``) is searched again without those spaces.
"""

import codecs
from functools import cache
from itertools import chain

import numpy as np
import numpy.typing as npt
from ahocorasick_rs import BytesAhoCorasick, Implementation

from actors.contract.text.folding import LOOKALIKES, fold, lower_in_place

Numbers = npt.NDArray[np.int64]

# English, and "forget" or "ignore" in German, Spanish, French, Italian, Chinese, Japanese and Russian.
INSTRUCTION_WORDS = (
    "ignor", "disregard", "forget", "override", "bypass", "vergiss", "olvid", "oubli", "dimentic", "\u5ffd\u7565",
    "\u7121\u8996", "\u0438\u0433\u043d\u043e\u0440\u0438\u0440", "system prompt", "instructions", "jailbreak",
    "unrestricted", "you are now", "from now on", "assistant:", "system:", "an ai ", "language model",
    "do anything", "api key", "password",
)  # fmt: skip

LEET = str.maketrans("0134578@$", "oieastbas")
"""Digits and symbols of leetspeak -> the letters that they replace."""

LEET_MARKS = tuple(map(chr, LEET))
"""These digits and symbols."""

PLAIN_INSTRUCTION_WORDS = tuple(
    word for word in INSTRUCTION_WORDS if word.isascii() and sum(map(str.isalpha, word)) >= 6
)
"""Instruction words that are also searched for in rewritings; shorter ones would match there by chance."""

WORDS = (
    *INSTRUCTION_WORDS,
    *(codecs.decode(word, "rot13") for word in PLAIN_INSTRUCTION_WORDS),
    *(word[::-1] for word in PLAIN_INSTRUCTION_WORDS),
)
"""The search terms: instruction words, then the plain ones in rot13, then reversed. Leetspeak is undone first."""

SPACED_LEAST = 6
"""At least this many single characters in a row, each followed by a space, are read as one word."""

_ASCII = tuple((number, word.encode()) for number, word in enumerate(WORDS) if word.isascii())
_OTHERS = tuple((number, word) for number, word in enumerate(WORDS) if not word.isascii())
_NUMBERS = np.array([number for number, _ in _ASCII])
_LEET_BYTES = bytes.maketrans(*("".join(map(chr, codes)).encode() for codes in (LEET.keys(), LEET.values())))
_SPACE = ord(" ")
_TO_X_AND_SPACE = bytes(code if code == _SPACE else ord("x") for code in range(256))
_RUN = b" x" * SPACED_LEAST + b" "
"""A run of single characters, with every character but the space as ``x`` (``_TO_X_AND_SPACE``)."""

_LETTER_FORMS = (
    (0x0000, 0x2500),
    (0x2C60, 0x2E00),
    (0x3000, 0x3040),
    (0xA640, 0xA800),
    (0xAB30, 0xAB70),
    (0xFE00, 0x10000),
    (0x1D400, 0x1D800),
    (0x1F100, 0x1F200),
    (0xE0000, 0xE0080),
)
"""Ranges with other forms of letters, look-alikes, accents and invisible characters; ascending, end excluded."""


@cache
def _automaton() -> BytesAhoCorasick:
    # The table of about sixty words is small: two nanoseconds per character, several times as fast as without a table.
    return BytesAhoCorasick([word for _, word in _ASCII], implementation=Implementation.DFA)


def instruction_words_in(text: str, begin: int, end: int) -> tuple[Numbers, Numbers]:
    """Return where instruction words begin between two positions of a text, and the index of each in ``WORDS``."""
    plain = text.isascii()
    letters, origins = (text[begin:end].lower().encode("ascii"), None) if plain else _letters(text[begin:end])
    # Instruction words contain no digits, so undoing leetspeak does not hide plain ones.
    data = letters.translate(_LEET_BYTES)
    starts, words = _search(data)
    kept = _without_spaces(data)
    if len(kept):
        in_kept, spaced = _search(np.frombuffer(data, dtype=np.uint8)[kept].tobytes())
        starts, words = np.concatenate((starts, kept[in_kept])), np.concatenate((words, spaced))
    if origins is not None:
        starts = origins[starts]
    if not plain:
        lowered = lower_in_place(text)
        others = [(start, number) for number, word in _OTHERS for start in _starts_of(lowered, word, begin, end)]
        more = np.array(others, dtype=np.int64).reshape(-1, 2)
        starts, words = np.concatenate((starts, more[:, 0] - begin)), np.concatenate((words, more[:, 1]))
    return starts + begin, words


def _letters(text: str) -> tuple[bytes, Numbers | None]:
    """Return the visible characters of a text as letters, and their positions (None if all are visible)."""
    table = _letter_table()
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    letters = table.take(codes, mode="clip")
    shown = np.flatnonzero(letters)
    return (letters.tobytes(), None) if len(shown) == len(letters) else (letters[shown].tobytes(), shown)


@cache
def _letter_table() -> npt.NDArray[np.uint8]:
    """Return for each character its ASCII letter: 0 for invisible characters, ``?`` for all others."""
    table = np.full(_LETTER_FORMS[-1][1] + 1, ord("?"), dtype=np.uint8)
    for first, last in _LETTER_FORMS:
        for code in range(first, last):
            folded = fold(chr(code)).translate(LOOKALIKES)
            letter = folded or "\0"
            table[code] = ord(letter) if len(letter) == 1 and letter.isascii() else ord("?")
    return table


def has_reversed(squeezed: bytes) -> bool:
    """Return whether a text in lower case without white space contains a reversed instruction word."""
    return bool(_backwards().find_matches_as_indexes(squeezed.translate(_LEET_BYTES)))


def may_instruct(text: str) -> bool:
    """Return whether a text contains any of ``PLAIN_INSTRUCTION_WORDS``, in upper or lower case."""
    return bool(_forwards().find_matches_as_indexes(text.lower().encode("ascii", "replace")))


@cache
def _forwards() -> BytesAhoCorasick:
    return BytesAhoCorasick([word.encode() for word in PLAIN_INSTRUCTION_WORDS], implementation=Implementation.DFA)


@cache
def _backwards() -> BytesAhoCorasick:
    words = ["".join(word.split())[::-1].encode() for word in PLAIN_INSTRUCTION_WORDS]
    return BytesAhoCorasick(words, implementation=Implementation.DFA)


def _search(data: bytes) -> tuple[Numbers, Numbers]:
    found = _automaton().find_matches_as_indexes(data, overlapping=True)
    if not found:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    rows = np.fromiter(chain.from_iterable(found), dtype=np.int64, count=3 * len(found)).reshape(-1, 3)
    return rows[:, 1], _NUMBERS[rows[:, 0]]


def _starts_of(text: str, word: str, begin: int, end: int) -> list[int]:
    starts = []
    start = text.find(word, begin, end)
    while start >= 0:
        starts.append(start)
        start = text.find(word, start + len(word), end)
    return starts


def _without_spaces(data: bytes) -> Numbers:
    """Return the positions of the characters that remain when text with spaced letters is read without those spaces.

    One space of a wider gap is kept: the writer may have separated words by such gaps.
    """
    padded = b" " + data + b" "
    if _RUN not in padded.translate(_TO_X_AND_SPACE):
        return np.zeros(0, dtype=np.int64)
    space = np.frombuffer(padded, dtype=np.uint8) == _SPACE
    # A single character: spaces on both sides.
    single = ~space[1:-1] & space[:-2] & space[2:]
    # Two single characters with one space between them.
    paired = single[:-2] & single[2:]
    run = paired[: max(0, len(paired) - 2 * (SPACED_LEAST - 2))].copy()
    for step in range(1, SPACED_LEAST - 1):
        run &= paired[2 * step : 2 * step + len(run)]
    begins = np.flatnonzero(run)
    if not len(begins):
        return begins
    spaced = np.zeros(len(data), dtype=bool)
    for step in range(2 * SPACED_LEAST - 1):
        spaced[begins + step] = True
    blank = space[1:-1]
    # Remove the space between two single characters, and all but the first space of wider gaps beside them.
    kept = spaced & ~blank
    after = np.flatnonzero(kept) + 1
    after = after[after + 1 < len(data)]
    kept[after[blank[after] & blank[after + 1]]] = True
    return np.flatnonzero(kept)
