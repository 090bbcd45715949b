"""Finds the URLs of pictures in an answer that is HTML or CSS, and of sound and films. Pure.

Style sheets, fonts and frames are not looked at: pages that people ask for name them, with words of what they asked.
"""

import html
import re
import string
from collections.abc import Iterator
from itertools import pairwise

from actors.contract.answers.urls import ADDRESS, OF_URLS

_LEAST_READ = 2_048
"""Characters of tags that are read in any text, however short."""

# A tag that shows or plays something, up to its end or that of the text, as browsers read it. What looks like another
# tag before its end may be one of its attributes.
_SHOWING_TAGS = (
    "img|image|source|video|audio|input|embed|object|use|feimage|body|table|thead|tbody|tr|td|th|animate|set"
)
_ATTRIBUTES = r"(?:=\s*\\?\"[^\"]*(?:\"|\Z)|=\s*\\?'[^']*(?:'|\Z)|[^<>=]+|=|<(?![a-z]))*+"
_SHOWING_TAG = rf"<(?:{_SHOWING_TAGS})(?=[\s/]){_ATTRIBUTES}(?:<[a-z]{_ATTRIBUTES}){{0,3}}+"
_SHOWING = re.compile(_SHOWING_TAG, re.IGNORECASE)
_SHOWING_ANYWHERE = re.compile(rf"(?=({_SHOWING_TAG}))", re.IGNORECASE)
# Possessive, so that a tag of one long name, or of spaces, is read once.
_VALUE = re.compile(r"(?:(?<![\w:-])([\w:-]++)\s*+)?+=\s*+\\?(?:\"([^\"]*)|'([^']*)|([^\s>\"']\S*))")
_LOADED = frozenset(
    {
        *("src", "srcset", "data-src", "data-srcset", "lowsrc", "dynsrc", "href", "xlink:href", "data", "poster"),
        *("background", "to", "from", "values"),
    }
)
# Slashes within base64 begin no URL.
_SOURCE_BEGIN = re.compile(r"https?:[/\\]*|(?<![\w+/\\:.-])(?<!base64,)[/\\]{2,}", re.IGNORECASE)
_SIZE = re.compile(r"[\d.]+[wxh]")
_BEHIND = string.whitespace + ",\\"

# CSS stands in tags and between those of a style; one in the text so far is enough.
_STYLED = re.compile(r"<style\b|\bstyle\s*=\s*\\?[\"']|=\s*\\?[\"']\s*url\(", re.IGNORECASE)
_URL_IN_CSS = (
    r"(?<!new )(?<![\w.(])(?:u|\\0{0,4}[57]5\s?)(?:r|\\0{0,4}[57]2\s?)(?:l|\\0{0,4}[46]c\s?)(?:\(|&(?:#40|#x28|lpar);)"
)
_CSS = rf"{_URL_IN_CSS}(?:\s*+\"[^\"\n]*|\s*+'[^'\n]*|\s*+[^)\s\"'`]*)|\bimage-set\((?:[^();{{}}`]|\([^()]*\))*"
_CSS_LOADED = re.compile(_CSS, re.IGNORECASE)
_CSS_ESCAPE = re.compile(r"\\([0-9a-f]{1,6})\s?", re.IGNORECASE)

_BEGUN_TAG = re.compile(rf"{_SHOWING_TAG}\Z", re.IGNORECASE)
_BEGUN_IN_CSS = re.compile(rf"(?:(?:\bstyle\s*)?=\s*\\?[\"']\s*)?(?:{_CSS})\Z", re.IGNORECASE)


def sources_in_tags(text: str) -> Iterator[str]:
    """Yield the URLs that tags in HTML load to show or play them.

    A tag within the quotation marks of another is read, too. If that makes too much to read, every URL counts.
    """
    left = 8 * len(text) + _LEAST_READ
    for tag in _SHOWING_ANYWHERE.finditer(text):
        if (left := left - len(tag[1])) < 0:
            yield from (found[0] for found in re.finditer(ADDRESS, text, re.IGNORECASE))
            return
        for name, *values in _VALUE.findall(tag[1]):
            if name.lower() in _LOADED:
                yield from _addresses("".join(values))


def has_style(text: str) -> bool:
    """Whether a text begins a style, in a tag or as a sheet."""
    return _STYLED.search(text) is not None


def begun_source(text: str) -> int:
    """Return where a tag, or what CSS loads, begins that goes on behind the end of a text; its length for none."""
    tag = _BEGUN_TAG.search(text)
    begin = len(text) if tag is None else tag.start()
    css = _BEGUN_IN_CSS.search(text) if may_be_css(text) else None
    if css is None or css.start() >= begin:
        return begin
    # In a tag that is complete it is one of the attributes, and says nothing of where the others end.
    spans = (found.span() for found in _SHOWING.finditer(text))
    return next((start for start, end in spans if start < css.start() < end), css.start())


def may_be_css(text: str) -> bool:
    """Whether a text may name what CSS loads, or begin a style: a fast check, since few texts do."""
    lowered = text.lower()
    return any(word in lowered for word in ("style", "url", "image-set", "\\"))


def loaded_by_css(text: str) -> Iterator[str]:
    """Yield the URLs that CSS in a text loads."""
    for found in _CSS_LOADED.findall(_CSS_ESCAPE.sub(_css_unescaped, text)):
        for quoted in re.split(r"[\"']", found):
            yield from _addresses(quoted)


def _css_unescaped(found: re.Match[str]) -> str:
    char = chr(int(found[1], 16) % 0x110000)
    return char if OF_URLS.fullmatch(char) else found[0]


def _addresses(value: str) -> Iterator[str]:
    """Yield the URLs in the value of an attribute, which may be a list; browsers drop line ends and tabs in them."""
    value = re.sub(r"[\t\r\n]", "", html.unescape(value))
    begins = [found.start() for found in _SOURCE_BEGIN.finditer(value)]
    for begin, end in pairwise((*begins, len(value))):
        address = value[begin:end].rstrip(_BEHIND)
        source, _, size = address.rpartition(" ")
        yield source.rstrip() if _SIZE.fullmatch(size) else address
