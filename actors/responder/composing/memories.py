"""Chooses the memories that an answer can use: those that fit into its prompt, the strongest first. Pure.

A gist is an exchange's summary in one line, an episode what is remembered of it for long. *Findings* are what an ACT
loop, which looks things up, has found.
"""

import re
from collections.abc import Iterable, Sequence

import msgspec

from actors.contract.text.shortening import estimate
from actors.responder.composing.quoting import quote
from actors.responder.pending import ExchangeContext, Turn
from schemas.vocabulary.memory import NO_LONGER_SO, Fact, Layer, Recollection, Retired
from schemas.vocabulary.responder import Entity

_QUOTABLE: frozenset[Layer] = frozenset({"fact", "turn", "gist", "episode"})
"""Layers of memory whose texts can be quoted; a concept (a term that occurred in exchanges) is only a word."""

DELIMITER_TOKENS = 40
"""Most tokens of the two lines around a block of a prompt, with the empty line after it."""

_ANSWER_MARKS = (" Answered: ", " \u2192 ")
"""What stands before the agent's answer in a gist, and in a turn."""

_SHARE_DIGITS = 6
"""Decimals of a memory's share."""

_RECOGNISED_CHARACTERS = 60
"""Number of first characters by which a turn is recognised in a memory."""

_WORD = re.compile(r"\w+")


class Memory(msgspec.Struct, frozen=True, kw_only=True):
    """A memory in a prompt: its text on one line, and the number of tokens of its line; ``energy``, from 0 to 1, says
    how strongly it was recalled.

    ``echo``: nobody stated it; a person only asked, and the rest is the agent's own answer.
    """

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


def memories_of(context: ExchangeContext, most_tokens: int | None = None) -> tuple[Memory, ...]:
    """Return the recalled memories and the findings that fit the token budget, up to the number in the settings.

    The budget is that of the settings, or ``most_tokens`` if it is given.

    Statements of people come first, then echoes of what was only asked and answered; within both the strongest first.
    So the agent's own answers do not displace facts. If a memory was recalled twice, the stronger one counts; of
    several with the same text one counts. A memory without text (a forgotten one) is left out. One that does not fit is
    left out, too, and weaker ones may still fit.
    """
    settings = context.settings
    left = (settings.memory_tokens if most_tokens is None else most_tokens) - DELIMITER_TOKENS
    kept: list[Memory] = []
    texts: set[str] = set()
    for each in statements_first((*context.pending.findings, *context.pending.recollections)):
        if len(kept) >= settings.memory_most:
            break
        text = quote(each.text, settings.quote_limit)
        if not text or text in texts:
            continue
        tokens = estimate(_line(each.layer, each.energy, text) + "\n")
        if tokens <= left:
            left -= tokens
            texts.add(text)
            memory = Memory(id=each.id, layer=each.layer, energy=each.energy, text=text, tokens=tokens, echo=each.echo)
            kept.append(memory)
    return tuple(kept)


def entities_of(memories: Sequence[Memory]) -> tuple[Entity, ...]:
    """Return the memories in recorded form; their shares of all tokens add up to 1."""
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
    """Return the memories without those of turns that the prompt shows anyway, since these contain the same text."""
    beginnings = [_words(turn.said)[:_RECOGNISED_CHARACTERS] for turn in turns]
    return tuple(each for each in memories if each.layer != "turn" or not _holds_any(_words(each.text), beginnings))


def _holds_any(text: str, beginnings: Iterable[str]) -> bool:
    return any(beginning in text for beginning in beginnings)


def quotable(memories: Iterable[Memory], energy: float) -> tuple[Memory, ...]:
    """Return the memories that can be quoted as they are, with at least this ``energy`` (strength of recall).

    A question without its answer is not quoted, and neither is a retired fact.
    """
    return tuple(each for each in memories if each.layer in _QUOTABLE and each.energy >= energy and _is_quotable(each))


def without_retired(memories: Iterable[Memory], retired: Sequence[Retired]) -> tuple[Memory, ...]:
    """Return the memories without the facts that the text to be answered takes back, and their exchanges."""
    gone = {f"fact:{each.fact}" for each in retired}
    gone.update(
        f"{layer}:{number}" for each in retired for number in each.exchanges for layer in ("turn", "gist", "episode")
    )
    return tuple(each for each in memories if each.id not in gone)


def fact_line(fact: Fact | Retired) -> str:
    """Return a fact in one line, in the same form as memory recalls it."""
    return f"{fact.key}: {fact.value}"


def _is_quotable(memory: Memory) -> bool:
    has_answer = any(mark in memory.text for mark in _ANSWER_MARKS)
    return not memory.echo or (has_answer and not memory.text.endswith(NO_LONGER_SO))


def statements_first(memories: Iterable[Recollection]) -> list[Recollection]:
    """Return recollections, statements before echoes, each by energy; of a memory recalled twice the stronger."""
    strongest: dict[str, Recollection] = {}
    for each in memories:
        if each.id not in strongest or each.energy > strongest[each.id].energy:
            strongest[each.id] = each
    return sorted(strongest.values(), key=lambda each: (each.echo, -each.energy, each.id))


def _words(text: str) -> str:
    return f" {' '.join(_WORD.findall(text.casefold()))} "


def _line(layer: Layer, energy: float, text: str) -> str:
    return f"- {layer}, {energy:.2f}: {text}"
