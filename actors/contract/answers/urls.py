"""How an answer may write a URL, and how browsers read it. Pure."""

import html
import re

_LONGEST_HOST = 253
"""Most characters of a host's name in DNS."""

# Host, path, query, fragment. A page that shows the picture has a scheme; browsers take a backslash for a slash, and
# need none behind another scheme than the page's.
BEGIN = r"(?:https?:[/\\]*|[/\\]{2,})"
_SPLIT = re.compile(rf"{BEGIN}([^/\\?#]*)([^?#]*)(?:\?([^#]*))?(?:#(.*))?", re.IGNORECASE | re.DOTALL)
_PLAIN = r"[^\s<>()\"']"
# A URL ends at white space, a quotation mark or a bracket; round brackets inside it must be balanced.
ADDRESS = rf"({BEGIN}(?:{_PLAIN}|\((?:{_PLAIN}|\({_PLAIN}*\))*\))+)"

# How a URL may write one of its characters: as an entity, or in Markdown behind a backslash.
_WRITTEN = re.compile(r"&#?[A-Za-z0-9]{2,10};?|\\([:.?=&_#%~-])")
OF_URLS = re.compile(r"[A-Za-z0-9:/.?=&_#%~+-]")


def undone(text: str) -> str:
    """Return a text with the letters, digits and signs of URLs in it as they are read; no brackets or quotation marks.

    These would change where a picture or a tag begins and ends.
    """

    def read(found: re.Match[str]) -> str:
        char = found[1] or html.unescape(found[0])
        return char if OF_URLS.fullmatch(char) else found[0]

    return _WRITTEN.sub(read, text) if "&" in text or "\\" in text else text


def host_of(address: str) -> str:
    """Return the host of a URL, in small letters, without a login."""
    return split_url(address)[0].rpartition("@")[2].casefold()[:_LONGEST_HOST]


def split_url(address: str) -> tuple[str, str, str, str]:
    """Return the host, path, query and fragment of a URL as a browser would parse it, whatever it contains."""
    found = _SPLIT.match(address)
    return ("", "", "", "") if found is None else (found[1], found[2], found[3] or "", found[4] or "")
