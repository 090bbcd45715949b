"""Finds and decodes runs of base85, in any of its three alphabets.

The alphabets contain nearly every character of a document or a program, so that no pattern shows where a run begins or
ends. But other text decodes to bytes that are no text, neither in UTF-8 nor as Latin letters in UTF-16. The first
twenty characters are enough to see that. They are decoded for all positions where a run may begin, in one vectorised
pass. Where they decode to text, the run is decoded for as long as text comes out.
"""

import html
import re
from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt

from actors.contract.text.decoding.disguised_stretches import Undecoded
from actors.contract.text.decoding.plausibility import is_text

_GROUP = 5
"""Characters that stand for four bytes."""

_LEAST = 20
"""Fewest characters of a run, and those by which it is recognised: four whole groups."""

MOST_RUNS = 256
"""Most runs of a text that are decoded."""

_LONG_ENOUGH = 24
"""Fewest characters of a decoded text that has letters beyond ASCII and whose run goes on with something else.

A shorter one may be chance: other data, such as base64, has the same characters, and many bytes are letters in UTF-8.
"""

_PIECE = 1_280
"""Characters of a run that are decoded first; as long as the run goes on, this number is doubled."""

_NOT_IN_ALPHABET = 85
"""The digit of a character that is not in the alphabet."""

_RFC_1924 = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_ASCII85 = bytes(range(33, 118))
_Z85 = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_POWERS = np.array([85**4, 85**3, 85**2, 85, 1], dtype=np.int64)
_SHIFTS = np.array([24, 16, 8, 0], dtype=np.int64)
_IS_SPACE = np.isin(np.arange(256), np.frombuffer(b" \t\r\n\x0b\x0c", dtype=np.uint8))
# What may stand before a run: white space, or punctuation of a document.
_BEFORE = np.isin(np.arange(256), np.frombuffer(b"\"'`:=,;([{>|~", dtype=np.uint8)) | _IS_SPACE

_PRINTED = rb"[\x20-\x7e\t\r\n]"
# UTF-16 with Latin letters, little-endian or big-endian, with or without a byte order mark; or UTF-8.
_TEXT = re.compile(
    rb"(?:\xff\xfe)?(?:%b\0){2,}+|(?:\xfe\xff)?(?:\0%b){2,}+|"
    rb"(?:%b|[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3})*+" % ((_PRINTED,) * 3)
)
# A line end within a run: at least twenty characters before it, and no white space after it.
_LINE_END = re.compile(r"\n(?<=\S{20}\n)(?=\S)")
_ESCAPED_END = re.compile(r"\\n(?<=\S{20}\\n)(?=\S)")
_ESCAPED = re.compile(r"\\([\"'\\/])")
_ENTITY = re.compile(r"&(?:[lg]t|amp|quot|#\d{2}|#x[\da-fA-F]{2});")
# A block of lines without white space in them, quoted or indented, of which the first is long.
_LINES = re.compile(r"^[ \t>]*+\S{20,}+[ \t]*+\n(?:[ \t>]*+\S++[ \t]*+(?:\n|\Z))++", re.MULTILINE)
_MARKS = tuple(re.compile(mark, re.MULTILINE) for mark in (r"^[ \t]*+(?:> )*+", r"^[ \t]*+(?:>[ \t]?)*+"))
"""What a quoted or indented line begins with, read in two ways: a run may itself begin with ``>``."""

# A run written in groups of five characters. Each group ends at white space, so that a longer word after the run
# neither hides it nor has it searched again from each of its groups.
_GROUPS = re.compile(r"(?<!\S)\S{5}(?:\s\S{5}(?!\S)){3,}+(?:\s\S{2,4}(?!\S))?")

Digits = npt.NDArray[np.int64]


def _digits(alphabet: bytes) -> Digits:
    found = np.full(256, _NOT_IN_ALPHABET, dtype=np.int64)
    found[np.frombuffer(alphabet, dtype=np.uint8)] = np.arange(85)
    return found


_ALPHABETS = tuple(map(_digits, (_RFC_1924, _ASCII85, _Z85)))

_START, _NO_TEXT = 0, 1
"""States of the automaton in ``_states``: nothing is read yet; the bytes are no text."""


def _states() -> npt.NDArray[np.uint8]:
    """Return the automaton that recognises the beginning of a text in UTF-8 or UTF-16: (state, byte) -> next state.

    As a table it reads many positions at once.
    """
    # Of UTF-8: between characters; one, two, three bytes of a character to come; or a single Latin letter read so far.
    utf8, more, more2, more3, one = range(2, 7)
    # Of UTF-16, little-endian or big-endian: ``little`` and ``big_letter`` are between two letters, ``little_letter``
    # and ``big`` inside one; the marks are after the first byte of a byte order mark.
    little, little_letter, big, big_letter, little_mark, big_mark = range(7, 13)
    printed = [code for code in range(128) if re.fullmatch(_PRINTED, bytes([code]))]
    states = np.full((13, 256), _NO_TEXT, dtype=np.uint8)
    for state in (_START, one, utf8):
        states[state, printed] = utf8
        states[state, 0xC2:0xE0], states[state, 0xE0:0xF0], states[state, 0xF0:0xF5] = more, more2, more3
    for state, follows in ((more, utf8), (more2, more), (more3, more2)):
        states[state, 0x80:0xC0] = follows
    # UTF-16, little-endian or big-endian: one of the two bytes of a Latin letter is zero.
    states[_START, printed] = one
    states[one, 0] = little
    states[little, printed] = little_letter
    states[little_letter, 0] = little
    states[_START, 0] = big
    states[big, printed] = big_letter
    states[big_letter, 0] = big
    states[_START, 0xFF], states[little_mark, 0xFE] = little_mark, little
    states[_START, 0xFE], states[big_mark, 0xFF] = big_mark, big_letter
    return states


_STATES = _states()


def base85(text: str) -> Iterator[str | Undecoded]:
    """Yield what the runs of base85 in a text decode to: in one piece, over lines or by groups, plain or escaped."""
    for each in _rejoined(text.replace("\r\n", "\n")):
        yield from _runs(np.frombuffer(each.encode("ascii", "replace"), dtype=np.uint8))


def _rejoined(text: str) -> Iterable[str]:
    """Return a text as it is, without escapes, and with runs joined that are split over lines or into groups."""
    undone = html.unescape(text) if _ENTITY.search(text) else text
    if "\\" in undone:
        undone = _ESCAPED.sub(r"\1", _ESCAPED_END.sub("", undone))
    tried = [text, undone]
    if "\n" in text:
        tried += [_LINE_END.sub("", each) for each in tried]
        blocks = [match[0] for match in _LINES.finditer(undone)]
        tried += ["\n".join("".join(mark.sub("", block).split()) for block in blocks) for mark in _MARKS]
    tried.append("\n".join("".join(match[0].split()) for match in _GROUPS.finditer(undone)))
    return dict.fromkeys(tried)


def _runs(data: npt.NDArray[np.uint8]) -> Iterator[str | Undecoded]:
    starts = _possible_starts(data)
    if not len(starts):
        return
    for digits in _ALPHABETS:
        begins = starts
        for length in (_GROUP, _LEAST):  # the first group excludes nearly all positions
            begins = begins[_begins_as_text(digits[data[begins[:, None] + np.arange(length)]])]
        end, decoded = 0, 0
        for begin in begins.tolist():
            if begin < end:
                continue  # within a run
            if decoded == MOST_RUNS:
                yield Undecoded(_LEAST * (len(begins) - MOST_RUNS))
                break
            run_text, end = _decoded(data, begin, digits)
            decoded += 1
            ends = _is_over(digits[data[end : end + _GROUP]])
            if is_text(run_text) and (run_text.isascii() or len(run_text) >= _LONG_ENOUGH or ends):
                yield run_text


def _is_over(digits: Digits) -> bool:
    """Return whether no whole group comes next."""
    return len(digits) < _GROUP or bool((digits == _NOT_IN_ALPHABET).any())


def _possible_starts(data: npt.NDArray[np.uint8]) -> npt.NDArray[np.intp]:
    """Return where a run may begin: after white space or punctuation, and before enough characters without a space."""
    if len(data) < _LEAST:
        return np.empty(0, dtype=np.intp)
    spaces = np.concatenate(([0], np.cumsum(_IS_SPACE[data])))
    dense = spaces[_LEAST:] == spaces[:-_LEAST]
    follows = np.concatenate(([True], _BEFORE[data[:-1]]))[: len(dense)]
    return np.flatnonzero(dense & follows)


def _begins_as_text(windows: Digits) -> npt.NDArray[np.bool_]:
    """Return which rows decode to the beginning of a text."""
    groups = windows.reshape(len(windows), windows.shape[1] // _GROUP, _GROUP)
    values = groups @ _POWERS
    possible: npt.NDArray[np.bool_] = np.all(groups < _NOT_IN_ALPHABET, axis=(1, 2)) & np.all(values >> 32 == 0, axis=1)
    left = np.flatnonzero(possible)
    states = np.full(len(left), _START, dtype=np.uint8)
    for code in _bytes_of(values[left]).T:
        states = _STATES[states, code]
    possible[left] = states != _NO_TEXT
    return possible


def _bytes_of(values: Digits) -> npt.NDArray[np.uint8]:
    """Return the bytes that the groups of each row stand for."""
    return ((values[..., None] >> _SHIFTS) & 0xFF).astype(np.uint8).reshape(len(values), values.shape[1] * 4)


def _decoded(data: npt.NDArray[np.uint8], begin: int, digits: Digits) -> tuple[str, int]:
    """Return the text of a run that begins at ``begin``, and where the run ends."""
    size = _PIECE
    while True:
        run = digits[data[begin : begin + size]]
        ends = np.flatnonzero(run == _NOT_IN_ALPHABET)
        run = run[: ends[0]] if len(ends) else run
        whole = len(run) // _GROUP
        values = run[: whole * _GROUP].reshape(whole, _GROUP) @ _POWERS
        wrong = np.flatnonzero(values >> 32)
        count = int(wrong[0]) if len(wrong) else whole
        decoded = _bytes_of(values[None, :count])[0].tobytes()
        text = _text_in(decoded)
        if count * _GROUP < size or len(text) + _GROUP < len(decoded):  # the run ends within this piece
            last_group = run[count * _GROUP :].tolist()
            text = max((_text_in(decoded + rest) for rest in _last_group_readings(last_group)), key=len)
            return _as_text(text), begin + len(text) // 4 * _GROUP
        size *= 2


def _text_in(decoded: bytes) -> bytes:
    """Return the text that bytes begin with."""
    found = _TEXT.match(decoded)
    return found[0] if found else b""


def _as_text(data: bytes) -> str:
    if b"\0" in data:  # UTF-16 with Latin letters only
        return data.removeprefix(b"\xff\xfe").removeprefix(b"\xfe\xff").replace(b"\0", b"").decode("ascii")
    return data.decode("utf-8", "replace")


def _last_group_readings(run: list[int]) -> Iterator[bytes]:
    """Yield what the last, short group may decode to, for each length it may have: the document goes on after it."""
    yield b""
    for length in range(2, min(len(run), _GROUP - 1) + 1):
        value = 0
        for digit in (run[:length] + [84] * _GROUP)[:_GROUP]:
            value = value * 85 + digit
        if value < 1 << 32:
            yield value.to_bytes(_GROUP, "big")[1:length]
