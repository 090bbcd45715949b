"""Runs of base85 in any of its alphabets, found by what they decode to.

Their alphabets have nearly every sign of a document or a program, so that no search tells where a run begins and ends.
But what is none decodes to bytes that are no text, neither of UTF-8 nor of Latin letters in UTF-16: the first twenty
signs tell, and are looked at for all places where a run may begin in one go. From such a place on a run is decoded for
as long as text comes out.
"""

import html
import re
from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt

from actors.contract.text.decoding.plausibility import is_text
from actors.contract.text.decoding.undecoded import Undecoded

_GROUP = 5
_LEAST = 20
"""Signs by which a run is told, whole groups."""

MOST_RUNS = 256
"""Runs of a text that are decoded."""

_SURE = 24
"""Characters from which text with letters beyond ASCII is no chance find where its run goes on and is no text any more:
other data, such as base64, is also made of these signs, and many bytes are letters of UTF-8."""

_PIECE = 1_280
"""Signs of a run that are decoded in one go, at first: how long it is, only its end tells."""

_NONE = 85
_RFC_1924 = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_ASCII85 = bytes(range(33, 118))
_Z85 = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_POWERS = np.array([85**4, 85**3, 85**2, 85, 1], dtype=np.int64)
_SHIFTS = np.array([24, 16, 8, 0], dtype=np.int64)
_IS_SPACE = np.isin(np.arange(256), np.frombuffer(b" \t\r\n\x0b\x0c", dtype=np.uint8))
_BEFORE = np.isin(np.arange(256), np.frombuffer(b"\"'`:=,;([{>|~", dtype=np.uint8)) | _IS_SPACE

_PRINTED = rb"[\x20-\x7e\t\r\n]"
_TEXT = re.compile(
    rb"(?:\xff\xfe)?(?:%b\0){2,}+|(?:\xfe\xff)?(?:\0%b){2,}+|"
    rb"(?:%b|[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3})*+" % ((_PRINTED,) * 3)
)
_LINE_END = re.compile(r"\n(?<=\S{20}\n)(?=\S)")
_ESCAPED_END = re.compile(r"\\n(?<=\S{20}\\n)(?=\S)")
_ESCAPED = re.compile(r"\\([\"'\\/])")
_ENTITY = re.compile(r"&(?:[lg]t|amp|quot|#\d{2}|#x[\da-fA-F]{2});")
_LINES = re.compile(r"^[ \t>]*+\S{20,}+[ \t]*+\n(?:[ \t>]*+\S++[ \t]*+(?:\n|\Z))++", re.MULTILINE)
_MARKS = tuple(re.compile(mark, re.MULTILINE) for mark in (r"^[ \t]*+(?:> )*+", r"^[ \t]*+(?:>[ \t]?)*+"))
"""What a quoted or indented line begins with; a sign of the run may look like it."""

_GROUPS = re.compile(r"(?<!\S)\S{5}(?:\s\S{5}){3,}+(?:\s\S{2,4})?(?!\S)")

Digits = npt.NDArray[np.int64]


def _digits(alphabet: bytes) -> Digits:
    found = np.full(256, _NONE, dtype=np.int64)
    found[np.frombuffer(alphabet, dtype=np.uint8)] = np.arange(85)
    return found


_ALPHABETS = tuple(map(_digits, (_RFC_1924, _ASCII85, _Z85)))

_BEGUN, _NO_TEXT = 0, 1


def _states() -> npt.NDArray[np.uint8]:
    """Return which state a byte leads to from which: the start of a text is read by it, for many places in one go."""
    utf8, more, more2, more3, one, low, low_letter, high, high_letter, bom, bom_high = range(2, 13)
    printed = [code for code in range(128) if re.fullmatch(_PRINTED, bytes([code]))]
    states = np.full((13, 256), _NO_TEXT, dtype=np.uint8)
    for state in (_BEGUN, one, utf8):
        states[state, printed] = utf8
        states[state, 0xC2:0xE0], states[state, 0xE0:0xF0], states[state, 0xF0:0xF5] = more, more2, more3
    for state, follows in ((more, utf8), (more2, more), (more3, more2)):
        states[state, 0x80:0xC0] = follows
    # UTF-16: of a letter of Latin one byte of two is zero.
    states[_BEGUN, printed] = one
    states[one, 0] = low
    states[low, printed] = low_letter
    states[low_letter, 0] = low
    states[_BEGUN, 0] = high
    states[high, printed] = high_letter
    states[high_letter, 0] = high
    states[_BEGUN, 0xFF], states[bom, 0xFE] = bom, low
    states[_BEGUN, 0xFE], states[bom_high, 0xFF] = bom_high, high_letter
    return states


_STATES = _states()


def base85(text: str) -> Iterator[str | Undecoded]:
    """Yield what runs of base85 say in a text: in one piece, over lines or group by group, as they stand or escaped."""
    for each in _laid_together(text.replace("\r\n", "\n")):
        yield from _runs(np.frombuffer(each.encode("ascii", "replace"), dtype=np.uint8))


def _laid_together(text: str) -> Iterable[str]:
    """Return a text in the ways in which its runs may come to be in one piece, and alone where that is told."""
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
    places = _places(data)
    if not len(places):
        return
    for digits in _ALPHABETS:
        begins = places
        for signs in (_GROUP, _LEAST):  # the first few tell of nearly all places that no run begins there
            begins = begins[_is_text(digits[data[begins[:, None] + np.arange(signs)]])]
        end, decoded = 0, 0
        for begin in begins.tolist():
            if begin < end:
                continue  # within a run
            if decoded == MOST_RUNS:
                yield Undecoded(_LEAST * (len(begins) - MOST_RUNS))
                break
            said, end = _decoded(data, begin, digits)
            decoded += 1
            if is_text(said) and (said.isascii() or len(said) >= _SURE or _is_over(digits[data[end : end + _GROUP]])):
                yield said


def _is_over(digits: Digits) -> bool:
    """Return whether no whole group comes next."""
    return len(digits) < _GROUP or bool((digits == _NONE).any())


def _places(data: npt.NDArray[np.uint8]) -> npt.NDArray[np.intp]:
    """Return where a run may begin: behind white space or a sign of a document, with enough signs behind."""
    if len(data) < _LEAST:
        return np.empty(0, dtype=np.intp)
    spaces = np.concatenate(([0], np.cumsum(_IS_SPACE[data])))
    dense = spaces[_LEAST:] == spaces[:-_LEAST]
    behind = np.concatenate(([True], _BEFORE[data[:-1]]))[: len(dense)]
    return np.flatnonzero(dense & behind)


def _is_text(windows: Digits) -> npt.NDArray[np.bool_]:
    """Return which rows decode to the beginning of a text."""
    groups = windows.reshape(len(windows), windows.shape[1] // _GROUP, _GROUP)
    values = groups @ _POWERS
    is_text: npt.NDArray[np.bool_] = np.all(groups < _NONE, axis=(1, 2)) & np.all(values >> 32 == 0, axis=1)
    left = np.flatnonzero(is_text)
    states = np.full(len(left), _BEGUN, dtype=np.uint8)
    for code in _bytes_of(values[left]).T:
        states = _STATES[states, code]
    is_text[left] = states != _NO_TEXT
    return is_text


def _bytes_of(values: Digits) -> npt.NDArray[np.uint8]:
    """Return the bytes that the groups of each row stand for."""
    return ((values[..., None] >> _SHIFTS) & 0xFF).astype(np.uint8).reshape(len(values), values.shape[1] * 4)


def _decoded(data: npt.NDArray[np.uint8], begin: int, digits: Digits) -> tuple[str, int]:
    """Return what a run says, and where it ends."""
    size = _PIECE
    while True:
        run = digits[data[begin : begin + size]]
        ends = np.flatnonzero(run == _NONE)
        run = run[: ends[0]] if len(ends) else run
        whole = len(run) // _GROUP
        values = run[: whole * _GROUP].reshape(whole, _GROUP) @ _POWERS
        wrong = np.flatnonzero(values >> 32)
        count = int(wrong[0]) if len(wrong) else whole
        decoded = _bytes_of(values[None, :count])[0].tobytes()
        said = _text_in(decoded)
        if count * _GROUP < size or len(said) + _GROUP < len(decoded):  # nothing that is cut off here goes on
            said = max((_text_in(decoded + rest) for rest in _rests(run[count * _GROUP :].tolist())), key=len)
            return _as_text(said), begin + len(said) // 4 * _GROUP
        size *= 2


def _text_in(decoded: bytes) -> bytes:
    """Return the text that bytes begin with."""
    found = _TEXT.match(decoded)
    return found[0] if found else b""


def _as_text(said: bytes) -> str:
    if b"\0" in said:  # of UTF-16: all of it are Latin letters
        return said.removeprefix(b"\xff\xfe").removeprefix(b"\xfe\xff").replace(b"\0", b"").decode("ascii")
    return said.decode("utf-8", "replace")


def _rests(run: list[int]) -> Iterator[bytes]:
    """Yield what the last, short group may say; signs of the document may stand behind it."""
    yield b""
    for length in range(2, min(len(run), _GROUP - 1) + 1):
        value = 0
        for digit in (run[:length] + [84] * _GROUP)[:_GROUP]:
            value = value * 85 + digit
        if value < 1 << 32:
            yield value.to_bytes(_GROUP, "big")[1:length]
