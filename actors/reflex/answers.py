"""What a model's answer gives away that it should not: the system prompt, or words of the prompt in a link. Pure.

**The system prompt.** Of each system layer of at least ``LEAST_WORDS`` words, the share of its runs of five words that
the answer has, in any view that reflex reads texts in (decoded, reversed, ...). A prompt may hold material that is
meant to be repeated, such as opening hours: only where most of a layer is in an answer has it been given away.

**Links.** A picture is fetched by whoever shows the answer, without anybody's click, so that its address is a letter to
its host. One whose address is not in the prompt as it stands, and has words of the prompt in it, carries them away: in
a value of its query, ``CARRIED_IN_QUERY`` letters or digits or more; elsewhere in it, ``CARRIED_ELSEWHERE``; plainly,
or in base64 or hex. Addresses that are too long to be read, and more of them than are looked at, count as such. A link
that is to be clicked on may well repeat what was asked for.
"""

import base64
import binascii
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from schemas.vocabulary.gateway import InputAnswered, Layer

LEAST_WORDS = 20
"""Words from which a system layer counts: of fewer, too much is said in other places, too."""

CARRIED_IN_QUERY, CARRIED_ELSEWHERE = 8, 16
_RUN = 5
_MOST_ADDRESSES = 256
_LONGEST_ADDRESS, _LONGEST_HOST = 4_096, 253

_SPLIT = re.compile(r"https?://([^/?#]*)([^?#]*)(?:\?([^#]*))?(?:#(.*))?", re.IGNORECASE | re.DOTALL)
_QUOTED = re.compile(rb"%([0-9a-fA-F]{2})")
_WORDS = re.compile(r"\w+")
_SIGNS = re.compile(r"[\W_]+")
_PLAIN = r"[^\s<>()\"']"
_ADDRESS = rf"(https?://(?:{_PLAIN}|\((?:{_PLAIN}|\({_PLAIN}*\))*\))+)"
_PICTURES = (
    re.compile(rf"!\[[^\]\n]{{0,500}}\]\(\s*<?{_ADDRESS}", re.IGNORECASE),
    re.compile(rf"<img\b[^>]{{0,500}}?\bsrc\s*=\s*[\"']?{_ADDRESS}", re.IGNORECASE),
)
_BY_REFERENCE = re.compile(r"!\[[^\]\n]{0,500}\]\s?\[|!\[[^\]\n]{1,500}\](?![\(\[])")
_REFERENCE = re.compile(rf"^[ ]{{0,3}}\[[^\]\n]{{1,500}}\]:\s*<?{_ADDRESS}", re.IGNORECASE | re.MULTILINE)


class Prompt(NamedTuple):
    """What a model was asked, as far as its answer is compared with it."""

    text: str
    layers: tuple[Layer, ...]


def texts_in(answer: InputAnswered) -> tuple[str, ...]:
    """Return all that an answer says: the texts of its choices, and the arguments of the calls that it asks for."""
    said = (
        text for choice in answer.choices for text in (choice.text, *(call.arguments for call in choice.tool_calls))
    )
    return tuple(filter(str.strip, said))


def leaked(prompt: Prompt, views: Iterable[str]) -> float:
    """Return the highest share of a system layer that is in one of the views of an answer."""
    layers = [runs for layer in prompt.layers if layer.role == "system" and (runs := _runs_of_layer(layer.content))]
    if not layers:
        return 0.0
    highest = 0.0
    for view in views:
        said = _runs(_words(view))
        highest = max(highest, *(len(runs & said) / len(runs) for runs in layers))
    return round(highest, 6)


def hosts_written_to(prompt: Prompt, answer: InputAnswered) -> tuple[str, ...]:
    """Return the hosts of the pictures in an answer that carry words of the prompt away, in their order, once each."""
    addresses = list(dict.fromkeys(address for choice in answer.choices for address in _pictures(choice.text)))
    if not addresses:
        return ()
    parts = (prompt.text, *(layer.content for layer in prompt.layers))
    looked_at, others = addresses[:_MOST_ADDRESSES], addresses[_MOST_ADDRESSES:]
    fresh = [address for address in looked_at if not any(address in part for part in parts)]
    known = {least: _grams(parts, least) for least in (CARRIED_IN_QUERY, CARRIED_ELSEWHERE)} if fresh else {}
    # What is too much to be looked at is not vouched for.
    return tuple(dict.fromkeys(map(_host, (*(each for each in fresh if _carries(each, known)), *others))))


def _pictures(text: str) -> Iterator[str]:
    for form in _PICTURES:
        yield from form.findall(text)
    if _BY_REFERENCE.search(text):
        yield from _REFERENCE.findall(text)


def _grams(parts: Iterable[str], length: int) -> frozenset[str]:
    """Return all stretches of letters and digits of a length that are in some texts: looked up, not searched for."""
    return frozenset(bare[at : at + length] for bare in map(_bare, parts) for at in range(len(bare) - length + 1))


def _carries(address: str, known: Mapping[int, frozenset[str]]) -> bool:
    if len(address) > _LONGEST_ADDRESS:
        return True
    host, path, query, fragment = _parts(address)
    values = re.split(r"[&;=]", query)
    others = (*host.split("."), *path.split("/"), fragment)
    return any(_told(value, known, CARRIED_IN_QUERY) for value in values) or any(
        _told(other, known, CARRIED_ELSEWHERE) for other in others
    )


def _told(written: str, known: Mapping[int, frozenset[str]], least: int) -> bool:
    """Whether a stretch of ``least`` letters and digits is known."""
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
    """Return the host, path, query and fragment of an address, as a browser would: whatever stands in them."""
    found = _SPLIT.match(address)
    return ("", "", "", "") if found is None else (found[1], found[2], found[3] or "", found[4] or "")


def _unquoted(written: str) -> str:
    raw = _QUOTED.sub(lambda found: bytes.fromhex(found[1].decode()), written.replace("+", " ").encode())
    return raw.decode(errors="replace")


def _bare(text: str) -> str:
    return _SIGNS.sub("", text).casefold()


def _words(text: str) -> Sequence[str]:
    return _WORDS.findall(text.casefold())


def _runs_of_layer(content: str) -> frozenset[tuple[str, ...]]:
    words = _words(content)
    return _runs(words) if len(words) >= LEAST_WORDS else frozenset()


def _runs(words: Sequence[str]) -> frozenset[tuple[str, ...]]:
    return frozenset(zip(*(words[at:] for at in range(_RUN)), strict=False))
