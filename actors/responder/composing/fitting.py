"""Fits a prompt into a model's context: how many tokens each part may take, and what was cut. Pure.

The instructions and the answer have priority. Memories, earlier turns and an earlier answer have limits of their own,
which are lower where the context is small. The rest is for the person's text and the data that came with it. Neither is
cut while both fit; otherwise the text gets at least half of the rest.
"""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from actors.contract.text.shortening import estimate, shares, shorten
from actors.responder.composing.memories import DELIMITER_TOKENS, Memory, statements_first
from actors.responder.pending import ExchangeContext, Turn
from actors.responder.settings import ResponderSettings
from schemas.effectors.model_calls import Cut, Shortened
from schemas.vocabulary.gateway import Layer

LEAST_BLOCK = 16
"""Fewest tokens of a block of data; a shorter one is left out, since nothing can be read from it."""

_LEAST_LEFT = 64
"""Tokens that are always planned for everything besides the instructions."""

_PER_MESSAGE, _MOST_MESSAGES = 8, 12
"""Tokens that a model's chat template adds to each message, and the number of messages that this is reserved for."""


class TokenBudget(msgspec.Struct, frozen=True):
    """Most tokens for each part of a prompt, and for the answer; ``left`` is for all parts besides the instructions.

    ``draft`` is for an earlier answer that is to be improved.
    """

    answer: int
    left: int
    memories: int
    turns: int
    draft: int


def token_budget(settings: ResponderSettings, instructions: int) -> TokenBudget:
    """Return the limits of all other parts, given the tokens of the instructions."""
    context = settings.context_tokens
    answer = min(settings.answer_tokens, context // 3)
    left = max(_LEAST_LEFT, context - answer - instructions - _PER_MESSAGE * _MOST_MESSAGES)
    return TokenBudget(
        answer=answer,
        left=left,
        memories=min(settings.memory_tokens, left // 5),
        turns=min(settings.turn_tokens, left // 5),
        draft=min(settings.draft_tokens, left // 8),
    )


def instructions(texts: Mapping[str, str], settings: ResponderSettings) -> dict[str, Shortened]:
    """Return the instructions as they are shown: whole, unless they leave no room for anything else."""
    if sum(map(estimate, texts.values())) <= settings.context_tokens // 2:
        return {name: Shortened(text, len(text), len(text)) for name, text in texts.items()}
    given = shares([estimate(text) for text in texts.values()], settings.context_tokens // 2)
    return {name: shorten(text, most) for (name, text), most in zip(texts.items(), given, strict=True)}


def text_and_layers(
    text: str, layers: Sequence[Layer], left: int, settings: ResponderSettings
) -> tuple[Shortened, dict[str, Shortened]]:
    """Return a person's text and the blocks of the layers (data sent with it), fitted into ``left`` tokens."""
    layer_tokens = sum(estimate(layer.content) + DELIMITER_TOKENS for layer in layers)
    most = max(left // 2, left - min(layer_tokens, settings.layer_tokens))
    shown = shorten(text, min(settings.input_tokens, most))
    return shown, layer_blocks(layers, min(settings.layer_tokens, left - estimate(shown.text)))


def layer_blocks(layers: Sequence[Layer], tokens: int) -> dict[str, Shortened]:
    """Return layers as blocks by name, of at most ``tokens`` including their delimiters (the lines around a block).

    Short ones are whole, long ones share the rest equally. If there are too many, those in the middle are left out:
    their text is empty.
    """
    names = [f"{layer.role}, part {number} of {len(layers)}" for number, layer in enumerate(layers, 1)]
    fitting = min(len(layers), max(0, tokens) // (DELIMITER_TOKENS + LEAST_BLOCK))
    shown_indices = [*range(-(-fitting // 2)), *range(len(layers) - fitting // 2, len(layers))]
    contents = [layers[index].content for index in shown_indices]
    given = shares([estimate(content) for content in contents], tokens - DELIMITER_TOKENS * len(contents))
    shown = {name: Shortened("", len(layer.content), 0) for name, layer in zip(names, layers, strict=True)}
    for index, content, most in zip(shown_indices, contents, given, strict=True):
        shown[names[index]] = shorten(content, most)
    return shown


def latest(turns: Sequence[Turn], tokens: int) -> tuple[Turn, ...]:
    """Return the last turns that fit into ``tokens`` together, oldest first."""
    kept: list[Turn] = []
    for turn in reversed(_complete_turns(turns)):
        tokens -= estimate(turn.said) + estimate(turn.answered)
        if tokens < 0:
            break
        kept.insert(0, turn)
    return tuple(kept)


def cut_of_turns(turns: Sequence[Turn], kept: Sequence[Turn]) -> list[Cut]:
    """Return what a prompt lacks of the session's turns: what was cut when a turn was stored, and turns left out."""
    whole = sum(max(turn.characters, len(turn.said) + len(turn.answered)) for turn in _complete_turns(turns))
    return _cut("turns", whole, sum(turn.kept or len(turn.said) + len(turn.answered) for turn in kept))


def cut_of_memories(context: ExchangeContext, memories: Iterable[Memory]) -> list[Cut]:
    """Return what a prompt lacks of the first ``memory_most`` memories; more are never shown.

    A memory with the same text as another one is not missing: one stands for both.
    """
    kept = {each.id: each for each in memories}
    whole: dict[str, int] = {}
    texts: set[str] = set()
    for each in statements_first((*context.pending.findings, *context.pending.recollections)):
        text = " ".join(each.text.split())
        if text and (each.id in kept or text not in texts):
            whole[each.id] = len(text)
            texts.add(text)
    kept_lengths = {name: len(each.text) - 1 if each.text.endswith("…") else whole[name] for name, each in kept.items()}
    kept_first = [each for each in whole if each in kept] + [each for each in whole if each not in kept]
    return _cut(
        "memories", sum(whole[each] for each in kept_first[: context.settings.memory_most]), sum(kept_lengths.values())
    )


def _complete_turns(turns: Sequence[Turn]) -> list[Turn]:
    return [turn for turn in turns if turn.said and turn.answered]


def _cut(part: str, characters: int, kept: int) -> list[Cut]:
    return [Cut(part=part, characters=characters, kept=kept)] if kept < characters else []
