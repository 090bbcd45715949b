"""How much of the system prompt is in an answer. Pure.

For each system layer (an operator's instructions) of at least ``LEAST_WORDS`` words: the share of its sequences of five
words that the answer contains. A prompt may hold facts that are meant to be repeated, such as opening hours. So a layer
counts as revealed only if most of it is in the answer.
"""

import codecs
import re
from collections.abc import Iterable, Iterator, Sequence
from copy import copy

from actors.contract.answers.prompt import Prompt
from actors.contract.text.decoding.escapes import with_blanks

LEAST_WORDS = 20
"""Fewest words of a system layer that is checked: most sequences of a shorter one occur in ordinary answers, too."""

_RUN_WORDS = 5
"""Words of a sequence that is looked for."""

_WORDS = re.compile(r"\w+")

Runs = frozenset[tuple[str, ...]]
"""The sequences of words of a text."""


class Leaks:
    """The sequences of the prompt's system layers that have been seen in an answer so far."""

    def __init__(self, prompt: Prompt) -> None:
        self._layers = [
            runs for layer in prompt.layers if layer.role == "system" and (runs := _layer_runs(layer.content))
        ]
        self._seen: list[set[tuple[str, ...]]] = [set() for _ in self._layers]

    def __bool__(self) -> bool:
        return bool(self._layers)

    def for_another_text(self) -> "Leaks":
        """Return a copy in which nothing was seen yet. The sequences of the prompt, which may be many, are shared."""
        another = copy(self)
        another._seen = [set() for _ in self._layers]
        return another

    def read(self, view: str) -> None:
        """Note which sequences occur in a text, or in a part of one."""
        if self._layers:
            in_view = _runs(_words(view))
            for runs, seen in zip(self._layers, self._seen, strict=True):
                seen |= runs & in_view

    @property
    def share(self) -> float:
        """The share of the layer that was seen most."""
        shares = (len(seen) / len(runs) for runs, seen in zip(self._layers, self._seen, strict=True))
        return round(max(shares, default=0.0), 6)


def leaked(prompt: Prompt, views: Iterable[str]) -> float:
    """Return the highest share of a system layer that is in one view of an answer (the answer itself, or decoded)."""
    highest, of_prompt = 0.0, Leaks(prompt)
    for view in views if of_prompt else ():
        leaks = of_prompt.for_another_text()
        leaks.read(view)
        highest = max(highest, leaks.share)
    return highest


def reversed_and_rot13(text: str) -> Iterator[str]:
    """Yield a text reversed, and in rot13."""
    yield text[::-1]
    yield codecs.encode(text, "rot13")


def _words(text: str) -> Sequence[str]:
    # The arguments of a tool call are JSON, in which a line end is written ``\n``: its letter would join the next word.
    return _WORDS.findall(with_blanks(text).casefold())


def _layer_runs(content: str) -> Runs:
    words = _words(content)
    return _runs(words) if len(words) >= LEAST_WORDS else frozenset()


def _runs(words: Sequence[str]) -> Runs:
    return frozenset(zip(*(words[at:] for at in range(_RUN_WORDS)), strict=False))
