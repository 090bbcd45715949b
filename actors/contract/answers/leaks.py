"""How much of the system prompt is in an answer. Pure.

Of each system layer of at least ``LEAST_WORDS`` words, the share of its runs of five words that the answer has. A
prompt may hold material that is meant to be repeated, such as opening hours: only where most of a layer is in an answer
has it been given away.
"""

import codecs
import re
from collections.abc import Iterable, Iterator, Sequence

from actors.contract.answers.prompt import Prompt

LEAST_WORDS = 20
"""Words from which a system layer counts: of fewer, too much is said in other places, too."""

_RUN = 5
_WORDS = re.compile(r"\w+")

Runs = frozenset[tuple[str, ...]]


class Leaks:
    """The runs of the system layers of a prompt that were seen in an answer so far."""

    def __init__(self, prompt: Prompt) -> None:
        self._layers = [runs for layer in prompt.layers if layer.role == "system" and (runs := _of(layer.content))]
        self._seen: list[set[tuple[str, ...]]] = [set() for _ in self._layers]

    def __bool__(self) -> bool:
        return bool(self._layers)

    def read(self, view: str) -> None:
        """Count the runs in a text, or in a part of one."""
        if self._layers:
            said = _runs(_words(view))
            for runs, seen in zip(self._layers, self._seen, strict=True):
                seen |= runs & said

    @property
    def share(self) -> float:
        """The highest share of a layer that was seen."""
        shares = (len(seen) / len(runs) for runs, seen in zip(self._layers, self._seen, strict=True))
        return round(max(shares, default=0.0), 6)


def leaked(prompt: Prompt, views: Iterable[str]) -> float:
    """Return the highest share of a system layer that is in one of the views of an answer."""
    highest = 0.0
    for view in views:
        leaks = Leaks(prompt)
        if not leaks:
            break
        leaks.read(view)
        highest = max(highest, leaks.share)
    return highest


def turned(text: str) -> Iterator[str]:
    """Yield a text backwards, and in rot13."""
    yield text[::-1]
    yield codecs.encode(text, "rot13")


def _words(text: str) -> Sequence[str]:
    return _WORDS.findall(text.casefold())


def _of(content: str) -> Runs:
    words = _words(content)
    return _runs(words) if len(words) >= LEAST_WORDS else frozenset()


def _runs(words: Sequence[str]) -> Runs:
    return frozenset(zip(*(words[at:] for at in range(_RUN)), strict=False))
