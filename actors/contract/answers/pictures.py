"""Finds pictures in an answer whose URLs send words of the prompt to their hosts. Pure.

A program that displays an answer loads its pictures without a click, so the URL of a picture is a message to its
host. A URL that is not in the prompt itself counts if it contains words of the prompt: at least
``CARRIED_IN_QUERY`` letters or digits in a value of its query, or ``CARRIED_ELSEWHERE`` elsewhere; plainly, or in
base64 or hex. URLs that are too long to be read count, and so do those beyond the number that is examined. Sound and
films count as pictures. Links that must be clicked are not checked: they may well repeat what was asked for.
"""

import re
from collections.abc import Iterable

from actors.contract.answers.carried_words import PromptWords
from actors.contract.answers.loaded_sources import begun_source, has_style, loaded_by_css, may_be_css, sources_in_tags
from actors.contract.answers.prompt import Prompt
from actors.contract.answers.urls import ADDRESS, BEGIN, host_of, undone

MOST_ADDRESSES = 256
"""Most URLs of an answer that are examined."""

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
_MARKDOWN_ADDRESS = rf"(?:<({BEGIN}[^<>\n]+)|<?{ADDRESS})"
_LINK = re.compile(rf"\]\([\s>]*{_MARKDOWN_ADDRESS}", re.IGNORECASE)

LONGEST_TITLE = 2_048
"""Most characters of a picture before its URL, such as its title, that are looked at."""

# Markdown may name the URL of a picture elsewhere in the text: ``![title][label]`` and ``[label]: URL``.
_REFERENCE = re.compile(
    rf"^[ \t>*+.\d-]{{0,12}}\[[^\]\n]{{1,500}}\]:[\s>]*{_MARKDOWN_ADDRESS}", re.IGNORECASE | re.MULTILINE
)

# Read backwards: the URL of a link or a picture at the end of a text, which may go on. Forwards, a text of many such
# beginnings would be read again from each of them.
_BEGUN_URL_BACKWARDS = re.compile(r"(?:[^\s<>\"']*|[^<>\n]*<)[\s>]*\(\]")


_NO_PROMPT = Prompt("", ())


class Pictures:
    """The pictures found in an answer so far that carry words of its prompt.

    Text is read in overlapping parts. URLs beyond the number that is examined count as carrying words.

    Attributes:
        hosts: The hosts of these pictures, in order of occurrence, each once.
    """

    def __init__(self, prompt: Prompt) -> None:
        self._prompt = PromptWords((prompt.text, *(layer.content for layer in prompt.layers)))
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
        text = undone(text)
        self._has_picture = self._has_picture or "![" in text
        for bracketed, plain in _REFERENCE.findall(text):
            if len(self._defined) <= MOST_ADDRESSES:
                self._defined[bracketed or plain] = None
        title_ends = _title_ends(text, _BRACKET) | _title_ends(text, _CODE_OR_BRACKET) if "![" in text else ()
        pictured = [found[1] or found[2] for found in _LINK.finditer(text) if found.start() in title_ends]
        pictured += sources_in_tags(text)
        if may_be_css(text):
            self._has_style = self._has_style or has_style(text)
            pictured += loaded_by_css(text) if self._has_style else ()
        if self._has_picture:
            pictured += self._defined
        found = [host_of(address) for address in pictured if address not in self._examined and self._examine(address)]
        self.hosts = tuple(dict.fromkeys((*self.hosts, *found)))

    def _examine(self, address: str) -> bool:
        if len(self._examined) >= MOST_ADDRESSES:
            return True
        self._examined[address] = carries = self._prompt.carried_by(address)
        return carries


def hosts_with_prompt_words(prompt: Prompt, texts: Iterable[str]) -> tuple[str, ...]:
    """Return the hosts of pictures in texts that carry words of the prompt, in order, each once."""
    pictures = Pictures(prompt)
    for text in texts:
        pictures.read(text)
    return pictures.hosts


def begun_picture(text: str) -> int:
    """Return where a picture begins whose title, tag or URL goes on behind the end of a text; its length for none."""
    return min(_begun_in_markdown(text), begun_source(text))


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
