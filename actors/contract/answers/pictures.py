"""Finds pictures in an answer whose URLs send words of the prompt to their hosts. Pure.

A program that displays an answer loads its pictures without a click, so the URL of a picture is a message to its
host. A URL that is not in the prompt itself counts if it contains words of the prompt: at least
``CARRIED_IN_QUERY`` letters or digits in a value of its query, or ``CARRIED_ELSEWHERE`` elsewhere; plainly, or in
base64 or hex. URLs that are too long to be read count, and so do those beyond the number that is examined. Links that
must be clicked are not checked: they may well repeat what was asked for.
"""

import base64
import binascii
import html
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping

from actors.contract.answers.prompt import Prompt

CARRIED_IN_QUERY, CARRIED_ELSEWHERE = 8, 16
"""Fewest successive letters or digits of the prompt that count, in a value of the query and anywhere else."""

MOST_ADDRESSES = 256
"""Most URLs of an answer that are examined."""

_LONGEST_ADDRESS, _LONGEST_HOST = 4_096, 253
"""Most characters of a URL that is read, and of a host's name in DNS."""

# Host, path, query, fragment. A page that shows the picture has a scheme; browsers take a backslash for a slash.
_SPLIT = re.compile(r"(?:https?:)?[/\\]{2,}([^/\\?#]*)([^?#]*)(?:\?([^#]*))?(?:#(.*))?", re.IGNORECASE | re.DOTALL)
_PERCENT_ENCODED = re.compile(rb"%([0-9a-fA-F]{2})")
_NOT_ALPHANUMERIC = re.compile(r"[\W_]+")
_PLAIN = r"[^\s<>()\"']"
# A URL ends at white space, a quotation mark or a bracket; round brackets inside it must be balanced.
_ADDRESS = rf"((?:https?:)?[/\\]{{2}}(?:{_PLAIN}|\((?:{_PLAIN}|\({_PLAIN}*\))*\))+)"
_BRACKET = re.compile(r"\\.|[\[\]]", re.DOTALL)
# Between ``<`` and ``>`` it may have spaces.
_LINK = re.compile(rf"\]\(\s*(?:<((?:https?:)?[/\\]{{2}}[^<>\n]+)|{_ADDRESS})", re.IGNORECASE)
_ATTRIBUTE = re.compile(rf"\b(?:src|srcset|poster|href)\s*=\s*(?:\\?[\"']\s*)?{_ADDRESS}", re.IGNORECASE)
_TAG = re.compile(r"<([a-z][a-z0-9]*)\b", re.IGNORECASE)
_PICTURE_TAGS = frozenset({"img", "image", "source", "video", "input"})
LONGEST_TITLE = 2_048
"""Most characters of a picture before its URL, such as its title, that are looked at."""

# Markdown may name the URL of a picture elsewhere in the text: ``![title][label]`` and ``[label]: URL``.
_REFERENCE = re.compile(rf"^[ \t>*+.\d-]{{0,12}}\[[^\]\n]{{1,500}}\]:\s*<?{_ADDRESS}", re.IGNORECASE | re.MULTILINE)

# Read backwards: the URL of a link or a picture at the end of a text, which may go on. Forwards, a text of many such
# beginnings would be read again from each of them.
_BEGUN_URL_BACKWARDS = re.compile(r"(?:[^\s<>\"']*|[^<>\n]*<)\s*\(\]")

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
        self._has_picture = False
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
        for address in _REFERENCE.findall(text):
            if len(self._defined) <= MOST_ADDRESSES:
                self._defined[address] = None
        title_ends = _title_ends(text) if "![" in text else ()
        pictured = [found[1] or found[2] for found in _LINK.finditer(text) if found.start() in title_ends]
        pictured += _sources(text)
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
        self._undone: tuple[str, ...] | None = None  # of those that it changes; None until a URL is compared
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
    """Return where a picture in Markdown begins whose title or URL goes on behind the end of a text; its length for
    none.
    """
    if (url := _BEGUN_URL_BACKWARDS.match(text[::-1])) is not None:
        url_start = len(text) - url.end()
        begin = text.rfind("![", max(0, url_start - LONGEST_TITLE), url_start)
        if begin < 0:  # what ends the text may be several links without a space between them
            begin = text.find("![", url_start)
        return begin if begin >= 0 else len(text)
    # A title has no blank line, and whatever follows its last bracket, but "(", ends it.
    at = text.find("![", max(0, len(text) - LONGEST_TITLE, text.rfind("\n\n")))
    while at >= 0:
        depth, end = 0, len(text)
        for found in _BRACKET.finditer(text, at + 1):
            depth += (found[0] == "[") - (found[0] == "]")
            if not depth:
                end = found.end()
                break
        if end == len(text):
            return at
        at = text.find("![", end)
    return len(text)


def _undone(text: str) -> str:
    """Return a text with the letters, digits and signs of URLs in it as they are read; no brackets or quotation marks.

    These would change where a picture or a tag begins and ends.
    """

    def read(found: re.Match[str]) -> str:
        char = found[1] or html.unescape(found[0])
        return char if _OF_URLS.fullmatch(char) else found[0]

    return _WRITTEN.sub(read, text) if "&" in text or "\\" in text else text


def _title_ends(text: str) -> set[int]:
    """Return the square brackets that end the titles of pictures in Markdown; titles may hold pairs of brackets.

    One without its pair ends a title if a picture began not far before it: renderers differ there.
    """
    ends: set[int] = set()
    begun: list[int] = []
    last_picture = -LONGEST_TITLE - 1
    for found in _BRACKET.finditer(text):
        at = found.start()
        if text[at] == "[":
            begun.append(at)
            last_picture = at if text[at - 1 : at] == "!" else last_picture
        elif text[at] == "]":
            if begun:
                begin = begun.pop()
                is_picture = text[begin - 1 : begin] == "!"
            else:
                is_picture = at - last_picture <= LONGEST_TITLE
            if is_picture:
                ends.add(at)
    return ends


def _sources(text: str) -> Iterator[str]:
    """Yield the URLs in attributes in HTML that belong to a tag that shows a picture."""
    attributes = list(_ATTRIBUTE.finditer(text))
    tags = list(_TAG.finditer(text)) if attributes else []
    for found in attributes:
        last = bisect_right(tags, found.start(), key=re.Match.end) - 1
        tag = tags[last] if last >= 0 else None
        if tag and found.start() - tag.start() <= LONGEST_TITLE and tag[1].lower() in _PICTURE_TAGS:
            yield found[1]


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
