"""Decodes the encoded runs of a text: base64, hexadecimal and percent-encoding.

None of these makes a text longer. The work is counted in steps of about ten nanoseconds, and bounded over all texts of
an input (``MAX_WORK``). It is distributed so that no run can use up what another needs:

- Every run of base64 is decoded from its likeliest start before any is from another; if not all can be, the longest
  are.
- The decoded characters are shared equally among all runs: a long run leaves room for the short ones after it.
- What was not read is counted, in characters of the text.

A check first finds out whether a text can contain any such run, which costs a few microseconds.

- base64 (``base64words``), also URL-safe, unpadded, and split by white space.
- hex: at least six pairs of digits, also separated, also as ``\\x69``, ``0x69``, ``\\u0069``, ``&#x69;`` or ``U+0069``.
- percent: the text around percent escapes, with these decoded and ``+`` for a space.

Of decoded bytes only text counts (``plaintext``).
"""

import binascii
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Literal

import msgspec
import numpy as np

from actors.contract.text.joined_parts import shares
from actors.reflex.decoding.base64words import MIXTURES, kinds_of, runs_of_words
from actors.reflex.decoding.plaintext import texts_in

Encoding = Literal["base64", "hex", "percent"]
"""The encodings that are decoded here."""

MAX_WORK = 5_242_880
"""Most steps of all decoding for one input, enough to read lists of thousands of hashes completely."""

_BASE64_WORK, _HEX_RUN_WORK, _HEX_PREFIX_WORK, _ESCAPE_WORK = 192, 128, 32, 128
"""Steps for a base64 run, a hex run, a possible hex prefix and a percent escape, whatever their length."""

_DIGIT_WORK = 2
"""Steps for each encoded character, in addition."""

CONTEXT = 160
"""Characters around a percent escape that are read with it, since words there need no escape."""

ALTERNATIVE_SHARE = 0.75
"""Another decoding of a base64 run is read too if it has at least this share of the longest one's length."""

# All ASCII characters that are white space to Python, as in ``base64words``: a character skipped by only one of the two
# leaves a run of the wrong length, which is an error.
_SPACES = bytes(code for code in range(128) if chr(code).isspace())
# Kinds of characters are numbered: those of base64 come last, beginning with its symbols.
_FIRST_DIGIT = kinds_of(b"+")[0]
_NOT_BASE64 = bytes(code for code in range(256) if kinds_of(bytes([code]))[0] < _FIRST_DIGIT)
# What completes base64 to a multiple of four characters, by the number of characters beyond one.
_COMPLETION = (b"", b"///", b"//", b"/")
_URL_SAFE = bytes.maketrans(b"-_", b"+/")
_HEX_BREAKS = _SPACES + b",:;|_.-"
_HEX_KINDS = bytes(
    ord("h") if chr(code) in "0123456789abcdefABCDEF" else ord(" ") if code in _SPACES + b",:;|-" else ord(".")
    for code in range(256)
)
# The kinds of six pairs of hex digits: in a row, and with one or two blanks (or ``,:;|-``) between the pairs.
_BARE_HEX = (b"h" * 12, b" ".join([b"hh"] * 6), b"  ".join([b"hh"] * 6))
# Bit 1: the character may be the first of a prefix; bit 2: it may be the second.
_OPENS_PREFIX = bytes((chr(code) in "0\\&U") + 2 * (chr(code) in "xXu#+") for code in range(256))
_MANY_PREFIXES = 2_048
"""With more possible beginnings of a prefix than this, a single search for all is faster."""

_HEX_PREFIX = rb"0[xX]|\\[xX]|\\u00|&#[xX](?:00)?|U\+00"
_HEX_BREAK = rb"[\s,:;|_.-]"
_PAIR = rb"[0-9A-Fa-f][0-9A-Fa-f]"
# Sixteen bare pairs, or eight with one separator after each, match the same as single pairs would, in a tenth of the
# time.
_HEX_RUN_FORM = (
    rb"(?:[0-9A-Fa-f]{32}%(break)s{0,3}|%(eight)s%(break)s{0,2}|(?:%(prefix)s)?%(pair)s%(break)s{0,3})++"
    % {b"break": _HEX_BREAK, b"eight": (_PAIR + _HEX_BREAK) * 8, b"pair": _PAIR, b"prefix": _HEX_PREFIX}
)
_HEX = re.compile(_HEX_RUN_FORM)
_PREFIXED_HEX = re.compile(rb"(?=[0\\&U])(?=%s)%s" % (_HEX_PREFIX, _HEX_RUN_FORM))
_HEX_DIGITS = b"0123456789abcdefABCDEF"
# Prefixes of hex digits, longer ones before those that they contain.
_HEX_PREFIXES = (b"&#x00", b"&#X00", b"\\u00", b"U+00", b"&#x", b"&#X", b"0x", b"0X", b"\\x", b"\\X")
_MIN_PAIRS = 6
"""Fewest pairs of hex digits of a run."""

_MAX_SHORT = 50
"""Most characters of fewer than six pairs, with a prefix and three separators each."""

ESCAPE_LENGTH = 3
"""Characters of a percent escape, which stands for one byte."""

_IS_HEX = np.array([chr(code) in "0123456789abcdefABCDEF" for code in range(256)])
_HEX_VALUE = np.array([int(chr(code), 16) if is_hex else 0 for code, is_hex in enumerate(_IS_HEX)], dtype=np.uint8)


ALTERNATIVES_SEPARATOR = "\n*\n"
"""The separator of alternative decodings of a run: no run continues across it, so two readings are not read as one."""


class EncodedRun(msgspec.Struct, frozen=True):
    """An encoded stretch of a text, from ``start`` to ``end`` in characters, and its decoding."""

    start: int
    end: int
    text: str


class DecodingBudget(msgspec.Struct, frozen=True):
    """A budget for decoding: at most ``characters`` decoded characters, and at most ``work`` steps."""

    characters: int
    work: int = MAX_WORK


class EncodedRuns(msgspec.Struct, frozen=True):
    """The runs of a text in one encoding, in order.

    ``unread`` counts the characters of the text that were not read, or not in every possible way; ``work`` the steps
    used. The text itself may be the result of a decoding.
    """

    found: tuple[EncodedRun, ...] = ()
    unread: int = 0
    work: int = 0


NO_RUNS = EncodedRuns()

_Span = tuple[int, int]


def base64_runs(text: str, ascii_text: bytes, budget: DecodingBudget) -> EncodedRuns:
    """Return the base64 runs of a text; ``ascii_text`` is the text with a ``?`` for each character that is not ASCII.

    The likeliest span of every run is decoded; the alternatives as far as the budget allows.
    """
    kinds = kinds_of(ascii_text)
    # A base64 word mixes lower case, upper case and digits as words of a language rarely do.
    if not any(mixture in kinds for mixture in MIXTURES):
        return NO_RUNS
    runs = runs_of_words(kinds)
    if runs is None:
        return NO_RUNS
    lengths = runs.ends - runs.starts
    chosen, work = _affordable(_BASE64_WORK + _DIGIT_WORK * lengths, budget.work)
    unread = int(lengths.sum() - lengths[chosen].sum())
    likeliest = list(zip(runs.starts[chosen].tolist(), runs.ends[chosen].tolist(), strict=True))
    spans = [[span] for span in likeliest]
    # Short runs first, so that a long one does not use up the budget for the others.
    with_alternatives = np.flatnonzero(runs.several[chosen])
    for index in with_alternatives[np.argsort(lengths[chosen][with_alternatives], kind="stable")].tolist():
        if work > budget.work:
            break
        others = runs.spans(int(chosen[index]))[1:]
        cost = sum(_BASE64_WORK + _DIGIT_WORK * (end - start) for start, end in others)
        if work + cost <= budget.work:
            spans[index] += others
        # The first run that the budget does not allow ends the loop: the next ones are as long, or longer.
        work += min(cost, budget.work - work + 1)
    unread += sum(int(lengths[chosen[index]]) for index in with_alternatives.tolist() if len(spans[index]) == 1)
    parts = [ascii_text[start:end].translate(_URL_SAFE, _NOT_BASE64) for some in spans for start, end in some]
    texts = texts_in(list(map(_from_base64, parts)))
    if len(parts) == len(spans):
        found = [EncodedRun(start, end, text) for (start, end), text in zip(likeliest, texts, strict=True) if text]
    else:
        decoded = iter(texts)
        several = (_joined([EncodedRun(*span, next(decoded)) for span in some]) for some in spans)
        found = [run for run in several if run is not None]
    return _within(found, budget.characters, unread, work)


def _affordable(costs: "np.typing.NDArray[np.int64]", budget: int) -> "tuple[np.typing.NDArray[np.int64], int]":
    """Return the indexes of what the budget allows, ascending, and its cost; the most expensive are taken first."""
    total = int(costs.sum())
    if total <= budget:
        return np.arange(len(costs)), total
    order = np.argsort(-costs, kind="stable")
    spent = np.cumsum(costs[order])
    count = int(np.searchsorted(spent, budget, side="right"))
    return np.sort(order[:count]), int(spent[count - 1]) if count else 0


def _joined(decoded: list[EncodedRun]) -> EncodedRun | None:
    """Return the alternative decodings of a run as one, if about as long as the longest and not contained in another.

    An extra word at either end adds a wrong letter, so the longest decoding may not be the right one.
    """
    if len(decoded) == 1:
        return decoded[0] if decoded[0].text else None
    most = max(len(each.text) for each in decoded)
    kept: list[EncodedRun] = []
    for each in decoded:
        if (
            each.text
            and len(each.text) >= ALTERNATIVE_SHARE * most
            and not any(each.text in other.text for other in kept)
        ):
            kept.append(each)
    if not kept:
        return None
    return (
        kept[0]
        if len(kept) == 1
        else EncodedRun(kept[0].start, kept[0].end, ALTERNATIVES_SEPARATOR.join(each.text for each in kept))
    )


def _from_base64(digits: bytes) -> bytes:
    return binascii.a2b_base64(digits + _COMPLETION[len(digits) & 3])


def hex_runs(text: str, ascii_text: bytes, budget: DecodingBudget) -> EncodedRuns:
    """Return the hexadecimal runs of a text; ``ascii_text`` is as for :func:`base64_runs`."""
    most = max(0, budget.work // _HEX_PREFIX_WORK)
    spans = [match.span() for match in islice(_prefixed(ascii_text), most)]
    work = _HEX_PREFIX_WORK * len(spans)
    until = spans[-1][1] if spans and len(spans) == most else len(ascii_text)
    spans = [(start, end) for start, end in spans if end - start >= 2 * _MIN_PAIRS]
    kinds = ascii_text.translate(_HEX_KINDS)
    for pattern in _BARE_HEX:
        offset = kinds.find(pattern, 0, until)
        while offset >= 0:
            if work > budget.work:
                until = offset
                break
            match = _HEX.match(ascii_text, offset)
            assert match is not None, "the pattern stands for digits"
            spans.append(match.span())
            work += _HEX_RUN_WORK
            offset = kinds.find(pattern, match.end(), until)
    if not spans:
        return EncodedRuns(unread=len(ascii_text) - until, work=work) if work else NO_RUNS
    kept: list[_Span] = []
    parts: list[bytes] = []
    for start, end in sorted(spans, key=lambda span: (span[0], -span[1])):
        if start >= until or (kept and start < kept[-1][1]) or work > budget.work:
            continue
        work += _HEX_RUN_WORK + _DIGIT_WORK * (end - start)
        decoded = _from_hex(ascii_text[start:end])
        if len(decoded) >= _MIN_PAIRS or end - start > _MAX_SHORT:
            kept.append((start, end))
            parts.append(decoded)
    unread = len(ascii_text) - (until if work <= budget.work else max(kept)[1] if kept else 0)
    found = [EncodedRun(*span, text) for span, text in zip(kept, texts_in(parts), strict=True) if text]
    return _within(found, budget.characters, unread, work)


def _prefixed(ascii_text: bytes) -> "Iterator[re.Match[bytes]]":
    """Yield the runs that begin with a prefix, in order."""
    firsts = np.frombuffer(ascii_text.translate(_OPENS_PREFIX), dtype=np.uint8)
    offsets = np.flatnonzero(firsts[:-1] & (firsts[1:] >> 1)).tolist()
    if len(offsets) > _MANY_PREFIXES:
        yield from _PREFIXED_HEX.finditer(ascii_text)
        return
    until = 0
    for offset in offsets:
        match = _PREFIXED_HEX.match(ascii_text, offset) if offset >= until else None
        if match is not None:
            until = match.end()
            yield match


def _from_hex(written: bytes) -> bytes:
    digits = written.translate(None, _HEX_BREAKS)
    if digits.translate(None, _HEX_DIGITS):
        for prefix in _HEX_PREFIXES:
            digits = digits.replace(prefix, b"")
    return binascii.unhexlify(digits)


def percent_runs(text: str, ascii_text: bytes, budget: DecodingBudget) -> EncodedRuns:
    """Return the decoded stretches of a text around percent escapes."""
    if "%" not in text:
        return NO_RUNS
    raw = np.frombuffer(text.encode("utf-8", "replace"), dtype=np.uint8)
    at = np.flatnonzero(raw[:-2] == ord("%"))
    at = at[_IS_HEX[raw[at + 1]] & _IS_HEX[raw[at + 2]]]
    if not len(at):
        return NO_RUNS
    apart = np.flatnonzero(np.diff(at) > 2 * CONTEXT + ESCAPE_LENGTH)
    begins = np.maximum(at[np.concatenate(([0], apart + 1))] - CONTEXT, 0)
    ends = np.minimum(at[np.concatenate((apart, [len(at) - 1]))] + ESCAPE_LENGTH + CONTEXT, len(raw))
    most = max(0, (budget.work - len(raw)) // _ESCAPE_WORK)
    # Decoded once for the whole text: the windows are cut from the result.
    shown = raw.copy()
    shown[raw == ord("+")] = ord(" ")
    shown[at] = _HEX_VALUE[raw[at + 1]] * 16 + _HEX_VALUE[raw[at + 2]]
    kept = np.ones(len(raw), dtype=bool)
    kept[at + 1] = kept[at + 2] = False
    lengths_before = np.concatenate(([0], np.cumsum(kept, dtype=np.int32)))
    written = shown[kept].tobytes()
    letters = np.arange(len(raw) + 1) if text.isascii() else np.concatenate(([0], np.cumsum((raw & 0xC0) != 0x80)))
    windows = zip(begins[:most].tolist(), ends[:most].tolist(), strict=True)
    found = [
        EncodedRun(
            int(letters[begin]),
            int(letters[end]),
            written[lengths_before[begin] : lengths_before[end]].decode("utf-8", "replace"),
        )
        for begin, end in windows
    ]
    unread = int(letters[-1] - letters[begins[most]]) if most < len(begins) else 0
    return _within(found, budget.characters, unread, len(raw) + _ESCAPE_WORK * len(found))


def _within(runs: Sequence[EncodedRun], most_characters: int, unread: int, work: int) -> EncodedRuns:
    """Return the decoded runs, each cut to its share of ``most_characters``, which includes the line breaks between."""
    lengths = [len(run.text) + 1 for run in runs]
    if sum(lengths) - 1 <= most_characters:
        return EncodedRuns(tuple(runs), unread, work)
    kept: list[EncodedRun] = []
    for run, share in zip(runs, shares(lengths, most_characters + 1), strict=True):
        kept_text = run.text[: max(0, share - 1)]
        # In encoded characters: a reader of the verdict has the received text, not the decoded one.
        unread += (run.end - run.start) * (len(run.text) - len(kept_text)) // len(run.text)
        if kept_text:
            kept.append(EncodedRun(run.start, run.end, kept_text))
    return EncodedRuns(tuple(kept), unread, work)


DECODERS: dict[Encoding, Callable[[str, bytes, DecodingBudget], EncodedRuns]] = {
    "base64": base64_runs,
    "hex": hex_runs,
    "percent": percent_runs,
}
"""How the runs of each encoding are found, given a text, its ASCII form and the budget."""
