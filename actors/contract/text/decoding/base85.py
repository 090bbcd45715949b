"""Runs of base85 in any of its alphabets, found by what they decode to.

Their alphabets have nearly every sign of a document or a program, so that no search tells where a run begins and ends.
But what is none decodes to bytes that are no text: the first twenty signs tell, and are looked at for all places where
a run may begin in one go. From such a place on a run is decoded for as long as text comes out.
"""

import re
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from actors.contract.text.decoding.plausibility import PRINTED
from actors.contract.text.decoding.undecoded import Undecoded

_GROUP = 5
_LEAST = 20
"""Signs by which a run is told, whole groups."""

MOST_RUNS = 256
"""Runs of a text that are decoded."""

_PIECE = 1_280
"""Signs of a run that are decoded in one go, at first: how long it is, only its end tells."""

_NONE = 85
_RFC_1924 = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_ASCII85 = bytes(range(33, 118))
_Z85 = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_POWERS = np.array([85**4, 85**3, 85**2, 85, 1], dtype=np.int64)
_SHIFTS = np.array([24, 16, 8, 0], dtype=np.int64)
_IS_PRINTED = np.isin(np.arange(256), np.frombuffer(PRINTED, dtype=np.uint8))
_IS_SPACE = np.isin(np.arange(256), np.frombuffer(b" \t\r\n\x0b\x0c", dtype=np.uint8))
_BEFORE = np.isin(np.arange(256), np.frombuffer(b"\"'`:=,;([{>|~", dtype=np.uint8)) | _IS_SPACE
_LINE_END = re.compile(r"\n(?<=\S{20}\n)(?=\S)")
_ESCAPED = re.compile(r"\\([\"'\\/])")

Digits = npt.NDArray[np.int64]


def _digits(alphabet: bytes) -> Digits:
    found = np.full(256, _NONE, dtype=np.int64)
    found[np.frombuffer(alphabet, dtype=np.uint8)] = np.arange(85)
    return found


_ALPHABETS = tuple(map(_digits, (_RFC_1924, _ASCII85, _Z85)))


def base85(text: str) -> Iterator[str | Undecoded]:
    """Yield what runs of base85 say in a text, in one piece or over lines, as they stand or as a document's values."""
    text = text.replace("\r\n", "\n")
    tried = dict.fromkeys((text, _LINE_END.sub("", text) if "\n" in text else text))
    if "\\" in text:
        tried |= dict.fromkeys(_ESCAPED.sub(r"\1", each) for each in list(tried))
    for each in tried:
        yield from _runs(np.frombuffer(each.encode("ascii", "replace"), dtype=np.uint8))


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
            yield said


def _places(data: npt.NDArray[np.uint8]) -> npt.NDArray[np.intp]:
    """Return where a run may begin: behind white space or a sign of a document, with enough signs behind."""
    if len(data) < _LEAST:
        return np.empty(0, dtype=np.intp)
    spaces = np.concatenate(([0], np.cumsum(_IS_SPACE[data])))
    dense = spaces[_LEAST:] == spaces[:-_LEAST]
    behind = np.concatenate(([True], _BEFORE[data[:-1]]))[: len(dense)]
    return np.flatnonzero(dense & behind)


def _is_text(windows: Digits) -> npt.NDArray[np.bool_]:
    """Return which rows decode to text."""
    groups = windows.reshape(len(windows), windows.shape[1] // _GROUP, _GROUP)
    is_text: npt.NDArray[np.bool_] = np.all(groups < _NONE, axis=(1, 2))
    is_text &= np.all(_group_is_text(groups @ _POWERS), axis=1)
    return is_text


def _group_is_text(values: Digits) -> npt.NDArray[np.bool_]:
    signs = (values[..., None] >> _SHIFTS) & 0xFF
    is_text: npt.NDArray[np.bool_] = values >> 32 == 0
    is_text &= np.all(_IS_PRINTED[signs], axis=-1)
    return is_text


def _decoded(data: npt.NDArray[np.uint8], begin: int, digits: Digits) -> tuple[str, int]:
    """Return what a run says, and where it ends."""
    said, size = b"", _PIECE
    while True:
        run = digits[data[begin : begin + size]]
        ends = np.flatnonzero(run == _NONE)
        run = run[: ends[0]] if len(ends) else run
        whole = len(run) // _GROUP
        values = run[: whole * _GROUP].reshape(whole, _GROUP) @ _POWERS
        wrong = np.flatnonzero(~_group_is_text(values))
        count = int(wrong[0]) if len(wrong) else whole
        said += ((values[:count, None] >> _SHIFTS) & 0xFF).astype(np.uint8).tobytes()
        begin += count * _GROUP
        if count * _GROUP < size:
            return (said + _rest(run[count * _GROUP : (count + 1) * _GROUP].tolist())).decode("ascii"), begin
        size *= 2


def _rest(run: list[int]) -> bytes:
    """Return what the last, short group says; signs of the document may stand behind it."""
    for length in range(min(len(run), _GROUP - 1), 1, -1):
        value = 0
        for digit in (run[:length] + [84] * _GROUP)[:_GROUP]:
            value = value * 85 + digit
        said = value.to_bytes(_GROUP, "big")[1:length] if value < 1 << 32 else b""
        if said and not said.translate(None, PRINTED):
            return said
    return b""
