"""Finds pictures in an answer whose URLs send words of the prompt to their hosts. Pure.

A program that displays an answer loads its pictures without a click, so the URL of a picture is a message to its
host. A URL that is not in the prompt itself counts if it contains words of the prompt: at least
``CARRIED_IN_QUERY`` letters or digits in a value of its query, or ``CARRIED_ELSEWHERE`` elsewhere; plainly, or in
base64 or hex. URLs that are too long to be read count, and so do those beyond the number that is examined. Links that
must be clicked are not checked: they may well repeat what was asked for.
"""

import base64
import binascii
import re
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
_PICTURES = (
    re.compile(rf"!\[[^\]\n]{{0,500}}\]\(\s*<?{_ADDRESS}", re.IGNORECASE),
    re.compile(rf"<img\b[^>]{{0,500}}?\bsrc\s*=\s*[\"']?{_ADDRESS}", re.IGNORECASE),
)
# Markdown may name the URL of a picture elsewhere in the text: ``![title][label]`` and ``[label]: URL``.
_BY_REFERENCE = re.compile(r"!\[[^\]\n]{0,500}\]\s?\[|!\[[^\]\n]{1,500}\](?![\(\[])")
_REFERENCE = re.compile(rf"^[ ]{{0,3}}\[[^\]\n]{{1,500}}\]:\s*<?{_ADDRESS}", re.IGNORECASE | re.MULTILINE)

_NO_PROMPT = Prompt("", ())


class Pictures:
    """The pictures found in an answer so far that carry words of its prompt.

    Text is read in overlapping parts. URLs beyond the number that is examined count as carrying words.

    Attributes:
        hosts: The hosts of these pictures, in order of occurrence, each once.
    """

    def __init__(self, prompt: Prompt) -> None:
        self._prompt = _PromptWords((prompt.text, *(layer.content for layer in prompt.layers)))
        # The URLs examined so far, and whether each carries words; whether a picture names its URL by a label; and the
        # URLs of all labels, any of which may be a picture's.
        self._examined: dict[str, bool] = {}
        self._by_reference = False
        self._defined: dict[str, None] = {}
        self.hosts: tuple[str, ...] = ()

    def for_another_text(self) -> "Pictures":
        """Return a copy that has read nothing yet. What is known of the prompt is shared."""
        another = Pictures(_NO_PROMPT)
        another._prompt = self._prompt
        return another

    def read(self, text: str) -> None:
        """Examine the pictures in a text, or in a part of one."""
        self._by_reference = self._by_reference or bool(_BY_REFERENCE.search(text))
        for address in _REFERENCE.findall(text):
            if len(self._defined) <= MOST_ADDRESSES:
                self._defined[address] = None
        pictured = [address for form in _PICTURES for address in form.findall(text)]
        if self._by_reference:
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
        self._sequences: Mapping[int, frozenset[str]] | None = None

    def carried_by(self, address: str) -> bool:
        """Whether a URL that is not in the prompt carries words of it."""
        if any(address in part for part in self._texts):
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
