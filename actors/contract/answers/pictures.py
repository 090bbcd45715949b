"""Finds pictures in an answer whose URLs send words of the prompt to their hosts. Pure.

A program that displays an answer loads its pictures without a click, so the URL of a picture is a message to its
host. A URL that is not in the prompt itself counts if it contains words of the prompt: at least
``CARRIED_IN_QUERY`` letters or digits in a value of its query, or ``CARRIED_ELSEWHERE`` elsewhere; plainly, or in
base64 or hex. URLs that are too long to be read count, and so do those beyond the number that is examined. What else a
page loads without a click counts as a picture, such as style sheets, icons and frames, but for its scripts. Links that
must be clicked are not checked: they may well repeat what was asked for.
"""

import base64
import binascii
import html
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise

from actors.contract.answers.prompt import Prompt

CARRIED_IN_QUERY, CARRIED_ELSEWHERE = 8, 16
"""Fewest successive letters or digits of the prompt that count, in a value of the query and anywhere else."""

MOST_ADDRESSES = 256
"""Most URLs of an answer that are examined."""

_LONGEST_ADDRESS, _LONGEST_HOST = 4_096, 253
"""Most characters of a URL that is read, and of a host's name in DNS."""

# Host, path, query, fragment. A page that shows the picture has a scheme; browsers take a backslash for a slash, and
# need none behind another scheme than the page's.
_BEGIN = r"(?:https?:[/\\]*|[/\\]{2,})"
_SPLIT = re.compile(rf"{_BEGIN}([^/\\?#]*)([^?#]*)(?:\?([^#]*))?(?:#(.*))?", re.IGNORECASE | re.DOTALL)
_PERCENT_ENCODED = re.compile(rb"%([0-9a-fA-F]{2})")
_NOT_ALPHANUMERIC = re.compile(r"[\W_]+")
_PLAIN = r"[^\s<>()\"']"
# A URL ends at white space, a quotation mark or a bracket; round brackets inside it must be balanced.
_ADDRESS = rf"({_BEGIN}(?:{_PLAIN}|\((?:{_PLAIN}|\({_PLAIN}*\))*\))+)"
_BRACKET = re.compile(r"\\.|[\[\]]", re.DOTALL)
# Brackets in code and tags belong to no title for some renderers. What is not closed may go on behind a part of a text.
_CODE_OR_BRACKET, _CODE_OR_BRACKET_IN_PART = (
    re.compile(
        rf"\\.|(?<!`)(`+)(?!`)(?:(?:[^\n]|\n(?![ \t]*\n)){{1,2048}}?(?<!`)\1(?!`)|{in_part}\Z)"
        rf"|<[a-z/][^<>]*(?:>|{in_part}\Z)|[\[\]]",
        re.DOTALL | re.IGNORECASE,
    )
    for in_part in ("(?!)", ".*")
)
# Between ``<`` and ``>`` it may have spaces. A quotation goes on with ``>`` in its next line.
_MARKDOWN_ADDRESS = rf"(?:<({_BEGIN}[^<>\n]+)|<?{_ADDRESS})"
_LINK = re.compile(rf"\]\([\s>]*{_MARKDOWN_ADDRESS}", re.IGNORECASE)

# A tag that loads something, up to its end or that of the text, as browsers read it. What looks like another tag before
# its end may be one of its attributes.
_LOADING_TAGS = (
    "img|image|source|video|audio|track|input|link|meta|base|iframe|frame|embed|object|use|feimage|body|table|thead|"
    "tbody|tr|td|th|animate|set"
)
_ATTRIBUTES = r"(?:=\s*\\?\"[^\"]*(?:\"|\Z)|=\s*\\?'[^']*(?:'|\Z)|[^<>=]+|=|<(?![a-z]))*+"
_LOADING_TAG = rf"<(?:{_LOADING_TAGS})(?=[\s/]){_ATTRIBUTES}(?:<[a-z]{_ATTRIBUTES}){{0,3}}+"
_LOADING = re.compile(rf"(?=({_LOADING_TAG}))", re.IGNORECASE)
_VALUE = re.compile(r"([\w:-]*)\s*=\s*\\?(?:\"([^\"]*)|'([^']*)|([^\s>\"']\S*))")
_NOT_LOADED = frozenset({"alt", "title", "style"})  # what a style loads is found below
# These load something only if they say so.
_LOADS_IF = re.compile(
    r"<(?!link\b|meta\b)|<link\b.*(?:icon|stylesheet|preload|prefetch|preconnect|prerender|manifest|dns)|"
    r"<meta\b.*refresh",
    re.IGNORECASE | re.DOTALL,
)
# Slashes within base64 begin no URL.
_SOURCE_BEGIN = re.compile(r"https?:[/\\]*|(?<![\w+/\\:.-])(?<!base64,)[/\\]{2,}", re.IGNORECASE)
_SOURCE_END = re.compile(r"(?:\s+[\d.]+[wxh])?[\s,\\]*\Z")

# CSS loads what it names. It stands in tags and between those of a style; one in the text so far is enough.
_STYLED = re.compile(r"<style\b|\bstyle\s*=|=\s*\\?[\"']\s*url\(", re.IGNORECASE)
_URL_IN_CSS = r"(?<!new )(?:\bu|\\0{0,4}[57]5\s?)(?:r|\\0{0,4}[57]2\s?)(?:l|\\0{0,4}[46]c\s?)(?:\(|&(?:#40|#x28|lpar);)"
_CSS = rf"{_URL_IN_CSS}(?:\s*\"[^\"]*|\s*'[^']*|[^)]*)|\bimage-set\([^;{{}}]*|@import\s*[\"'][^\"';]*"
_CSS_LOADED = re.compile(_CSS, re.IGNORECASE)
_CSS_ESCAPE = re.compile(r"\\([0-9a-f]{1,6})\s?", re.IGNORECASE)

LONGEST_TITLE = 2_048
"""Most characters of a picture before its URL, such as its title, that are looked at."""

# Markdown may name the URL of a picture elsewhere in the text: ``![title][label]`` and ``[label]: URL``.
_REFERENCE = re.compile(
    rf"^[ \t>*+.\d-]{{0,12}}\[[^\]\n]{{1,500}}\]:[\s>]*{_MARKDOWN_ADDRESS}", re.IGNORECASE | re.MULTILINE
)

# Read backwards: the URL of a link or a picture at the end of a text, which may go on. Forwards, a text of many such
# beginnings would be read again from each of them.
_BEGUN_URL_BACKWARDS = re.compile(r"(?:[^\s<>\"']*|[^<>\n]*<)[\s>]*\(\]")
_BEGUN_TAG = re.compile(rf"{_LOADING_TAG}\Z", re.IGNORECASE)
_BEGUN_IN_CSS = re.compile(rf"(?:=\s*\\?[\"']\s*)?(?:{_CSS})\Z", re.IGNORECASE)

# How a URL may write one of its characters: as an entity, or in Markdown behind a backslash.
_WRITTEN = re.compile(r"&#?[A-Za-z0-9]{2,10};?|\\([:.?=&_#%~-])")
_OF_URLS = re.compile(r"[A-Za-z0-9:/.?=&_#%~+-]")

_NO_PROMPT = Prompt("", ())


class Pictures:
    """The pictures found in an answer so far that carry words of its prompt.

    Text is read in overlapping parts. URLs beyond the number that is examined count as carrying words.

    Attributes:
        hosts: The hosts of these pictures, in order of occurrence, each once.
    """

    def __init__(self, prompt: Prompt) -> None:
        self._prompt = _PromptWords((prompt.text, *(layer.content for layer in prompt.layers)))
        # The URLs examined so far, and whether each carries words; whether Markdown has a picture; and the URLs of all
        # labels, any of which may be that picture's.
        self._examined: dict[str, bool] = {}
        self._has_picture = self._has_style = False
        self._defined: dict[str, None] = {}
        self.hosts: tuple[str, ...] = ()

    def for_another_text(self) -> "Pictures":
        """Return a copy that has read nothing yet. What is known of the prompt is shared."""
        another = Pictures(_NO_PROMPT)
        another._prompt = self._prompt
        return another

    def read(self, text: str) -> None:
        """Examine the pictures in a text, or in a part of one."""
        text = _undone(text)
        self._has_picture = self._has_picture or "![" in text
        for bracketed, plain in _REFERENCE.findall(text):
            if len(self._defined) <= MOST_ADDRESSES:
                self._defined[bracketed or plain] = None
        title_ends = _title_ends(text, _BRACKET) | _title_ends(text, _CODE_OR_BRACKET) if "![" in text else ()
        pictured = [found[1] or found[2] for found in _LINK.finditer(text) if found.start() in title_ends]
        pictured += _sources(text)
        if _may_be_css(text):
            self._has_style = self._has_style or _STYLED.search(text) is not None
            pictured += _loaded_by_css(text) if self._has_style else ()
        if self._has_picture:
            pictured += self._defined
        found = [_host(address) for address in pictured if address not in self._examined and self._examine(address)]
        self.hosts = tuple(dict.fromkeys((*self.hosts, *found)))

    def _examine(self, address: str) -> bool:
        if len(self._examined) >= MOST_ADDRESSES:
            return True
        self._examined[address] = carries = self._prompt.carried_by(address)
        return carries


class _PromptWords:
    """The texts of a prompt, and the sequences of letters and digits in them, once a URL is compared with them."""

    def __init__(self, texts: tuple[str, ...]) -> None:
        self._texts = texts
        self._undone: tuple[str, ...] | None = None  # those that read otherwise then, once a URL is compared
        self._sequences: Mapping[int, frozenset[str]] | None = None

    def carried_by(self, address: str) -> bool:
        """Whether a URL that is not in the prompt carries words of it."""
        if any(address in part for part in self._texts):
            return False
        if self._undone is None:
            self._undone = tuple(undone for part in self._texts if (undone := _undone(part)) != part)
        if any(address in part for part in self._undone):
            return False
        if self._sequences is None:
            self._sequences = {
                least: _sequences_of(self._texts, least) for least in (CARRIED_IN_QUERY, CARRIED_ELSEWHERE)
            }
        return _carries(address, self._sequences)


def hosts_with_prompt_words(prompt: Prompt, texts: Iterable[str]) -> tuple[str, ...]:
    """Return the hosts of pictures in texts that carry words of the prompt, in order, each once."""
    pictures = Pictures(prompt)
    for text in texts:
        pictures.read(text)
    return pictures.hosts


def begun_picture(text: str) -> int:
    """Return where a picture begins whose title, tag or URL goes on behind the end of a text; its length for none."""
    begun = (_BEGUN_TAG.search(text), _BEGUN_IN_CSS.search(text) if _may_be_css(text) else None)
    return min(_begun_in_markdown(text), *(len(text) if found is None else found.start() for found in begun))


def _begun_in_markdown(text: str) -> int:
    if (url := _BEGUN_URL_BACKWARDS.match(text[::-1])) is not None:
        url_start = len(text) - url.end()
        begin = text.rfind("![", max(0, url_start - LONGEST_TITLE), url_start)
        if begin < 0:  # what ends the text may be several links without a space between them
            begin = text.find("![", url_start)
        return begin if begin >= 0 else len(text)
    # A title has no blank line, and whatever follows its last bracket, but "(", ends it.
    at = text.find("![", max(0, len(text) - LONGEST_TITLE, text.rfind("\n\n")))
    while at >= 0:
        end = _title_end(text, at, _BRACKET)
        if len(text) in (end, _title_end(text, at, _CODE_OR_BRACKET_IN_PART)):
            return at
        at = text.find("![", end)
    return len(text)


def _title_end(text: str, at: int, brackets: re.Pattern[str]) -> int:
    depth = 0
    for found in brackets.finditer(text, at + 1):
        depth += (found[0] == "[") - (found[0] == "]")
        if not depth and found[0] == "]":
            return found.end()
    return len(text)


def _undone(text: str) -> str:
    """Return a text with the letters, digits and signs of URLs in it as they are read; no brackets or quotation marks.

    These would change where a picture or a tag begins and ends.
    """

    def read(found: re.Match[str]) -> str:
        char = found[1] or html.unescape(found[0])
        return char if _OF_URLS.fullmatch(char) else found[0]

    return _WRITTEN.sub(read, text) if "&" in text or "\\" in text else text


def _title_ends(text: str, brackets: re.Pattern[str]) -> set[int]:
    """Return the square brackets that end the titles of pictures in Markdown; titles may hold pairs of brackets.

    One without its pair ends a title if a picture began not far before it: renderers differ there.
    """
    ends: set[int] = set()
    begun: list[int] = []
    last_picture = -LONGEST_TITLE - 1
    for found in brackets.finditer(text):
        at = found.start()
        if found[0] == "[":
            begun.append(at)
            last_picture = at if text[at - 1 : at] == "!" else last_picture
        elif found[0] == "]":
            if begun:
                begin = begun.pop()
                is_picture = text[begin - 1 : begin] == "!"
            else:
                is_picture = at - last_picture <= LONGEST_TITLE
            if is_picture:
                ends.add(at)
    return ends


def _sources(text: str) -> Iterator[str]:
    """Yield the URLs in the attributes of tags in HTML that load something.

    A tag within the quotation marks of another is read, too. If that makes too much to read, every URL counts.
    """
    left = 8 * len(text) + LONGEST_TITLE
    for tag in _LOADING.finditer(text):
        if (left := left - len(tag[1])) < 0:
            yield from (found[0] for found in re.finditer(_ADDRESS, text, re.IGNORECASE))
            return
        if _LOADS_IF.match(tag[1]):
            for name, *values in _VALUE.findall(tag[1]):
                if name.lower() not in _NOT_LOADED:
                    yield from _addresses("".join(values))


def _may_be_css(text: str) -> bool:
    """Whether a text may name what CSS loads, or begin a style: a fast check, since few texts do."""
    lowered = text.lower()
    return any(word in lowered for word in ("style", "url", "image-set", "@import", "\\"))


def _loaded_by_css(text: str) -> Iterator[str]:
    for found in _CSS_LOADED.findall(_CSS_ESCAPE.sub(_css_unescaped, text)):
        for quoted in re.split(r"[\"']", found):
            yield from _addresses(quoted)


def _css_unescaped(found: re.Match[str]) -> str:
    char = chr(int(found[1], 16) % 0x110000)
    return char if _OF_URLS.fullmatch(char) else found[0]


def _addresses(value: str) -> Iterator[str]:
    """Yield the URLs in the value of an attribute, which may be a list; browsers drop line ends and tabs in them."""
    value = re.sub(r"[\t\r\n]", "", html.unescape(value))
    begins = [found.start() for found in _SOURCE_BEGIN.finditer(value)]
    for begin, end in pairwise((*begins, len(value))):
        yield _SOURCE_END.sub("", value[begin:end])


def _sequences_of(texts: Iterable[str], length: int) -> frozenset[str]:
    """Return all sequences of ``length`` letters and digits in some texts: a set lookup is faster than a search."""
    return frozenset(
        letters[at : at + length] for letters in map(_alphanumeric, texts) for at in range(len(letters) - length + 1)
    )


def _carries(address: str, sequences: Mapping[int, frozenset[str]]) -> bool:
    if len(address) > _LONGEST_ADDRESS:
        return True
    host, path, query, fragment = _split(address)
    values = re.split(r"[&;=]", query)
    others = (*host.split("."), *re.split(r"[/\\]", path), fragment)
    return any(_holds_sequence(value, sequences, CARRIED_IN_QUERY) for value in values) or any(
        _holds_sequence(other, sequences, CARRIED_ELSEWHERE) for other in others
    )


def _holds_sequence(part: str, sequences: Mapping[int, frozenset[str]], least: int) -> bool:
    """Return whether a part of a URL, plain or decoded, has ``least`` successive characters of the prompt."""
    for decoded in _plain_and_decoded(_percent_decoded(part)):
        letters = _alphanumeric(decoded)
        if any(letters[at : at + least] in sequences[least] for at in range(len(letters) - least + 1)):
            return True
    return False


def _plain_and_decoded(part: str) -> Iterator[str]:
    yield part
    for decode in (_from_base64, bytes.fromhex):
        try:
            yield decode(part).decode()
        except (binascii.Error, ValueError):
            continue


def _from_base64(part: str) -> bytes:
    plain = part.strip().rstrip("=").replace("-", "+").replace("_", "/")
    return base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)


def _host(address: str) -> str:
    return _split(address)[0].rpartition("@")[2].casefold()[:_LONGEST_HOST]


def _split(address: str) -> tuple[str, str, str, str]:
    """Return the host, path, query and fragment of a URL as a browser would parse it, whatever it contains."""
    found = _SPLIT.match(address)
    return ("", "", "", "") if found is None else (found[1], found[2], found[3] or "", found[4] or "")


def _percent_decoded(part: str) -> str:
    raw = _PERCENT_ENCODED.sub(lambda found: bytes.fromhex(found[1].decode()), part.replace("+", " ").encode())
    return raw.decode(errors="replace")


def _alphanumeric(text: str) -> str:
    return _NOT_ALPHANUMERIC.sub("", text).casefold()
