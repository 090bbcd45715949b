"""Links and images with a place in their address for what nobody outside is to have: they carry it away when opened.

An image is fetched by whoever shows it, so that any secret in its address counts; a link to follow, or an address that
stands by itself, only if its place is for what was said, since the description of any interface has addresses with a
place for a key.
"""

import re
from collections.abc import Iterator
from urllib.parse import unquote

CARRIES = "this link carries data away:"
"""What is said of such an address, before the name of the place: a signature of the library."""

_ADDRESS = re.compile(
    r"(!\[[^\]\n]{0,200}\]\(|<img\b[^>\n]{0,200}?src\s*=\s*[\"']?)?(https?://[^\s)\"']*[^\n)\"]{0,200})"
)
_PLACE = re.compile(
    r"(?i)[?&/=][^?&/\n]{0,80}?(?:\$?\{{1,2}|\[|<|\$\(|%7B|=)(?P<name>[^{}\[\]<>()\n%&?/=]{3,80})(?:\}|\]|>|\)|%7D|&|$|\s)"
)
_OPENS = "{[<"
_SAID = re.compile(
    r"(?i)(?:conversation|chat|dialog(?:ue)?)(?:[ _-]?(?:history|log|so[ _-]far|summary|above|text|content))|"
    r"(?:summary|contents?|text|copy|history|base64)[ _-](?:of[ _-])?(?:the[ _-]|this[ _-]|your[ _-])?"
    r"(?:conversation|chat|dialog|messages)|system[ _-]?prompt|"
    r"(?:last|previous|all|user'?s?)[ _-](?:user[ _-])?(?:messages?|emails|secrets?|data|password)\b"
)
_SECRET = re.compile(
    r"(?i)conversation|history|system[ _-]?prompt|secret|passw|credential|api[ _-]?key|user[ _']?s?[ _-]?data"
)


def carriers(text: str) -> Iterator[str]:
    """Yield a sentence for each address of a text that carries data away."""
    if "http" not in text:
        return
    found: dict[str, None] = {}
    for match in _ADDRESS.finditer(text):
        sought = _SECRET if match[1] else _SAID
        for place in _PLACE.finditer(unquote(match[2])):
            name = place["name"]
            if sought.search(name) and (place[0].rstrip()[-1:] in "}]>)" or name.isupper()):
                found[name] = None
    if found:
        yield "\n".join(f"{CARRIES} {name}" for name in found)
