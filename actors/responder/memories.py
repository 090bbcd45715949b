"""What an answer has before it: the memories that fit, each with its share. Pure."""

import re
from collections.abc import Iterable, Sequence

import msgspec

from actors.contract.text.shortening import estimate
from actors.responder.pending import Case, Turn
from actors.responder.quoting import quote
from schemas.vocabulary.memory import NO_LONGER_SO, Fact, Layer, Recollection, Retired
from schemas.vocabulary.responder import Entity

_TELLING: frozenset[Layer] = frozenset({"fact", "turn", "gist", "episode"})
"""Layers whose memories say something by themselves; a concept is only a word."""

FENCE_TOKENS = 40
"""Tokens that the two lines around a block of a prompt come to at most, with the empty line after it."""

_ANSWERED = (" Answered: ", " \u2192 ")
"""What stands in a gist or a turn before the agent's answer."""

_SHARE_DIGITS = 6
_RECOGNISED = 60
_WORD = re.compile(r"\w+")


class Memory(msgspec.Struct, frozen=True, kw_only=True):
    """A memory of the context: its text on one line, and the tokens that its line in a prompt comes to."""

    id: str
    layer: Layer
    energy: float
    text: str
    tokens: int
    echo: bool = False

    @property
    def line(self) -> str:
        """The memory as a line of a prompt."""
        return _line(self.layer, self.energy, self.text)


def memories_of(case: Case, room: int | None = None) -> tuple[Memory, ...]:
    """Return what the exchange recalled and found that fits the budget, and no more than is set.

    The budget is the settings', or ``room`` where that is given.

    What people told comes first, then echoes of what was only asked and answered; among these the strongest. So the
    agent's own answers take no place of a fact. Of a memory that came to mind twice the stronger counts, and of several
    with the same words one. One without words (a forgotten one) is none, and one that
    does not fit leaves its room to weaker ones.
    """
    settings = case.settings
    left = (settings.memory_tokens if room is None else room) - FENCE_TOKENS
    kept: list[Memory] = []
    texts: set[str] = set()
    for each in by_energy_told_first((*case.pending.findings, *case.pending.recollections)):
        text = quote(each.text, settings.quote_limit)
        tokens = estimate(_line(each.layer, each.energy, text) + "\n")
        if text and text not in texts and tokens <= left and len(kept) < settings.memory_most:
            left -= tokens
            texts.add(text)
            memory = Memory(id=each.id, layer=each.layer, energy=each.energy, text=text, tokens=tokens, echo=each.echo)
            kept.append(memory)
    return tuple(kept)


def entities_of(memories: Sequence[Memory]) -> tuple[Entity, ...]:
    """Return the memories as they are put on record; their shares of the tokens of all add up to 1."""
    total = sum(each.tokens for each in memories)
    return tuple(
        Entity(
            id=each.id,
            layer=each.layer,
            energy=each.energy,
            tokens=each.tokens,
            share=round(each.tokens / total, _SHARE_DIGITS),
        )
        for each in memories
    )


def not_in_turns(memories: Iterable[Memory], turns: Sequence[Turn]) -> tuple[Memory, ...]:
    """Return the memories without those of turns that are told as turns already: they hold how those began."""
    begun = [_words(turn.said)[:_RECOGNISED] for turn in turns]
    return tuple(each for each in memories if each.layer != "turn" or not _holds_any(_words(each.text), begun))


def _holds_any(text: str, beginnings: Iterable[str]) -> bool:
    return any(beginning in text for beginning in beginnings)


def tellable(memories: Iterable[Memory], energy: float) -> tuple[Memory, ...]:
    """Return the memories that can be told as they are, from ``energy`` on.

    A question that has no answer with it tells nothing, and neither does what is retired.
    """
    return tuple(each for each in memories if each.layer in _TELLING and each.energy >= energy and _tells(each))


def without_retired(memories: Iterable[Memory], retired: Sequence[Retired]) -> tuple[Memory, ...]:
    """Return the memories without facts that the words to be answered take back, and the exchanges that told them."""
    gone = {f"fact:{each.fact}" for each in retired}
    gone.update(
        f"{layer}:{number}" for each in retired for number in each.exchanges for layer in ("turn", "gist", "episode")
    )
    return tuple(each for each in memories if each.id not in gone)


def fact_line(fact: Fact | Retired) -> str:
    """Return a fact in a line, as memory tells it when it comes to mind."""
    return f"{fact.key}: {fact.value}"


def _tells(memory: Memory) -> bool:
    has_answer = any(mark in memory.text for mark in _ANSWERED)
    return not memory.echo or (has_answer and not memory.text.endswith(NO_LONGER_SO))


def by_energy_told_first(found: Iterable[Recollection]) -> list[Recollection]:
    """Return recollections: those that were told, then echoes, each by energy; of one that came twice the stronger."""
    strongest: dict[str, Recollection] = {}
    for each in found:
        if each.id not in strongest or each.energy > strongest[each.id].energy:
            strongest[each.id] = each
    return sorted(strongest.values(), key=lambda each: (each.echo, -each.energy, each.id))


def _words(text: str) -> str:
    return f" {' '.join(_WORD.findall(text.casefold()))} "


def _line(layer: Layer, energy: float, text: str) -> str:
    return f"- {layer}, {energy:.2f}: {text}"
