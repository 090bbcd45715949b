"""Finds pictures in an answer whose addresses send words of the prompt to their hosts. Pure.

A program that displays an answer loads its pictures without a click, so the address of a picture is a message to its
host. An address that is not in the prompt itself counts if it contains words of the prompt: at least
``CARRIED_IN_QUERY`` letters or digits in a value of its query, or ``CARRIED_ELSEWHERE`` elsewhere; plainly, or in
base64 or hex. Addresses that are too long to be read count, and so do those beyond the number that is examined. Links
that must be clicked are not checked: they may well repeat what was asked for.
"""

import base64
import binascii
import re
from collections.abc import Iterable, Iterator, Mapping

from actors.contract.answers.prompt import Prompt

CARRIED_IN_QUERY, CARRIED_ELSEWHERE = 8, 16
MOST_ADDRESSES = 256
"""Most addresses of an answer that are examined."""

_LONGEST_ADDRESS, _LONGEST_HOST = 4_096, 253

_SPLIT = re.compile(r"https?://([^/?#]*)([^?#]*)(?:\?([^#]*))?(?:#(.*))?", re.IGNORECASE | re.DOTALL)
_QUOTED = re.compile(rb"%([0-9a-fA-F]{2})")
_SIGNS = re.compile(r"[\W_]+")
_PLAIN = r"[^\s<>()\"']"
_ADDRESS = rf"(https?://(?:{_PLAIN}|\((?:{_PLAIN}|\({_PLAIN}*\))*\))+)"
_PICTURES = (
    re.compile(rf"!\[[^\]\n]{{0,500}}\]\(\s*<?{_ADDRESS}", re.IGNORECASE),
    re.compile(rf"<img\b[^>]{{0,500}}?\bsrc\s*=\s*[\"']?{_ADDRESS}", re.IGNORECASE),
)
_BY_REFERENCE = re.compile(r"!\[[^\]\n]{0,500}\]\s?\[|!\[[^\]\n]{1,500}\](?![\(\[])")
_REFERENCE = re.compile(rf"^[ ]{{0,3}}\[[^\]\n]{{1,500}}\]:\s*<?{_ADDRESS}", re.IGNORECASE | re.MULTILINE)


class Links:
    """The pictures found in an answer so far that carry words of its prompt.

    Text is read in overlapping parts. Addresses beyond the number that is examined count as carrying.
    """

    def __init__(self, prompt: Prompt) -> None:
        self._parts = (prompt.text, *(layer.content for layer in prompt.layers))
        self._known: Mapping[int, frozenset[str]] | None = None
        self._looked_at: dict[str, bool] = {}
        self._by_reference = False
        self._defined: dict[str, None] = {}
        self.hosts: tuple[str, ...] = ()

    def read(self, text: str) -> None:
        """Examine the pictures in a text, or in a part of one."""
        self._by_reference = self._by_reference or bool(_BY_REFERENCE.search(text))
        for address in _REFERENCE.findall(text):
            if len(self._defined) <= MOST_ADDRESSES:
                self._defined[address] = None
        pictured = [address for form in _PICTURES for address in form.findall(text)]
        if self._by_reference:
            pictured += self._defined
        found = [_host(address) for address in pictured if address not in self._looked_at and self._look(address)]
        self.hosts = tuple(dict.fromkeys((*self.hosts, *found)))

    def _look(self, address: str) -> bool:
        if len(self._looked_at) >= MOST_ADDRESSES:
            return True  # what is too much to be looked at is not vouched for
        carries = not any(address in part for part in self._parts) and self._carries(address)
        self._looked_at[address] = carries
        return carries

    def _carries(self, address: str) -> bool:
        if self._known is None:
            self._known = {least: _grams(self._parts, least) for least in (CARRIED_IN_QUERY, CARRIED_ELSEWHERE)}
        return _carries(address, self._known)


def hosts_written_to(prompt: Prompt, texts: Iterable[str]) -> tuple[str, ...]:
    """Return the hosts of pictures in texts that carry words of the prompt, in order, each once."""
    links = Links(prompt)
    for text in texts:
        links.read(text)
    return links.hosts


def _grams(parts: Iterable[str], length: int) -> frozenset[str]:
    """Return all sequences of letters and digits of one length in some texts: a set lookup is faster than a search."""
    return frozenset(bare[at : at + length] for bare in map(_bare, parts) for at in range(len(bare) - length + 1))


def _carries(address: str, known: Mapping[int, frozenset[str]]) -> bool:
    if len(address) > _LONGEST_ADDRESS:
        return True
    host, path, query, fragment = _parts(address)
    values = re.split(r"[&;=]", query)
    others = (*host.split("."), *path.split("/"), fragment)
    return any(_holds_known(value, known, CARRIED_IN_QUERY) for value in values) or any(
        _holds_known(other, known, CARRIED_ELSEWHERE) for other in others
    )


def _holds_known(written: str, known: Mapping[int, frozenset[str]], least: int) -> bool:
    """Whether any sequence of ``least`` letters and digits is known."""
    for reading in _readings(_unquoted(written)):
        bare = _bare(reading)
        if any(bare[at : at + least] in known[least] for at in range(len(bare) - least + 1)):
            return True
    return False


def _readings(written: str) -> Iterator[str]:
    yield written
    for decode in (_from_base64, _from_hex):
        try:
            yield decode(written).decode()
        except (binascii.Error, ValueError):
            continue


def _from_base64(written: str) -> bytes:
    plain = written.strip().rstrip("=").replace("-", "+").replace("_", "/")
    return base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)


def _from_hex(written: str) -> bytes:
    return bytes.fromhex(written)


def _host(address: str) -> str:
    return _parts(address)[0].rpartition("@")[2].casefold()[:_LONGEST_HOST]


def _parts(address: str) -> tuple[str, str, str, str]:
    """Return the host, path, query and fragment of an address as a browser would parse it, whatever it contains."""
    found = _SPLIT.match(address)
    return ("", "", "", "") if found is None else (found[1], found[2], found[3] or "", found[4] or "")


def _unquoted(written: str) -> str:
    raw = _QUOTED.sub(lambda found: bytes.fromhex(found[1].decode()), written.replace("+", " ").encode())
    return raw.decode(errors="replace")


def _bare(text: str) -> str:
    return _SIGNS.sub("", text).casefold()
