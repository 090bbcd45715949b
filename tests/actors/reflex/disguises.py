"""Strategies that hide a signature: in look-alikes and invisible characters, in other letters, and in encodings."""

import codecs
from base64 import b64encode, urlsafe_b64encode
from collections import defaultdict
from collections.abc import Callable
from urllib.parse import quote

from hypothesis import strategies as st

from actors.contract.text.lookalikes import CONFUSABLES
from actors.reflex.library import library_of
from actors.reflex.normalise import squeeze
from actors.reflex.spellings import MIN_REWRITTEN

SEED = [signature.text for _, signature in library_of("seed").signatures()]
STANDARD = [
    signature.text
    for pattern, signature in library_of("standard").signatures()
    if pattern.action == "BLOCK" and signature.whole_words
]
SIGNATURES = st.sampled_from(SEED) | st.sampled_from(STANDARD)

MARKS = "\u0301\u0308\u0327\u0336\u035b\u20dd\u0e31"
INVISIBLE = "\u200b\u200c\u200d\u2060\ufeff\u00ad\u180e\ufe0f\u034f\u3164\u202e\U000e0061\x00\x08\x7f\ud800"
WHITE_SPACE = " \t\n\r\x0b\x1f\u0085\u00a0\u1680\u2003\u2028\u202f\u205f\u3000\u2800"
LEETSPEAK = {
    "a": "4@", "b": "8", "e": "3", "g": "96", "i": "1!|", "l": "1|", "o": "0", "s": "5$", "t": "7+", "z": "2"
}  # fmt: skip

LOOKALIKES: dict[str, str] = defaultdict(str)
for lookalike, letters in CONFUSABLES.items():
    LOOKALIKES[letters] += lookalike


def _styled(letter: str) -> str:
    """Return a letter's capital, fullwidth, circled, script and bold forms and its look-alikes."""
    if not "a" <= letter <= "z":
        return letter
    place = ord(letter) - ord("a")
    shifted = (0xFF21, 0xFF41, 0x24B6, 0x24D0, 0x1D400, 0x1D41A, 0x1D4D0, 0x1D68A, 0x1D5EE)
    return letter.upper() + "".join(chr(first + place) for first in shifted) + LOOKALIKES[letter]


@st.composite
def _letter(draw: st.DrawFn, letter: str) -> tuple[str, str]:
    """Draw a disguise: the letter itself, and what trails it unseen."""
    shown = draw(st.one_of(st.just(letter), st.sampled_from(_styled(letter))))
    return shown, draw(st.text(MARKS, max_size=2)) + draw(st.text(INVISIBLE, max_size=1))


@st.composite
def disguised(draw: st.DrawFn) -> tuple[str, str]:
    """Draw a signature and a disguise of it, without what trails its last letter."""
    signature = draw(SIGNATURES)
    parts = [
        ("", draw(st.text(WHITE_SPACE + INVISIBLE, min_size=1, max_size=4))) if letter == " " else draw(_letter(letter))
        for letter in signature
    ]
    return signature, "".join(shown + trailing for shown, trailing in parts[:-1]) + parts[-1][0]


@st.composite
def in_leetspeak(draw: st.DrawFn) -> tuple[str, str]:
    """Draw a signature and a writing of it with digits and symbols for any of its letters."""
    signature = draw(SIGNATURES)
    return signature, "".join(draw(st.sampled_from(letter + LEETSPEAK.get(letter, ""))) for letter in signature)


in_rot13 = (
    SIGNATURES.filter(lambda text: text.isascii() and len(squeeze(text)) >= MIN_REWRITTEN)
    .map(lambda text: (text, codecs.encode(text, "rot13")))
)  # fmt: skip
spaced = SIGNATURES.filter(lambda text: len(squeeze(text).decode()) >= MIN_REWRITTEN).map(
    lambda text: (text, " ".join(text))
)
plain = SIGNATURES.map(lambda text: (text, text))


def _split(text: str, size: int, by: str) -> str:
    return by.join(text[start : start + size] for start in range(0, len(text), size))


def _bytes(text: str) -> bytes:
    return _encodable(text).encode()


def _encodable(text: str) -> str:
    # No encoding has lone surrogates; to a reader another invisible character is the same.
    return text.replace("\ud800", "\u200b")


ENCODERS: dict[str, Callable[[str], str]] = {
    "base64": lambda text: b64encode(_bytes(text)).decode(),
    "base64 url-safe": lambda text: urlsafe_b64encode(_bytes(text)).decode(),
    "base64 unpadded": lambda text: b64encode(_bytes(text)).decode().rstrip("="),
    "base64 in lines": lambda text: _split(b64encode(_bytes(text)).decode(), 64, "\n"),
    "base64 in pieces": lambda text: _split(b64encode(_bytes(text)).decode(), 16, "  "),
    # Only the ASCII in UTF-16 is read, as text between zeros.
    "base64 of UTF-16": lambda text: b64encode(text.encode("utf-16-le") if text.isascii() else _bytes(text)).decode(),
    "hex": lambda text: _bytes(text).hex(),
    "hex in capitals": lambda text: _bytes(text).hex().upper(),
    "hex spaced": lambda text: _bytes(text).hex(" "),
    "hex with colons": lambda text: _bytes(text).hex(":"),
    "hex \\x": lambda text: "".join(f"\\x{byte:02x}" for byte in _bytes(text)),
    "hex 0x": lambda text: ", ".join(f"0x{byte:02X}" for byte in _bytes(text)),
    "hex 0x once": lambda text: "0x" + _bytes(text).hex(),
    "percent": lambda text: "".join(f"%{byte:02x}" for byte in _bytes(text)),
    "percent where needed": lambda text: quote(_bytes(text), safe=""),
}
