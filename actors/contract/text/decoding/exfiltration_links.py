"""Finds links and images whose URL has a placeholder for secret data: opening one sends the data to its host.

An image is loaded by any program that displays it, so a placeholder for any secret counts. A link to follow, or a URL
alone, counts only if its placeholder is for something from the conversation: the documentation of any interface
contains URLs with a placeholder for a key.
"""

import re
from collections.abc import Iterator
from urllib.parse import unquote

from actors.contract.text.decoding.disguised_stretches import Undecoded

CARRIES = "this link carries data away:"
"""The sentence about such a URL, before the placeholder's name; reflex's library of attacks has a signature for it."""

_IMAGE = re.compile(r"(?i)!\[[^\]\n]{0,200}\]\(\s*<?|<img\b[^>\n]{0,200}?src\s*=\s*[\"']?")
_ADDRESS = re.compile(r"(?i)(?:https?:)?//[^\s)\"']{0,512}[^\n)\"]{0,200}")
_BEFORE = 224
"""Characters before a URL in which the beginning of an image is looked for."""

_BACKSLASHES = re.compile(r"/\\|\\[/\\]")
"""What browsers take for ``//``."""

_SCHEME = re.compile(r"(?i)https?:$")
_BEFORE_ADDRESS = ("(", "<", '"', "'", "=", " ")
"""What may stand before the URL of an image."""

_MOST = 16_384
"""Most URLs of a text that are examined: as many as an input within the usual limits can have."""

# ``?data={name}``, ``/[name]``, ``=<name>``, ``=$(name)`` or ``=NAME``, also percent-encoded.
_PLACEHOLDER = re.compile(
    r"(?i)[?&/=][^?&/\n]{0,80}?(?:\$?\{{1,2}|\[|<|\$\(|%7B|=)(?P<name>[^{}\[\]<>()\n%&?/=]{3,80})(?:\}|\]|>|\)|%7D|&|$|\s)"
)
_MAY_HAVE_PLACEHOLDER = re.compile(r"[{\[<]|\$\(|%7[Bb]|=[A-Z_]{3}")
_OF_CONVERSATION = re.compile(
    r"(?i)(?:conversation|chat|dialog(?:ue)?)(?:[ _-]?(?:history|log|so[ _-]far|summary|above|text|content))|"
    r"(?:summary|contents?|text|copy|history|base64)[ _-](?:of[ _-])?(?:the[ _-]|this[ _-]|your[ _-])?"
    r"(?:conversation|chat|dialog|messages)|system[ _-]?prompt|"
    r"(?:last|previous|all|user'?s?)[ _-](?:user[ _-])?(?:messages?|emails|secrets?|data|password)\b"
)
_SECRET = re.compile(
    r"(?i)conversation|history|system[ _-]?prompt|secret|passw|credential|api[ _-]?key|user[ _']?s?[ _-]?data"
)


def exfiltration_sentences(text: str) -> Iterator[str | Undecoded]:
    """Yield a sentence for each URL in a text that carries data away."""
    text = _BACKSLASHES.sub("//", text)
    found: dict[str, None] = {}
    end = 0
    starts = _addresses(text)
    for start in starts[:_MOST]:
        match = _ADDRESS.match(text, start) if start >= end else None
        end = match.end() if match is not None else end
        if match is None or not _MAY_HAVE_PLACEHOLDER.search(match[0]):
            continue
        is_image = _is_image(text, start)
        for placeholder in _PLACEHOLDER.finditer(unquote(match[0])):
            name = placeholder["name"]
            if (_SECRET if is_image else _OF_CONVERSATION).search(name) and (
                placeholder[0].rstrip()[-1:] in "}]>)" or name.isupper()
            ):
                found[name] = None
    if found:
        yield "\n".join(f"{CARRIES} {name}" for name in found)
    if len(starts) > _MOST:
        yield Undecoded(len(text) - starts[_MOST])


def _addresses(text: str) -> list[int]:
    """Return where URLs begin.

    Without ``https:`` only an image's counts, since the page that shows it has a scheme: other text that begins so is a
    program's comment, say.
    """
    starts = []
    slashes = text.find("//")
    while slashes >= 0:
        scheme = _SCHEME.search(text, max(0, slashes - len("https:")), slashes)
        if scheme is not None:
            starts.append(scheme.start())
        elif text[slashes - 1 : slashes] in _BEFORE_ADDRESS and _is_image(text, slashes):
            starts.append(slashes)
        slashes = text.find("//", slashes + 2)
    return starts


def _is_image(text: str, start: int) -> bool:
    """Whether the URL that begins at ``start`` is an image's."""
    before = text[max(0, start - _BEFORE) : start]
    return any(image.end() == len(before) for image in _IMAGE.finditer(before))
