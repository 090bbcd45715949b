"""Fits a prompt into the context that a model turned out to have. Pure.

The actor that asks limits the prompt. But the model's real context may be smaller, and only its endpoint knows it.
Earlier turns are dropped first. Then the last message is cut. It consists of blocks of data, such as documents, each
between ``[data KEY: name]`` and ``[end of data KEY]``, and of the person's text after them. Text and blocks are cut
separately, keeping both ends and the questions of each, so that no data leaves its block. Instructions are cut last.
"""

import re
from collections.abc import Sequence

import msgspec

from actors.contract.text.shortening import estimate, shares, shorten
from schemas.effectors.model_calls import ChatMessage, Cut, ModelCall, Shortened

_PER_MESSAGE = 8
"""Tokens that a model's chat template adds to each message."""

_LEAST = 64
"""Tokens that a message is not cut below."""

_BLOCK_START = re.compile(r"\[data (\w{1,40}): ([^\]\n]{0,200})\]\n")
"""The line before a block: its key and its name (written by ``schemas.wording.delimited_blocks``)."""


def fit_to_context(call: ModelCall, context: int, density: float = 1.0) -> tuple[ModelCall, tuple[Cut, ...]]:
    """Return a call whose prompt and answer fit into ``context`` tokens (0: unknown), and what was cut for that.

    Args:
        call: What was asked.
        context: The context of the model, in its own tokens.
        density: The number of the model's tokens for each token that ``estimate`` counts.
    """
    if not context:
        return call, ()
    answer = min(call.most_tokens, max(16, context // 3))
    most = int((context - answer) / density) - _PER_MESSAGE * len(call.messages)
    if answer == call.most_tokens and _size(call.messages) <= most:
        return call, ()
    messages, cuts = _without_turns(call.messages, most)
    if (excess := _size(messages) - most) > 0:
        last = messages[-1].content
        content, more = _shortened(last, max(_LEAST, estimate(last) - excess))
        messages, cuts = [*messages[:-1], msgspec.structs.replace(messages[-1], content=content)], [*cuts, *more]
    if (excess := _size(messages) - most) > 0 and messages[0].role == "system":
        shortened = shorten(messages[0].content, max(_LEAST, estimate(messages[0].content) - excess))
        messages[0] = msgspec.structs.replace(messages[0], content=shortened.text)
        cuts = [*cuts, *_cut("prompt", shortened)]
    return msgspec.structs.replace(call, messages=tuple(messages), most_tokens=answer), tuple(cuts)


def _without_turns(messages: Sequence[ChatMessage], most: int) -> tuple[list[ChatMessage], list[Cut]]:
    """Drop the oldest turns, each question with its answer, until the rest fits, or none is left."""
    first = 1 if messages[0].role == "system" else 0
    turns, kept = list(messages[first:-1]), list(messages[first:-1])
    while kept and _size([*messages[:first], *kept, messages[-1]]) > most:
        kept = kept[2:]
    before, after = (sum(len(message.content) for message in each) for each in (turns, kept))
    cuts = [Cut(part="turns", characters=before, kept=after)] if after < before else []
    return [*messages[:first], *kept, messages[-1]], cuts


def _shortened(content: str, most: int) -> tuple[str, list[Cut]]:
    names, spans = [], []
    position, key = 0, ""
    # Blocks come first. Text that looks like a block after the person's text begins is part of that text.
    while (start := _BLOCK_START.match(content, position)) is not None and start[1] == (key or start[1]):
        key = start[1]
        end_line = f"\n[end of data {key}]"
        end = content.find(end_line, start.end() - 1)
        if end < 0:
            break
        names.append(start[2])
        spans.append((start.end(), max(start.end(), end)))
        position = end + len(end_line)
        # Skip the empty line after the block.
        position += len(content[position : position + 2]) - len(content[position : position + 2].lstrip("\n"))
    names, spans = [*names, "text"], [*spans, (position, len(content))]
    texts = [content[first:end] for first, end in spans]
    delimiter_tokens = estimate(content) - sum(map(estimate, texts))
    given = shares(list(map(estimate, texts)), most - max(0, delimiter_tokens))
    # The person's text has priority over the data that came with it.
    given[-1] = min(estimate(texts[-1]), max(given[-1], (most - max(0, delimiter_tokens)) // 2))
    left_for_blocks = most - max(0, delimiter_tokens) - given[-1]
    given[:-1] = shares(list(map(estimate, texts[:-1])), left_for_blocks)
    shown = [shorten(text, most) for text, most in zip(texts, given, strict=True)]
    parts, position = [], 0
    for (first, end), each in zip(spans, shown, strict=True):
        parts += [content[position:first], each.text]
        position = end
    return "".join(parts), [cut for name, each in zip(names, shown, strict=True) for cut in _cut(name, each)]


def _cut(part: str, shown: Shortened) -> list[Cut]:
    return [Cut(part=part, characters=shown.characters, kept=shown.kept)] if shown.kept < shown.characters else []


def _size(messages: Sequence[ChatMessage]) -> int:
    return sum(estimate(message.content) for message in messages)
