"""Finds the URLs in an answer that a page loads without a click, in HTML and CSS. Pure."""

import html
import re
from collections.abc import Iterator
from itertools import pairwise

from actors.contract.answers.urls import ADDRESS, OF_URLS

_LEAST_READ = 2_048
"""Characters of tags that are read in any text, however short."""

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

_BEGUN_TAG = re.compile(rf"{_LOADING_TAG}\Z", re.IGNORECASE)
_BEGUN_IN_CSS = re.compile(rf"(?:=\s*\\?[\"']\s*)?(?:{_CSS})\Z", re.IGNORECASE)


def sources_in_tags(text: str) -> Iterator[str]:
    """Yield the URLs in the attributes of tags in HTML that load something.

    A tag within the quotation marks of another is read, too. If that makes too much to read, every URL counts.
    """
    left = 8 * len(text) + _LEAST_READ
    for tag in _LOADING.finditer(text):
        if (left := left - len(tag[1])) < 0:
            yield from (found[0] for found in re.finditer(ADDRESS, text, re.IGNORECASE))
            return
        if _LOADS_IF.match(tag[1]):
            for name, *values in _VALUE.findall(tag[1]):
                if name.lower() not in _NOT_LOADED:
                    yield from _addresses("".join(values))


def has_style(text: str) -> bool:
    """Whether a text begins a style, in a tag or as a sheet."""
    return _STYLED.search(text) is not None


def begun_source(text: str) -> int:
    """Return where a tag, or what CSS loads, begins that goes on behind the end of a text; its length for none."""
    begun = (_BEGUN_TAG.search(text), _BEGUN_IN_CSS.search(text) if may_be_css(text) else None)
    return min(len(text), *(len(text) if found is None else found.start() for found in begun))


def may_be_css(text: str) -> bool:
    """Whether a text may name what CSS loads, or begin a style: a fast check, since few texts do."""
    lowered = text.lower()
    return any(word in lowered for word in ("style", "url", "image-set", "@import", "\\"))


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
        yield _SOURCE_END.sub("", value[begin:end])
