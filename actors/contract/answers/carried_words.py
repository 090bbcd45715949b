"""Tells whether a URL carries words of a prompt to its host. Pure."""

import base64
import binascii
import re
from collections.abc import Iterable, Iterator, Mapping

from actors.contract.answers.urls import split_url, undone

CARRIED_IN_QUERY, CARRIED_ELSEWHERE = 8, 16
"""Fewest successive letters or digits of the prompt that count, in a value of the query and anywhere else."""

_LONGEST_ADDRESS = 4_096
"""Most characters of a URL that is read."""

_PERCENT_ENCODED = re.compile(rb"%([0-9a-fA-F]{2})")
_NOT_ALPHANUMERIC = re.compile(r"[\W_]+")


class PromptWords:
    """The texts of a prompt, and the sequences of letters and digits in them, once a URL is compared with them."""

    def __init__(self, texts: tuple[str, ...]) -> None:
        self._texts = texts
        self._undone: tuple[str, ...] | None = None  # texts that ``undone`` changes; None until a URL is compared
        self._sequences: Mapping[int, frozenset[str]] | None = None

    def carried_by(self, address: str) -> bool:
        """Whether a URL that is not in the prompt carries words of it."""
        if any(address in part for part in self._texts):
            return False
        if self._undone is None:
            self._undone = tuple(plain for part in self._texts if (plain := undone(part)) != part)
        if any(address in part for part in self._undone):
            return False
        if self._sequences is None:
            self._sequences = {
                least: _sequences_of(self._texts, least) for least in (CARRIED_IN_QUERY, CARRIED_ELSEWHERE)
            }
        return _carries(address, self._sequences)


def _sequences_of(texts: Iterable[str], length: int) -> frozenset[str]:
    """Return all sequences of ``length`` letters and digits in some texts: a set lookup is faster than a search."""
    return frozenset(
        letters[at : at + length] for letters in map(_alphanumeric, texts) for at in range(len(letters) - length + 1)
    )


def _carries(address: str, sequences: Mapping[int, frozenset[str]]) -> bool:
    if len(address) > _LONGEST_ADDRESS:
        return True
    host, path, query, fragment = split_url(address)
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


def _percent_decoded(part: str) -> str:
    raw = _PERCENT_ENCODED.sub(
        lambda found: bytes.fromhex(found[1].decode()), part.replace("+", " ").encode(errors="replace")
    )
    return raw.decode(errors="replace")


def _alphanumeric(text: str) -> str:
    return _NOT_ALPHANUMERIC.sub("", text).casefold()
