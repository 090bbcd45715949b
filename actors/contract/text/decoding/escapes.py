"""Undoes the escapes of programs, style sheets, pages, URLs and mail, anywhere in a text."""

import base64
import re
import unicodedata
from collections.abc import Callable, Iterator
from html.entities import html5
from itertools import chain, islice

from actors.contract.text.decoding.disguised_stretches import stretches_of

FEWEST = 4
"""From this many escapes on, ``undo_escapes`` undoes them for all guards; fewer are undone only for reflex's search for
signatures, which are phrases of attacks (``undo_blanks``)."""


def _coded(base: int) -> Callable[[str], str]:
    return lambda digits: _character_of(int(digits, base))


def _character_of(code: int) -> str:
    # Code points beyond the last are no characters: they stay as they are.
    return chr(code) if code < 0x110000 and not 0xD800 <= code < 0xE000 else ""


def _of_pair(halves: str) -> str:
    # JSON writes a character past the first 65,536 as a surrogate pair.
    high, low = (int(half, 16) for half in halves.split("\\u"))
    return chr(0x10000 + ((high - 0xD800) << 10) + low - 0xDC00)


def _named(name: str) -> str:
    try:
        return unicodedata.lookup(name)
    except KeyError:
        return ""


def _of_html(name: str) -> str:
    return html5.get(f"{name};", "")


_FORMS: tuple[tuple[str, Callable[[str], str]], ...] = (
    (r"\\[ux]\{([0-9a-fA-F]{1,6})\}", _coded(16)),
    (r"%u([0-9a-fA-F]{4})", _coded(16)),
    (r"\\00([0-9a-fA-F]{4})\s?", _coded(16)),
    (r"\\([0-9a-fA-F]{2})[ \t\r\n]", _coded(16)),
    (r"\\([0-3][0-7]{2})", _coded(8)),
    (r"\\([0-7]{2})(?![0-9A-Za-z])", _coded(8)),
    (r"&#0*([0-9]{2,7});?", _coded(10)),
    (r"&#[xX]0*([0-9a-fA-F]{2,6});?", _coded(16)),
    (r"&([A-Za-z][A-Za-z0-9]{1,31});", _of_html),
    (r"U\+([0-9A-Fa-f]{4,6})\s?", _coded(16)),
    (r"\\u([dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})", _of_pair),
    (r"\\u([0-9a-fA-F]{4})", _coded(16)),
    (r"\\U([0-9a-fA-F]{8})", _coded(16)),
    (r"\\N\{([A-Za-z0-9 -]{2,80})\}", _named),
    (r"\\x([0-9a-fA-F]{2})", _coded(16)),
    (r"\\'([0-9a-fA-F]{2})", _coded(16)),
    (r"\^\^([0-9a-f]{2})", _coded(16)),
    (r"%([0-9a-fA-F]{2})", _coded(16)),
)
"""The pattern of each escape, and the character that its group stands for; empty where it stands for none.

Of programs, of style sheets, of pages (HTML), of URLs (``%``), of RTF (``\\'``) and of TeX (``^^``).
"""

_ESCAPE = re.compile("|".join(form for form, _ in _FORMS))
_FIRST_CHARACTERS = ("\\", "%", "&", "U+", "^^")
_QUOTED_PRINTABLE = re.compile(r"=[0-9A-F]{2}")
_QUOTED_PRINTABLE_RUN = re.compile(r"(?:=[0-9A-F]{2})+")
_ESCAPED_AGAIN = re.compile(r"(?<!\\)\\{2,}+(?=[uUxN])")  # the backslashes of an escape that was escaped itself
_QUOTED_OR_BREAK = re.compile(r"=[0-9A-F]{2}|=[ \t]*\r?\n")
_SOFT_BREAK = re.compile(r"=[ \t]*\r?\n")
_UTF7 = re.compile(r"\+(A[C-H][A-Za-z0-9+/]+)-?")
"""A run of UTF-7, which is UTF-16 in base64, if it begins with a letter, digit or blank of ASCII."""

_BLANK = re.compile(
    r"(?<!\\)\\++(?:[rfv]|t(?!ext[a-z]{2,6}\{)|n(?!\{)|u(?:00(?:0[9-d]|20|a[0d]|85)|20[0-6][0-9a-f]|3000|feff)|x(?:0[9-d]|20|a0))"
    r"|&(?:nbsp|ensp|emsp|thinsp|Tab|NewLine|NonBreakingSpace|ZeroWidthSpace|shy|zwn?j"
    r"|#0*(?:9|1[0-3]|32|160|173)(?![0-9])|#x0*(?:[9-d]|20|a[0d]|20[0-6][0-9a-f])(?![0-9a-f]));?"
    r"|=20(?:=?\r?\n)?|=\r?\n|<br\s*/?>\s*",
    re.I,
)
"""White space as programs, pages and mail write it, and how they write invisible characters.

A run of backslashes is matched from its first only. From each of them, the work would grow with its length squared.
"""

TAG = (
    r"<!--(?:[^-<]|-(?!->)|<(?!!--))*+-->"
    r"|</?[A-Za-z](?:[^<>\"']++|\"[^\"<]*\"|'[^'<]*')*+>|</?[A-Za-z][^<>]*>"
)
"""A comment or tag of a page: unbounded, but it ends before the next one begins, so no text is read twice."""

_MARKUP = re.compile(
    rf"{TAG}|\]\([^()\s]*\)|\[/?(?:b|i|u|s|color|size|font|url|quote|code|spoiler)(?:=[^\[\]\s]*)?\]"
    r"|\\(?:text[a-z]{2,6}|emph|underline|mbox)\{|\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)"
)
"""What pages, Markdown's links, forums, TeX and terminals put around words."""

_ZERO_WIDTH_SPACE = "\u200b"
"""Put in the place of markup: reflex reads it as nothing inside a word, and as white space between words."""

_MAY_HAVE_BLANKS = ("\\", "&", "=", "<", "[", "\x1b", "U+", "^^", "%u")


def undo_blanks(text: str) -> str:
    """Return a text with its markup and its escaped white space and letters undone; empty if it has none of these.

    Of a long text without markup, only the surroundings of what is escaped are returned. A single escape or tag is
    undone: in ``all previous\\ninstructions`` a letter stands between two words of an instruction, a search misses
    ``pr\\u00e9vious``, and ``all <b>previous</b> instructions`` has letters in its tags.
    """
    if not any(map(text.__contains__, _MAY_HAVE_BLANKS)):
        return ""
    few = list(islice(_ESCAPE.finditer(text), FEWEST))
    few_quoted = list(islice(_QUOTED_PRINTABLE.finditer(text), FEWEST))
    visible = _MARKUP.sub(_ZERO_WIDTH_SPACE, text)
    if visible == text:
        spans = sorted(match.span() for match in chain(_BLANK.finditer(text), few, few_quoted))
        visible = stretches_of(text, spans) if spans else ""
    # Blanks first: the general escapes would turn some of them into other characters, such as quotation marks.
    visible = _BLANK.sub(_blank, visible)
    if len(few) < FEWEST:
        # With more of them, ``undo_escapes`` gives a text with all undone.
        visible = _ESCAPE.sub(_character, _ESCAPED_AGAIN.sub(r"\\", visible))
    if len(few_quoted) < FEWEST:
        visible = _QUOTED_PRINTABLE_RUN.sub(_of_bytes, visible)
    return _MARKUP.sub(_ZERO_WIDTH_SPACE, visible) if few else visible


def with_blanks(text: str) -> str:
    """Return a text of the same length with blanks in the place of escaped white space."""
    return _BLANK.sub(lambda match: " " * len(match[0]), text)


def undo_escapes(text: str) -> Iterator[str]:
    """Yield a text with its escapes undone."""
    if sum(map(text.count, _FIRST_CHARACTERS)) >= FEWEST:
        undone, count = _ESCAPE.subn(_character, stretches_of(text, (match.span() for match in _ESCAPE.finditer(text))))
        if count >= FEWEST and undone != text:
            yield undone
    if text.count("=") >= FEWEST:
        stretches = stretches_of(text, (match.span() for match in _QUOTED_OR_BREAK.finditer(text)))
        joined = _SOFT_BREAK.sub("", stretches)
        undone = _QUOTED_PRINTABLE_RUN.sub(_of_bytes, joined)
        if len(_QUOTED_PRINTABLE.findall(joined)) >= FEWEST or (undone and undone != stretches and "=\n" in text):
            yield undone
    if "+A" in text:
        stretches = stretches_of(text, (match.span() for match in _UTF7.finditer(text)))
        undone = _UTF7.sub(_from_utf7, stretches)
        if undone != stretches:
            yield undone


def _character(match: re.Match[str]) -> str:
    group = match.lastindex or 1
    return _FORMS[group - 1][1](match[group]) or match[0]


def _blank(match: re.Match[str]) -> str:
    # A soft hyphen stays one: it may stand within a word.
    return "\N{SOFT HYPHEN}" if match[0].lower().rstrip(";").endswith(("ad", "shy", "173")) else " "


def _of_bytes(match: re.Match[str]) -> str:
    data = bytes.fromhex(match[0].replace("=", ""))
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode("latin-1")


def _from_utf7(match: re.Match[str]) -> str:
    run = match[1]
    try:
        decoded = base64.b64decode(run + "=" * (-len(run) % 4))[: len(run) * 3 // 4 // 2 * 2].decode("utf-16-be")
    except ValueError:
        return match[0]
    return decoded if decoded.isascii() else match[0]
