"""Fits a prompt into the context that a model turned out to have. Pure.

The actor that asks limits the prompt. But the model's real context may be smaller, and only its endpoint knows it.
Earlier turns are dropped first. Then the person's last message is cut: its text and each of its data blocks separately,
keeping both ends and the questions of each, so that no data leaves its block. Instructions are cut last.
"""

import re
from collections.abc import Sequence

import msgspec

from actors.contract.text.shortening import estimate, shares, shorten
from schemas.effectors.model_calls import Cut, ModelCall, Said, Shortened

_PER_MESSAGE = 8
_LEAST = 64
_OPENED = re.compile(r"\[data (\w{1,40}): ([^\]\n]{0,200})\]\n")


def fit_to_context(call: ModelCall, context: int, density: float = 1.0) -> tuple[ModelCall, tuple[Cut, ...]]:
    """Return a call whose prompt and answer fit into ``context`` tokens (0: unknown), and what was cut for that.

    Args:
        call: What was asked.
        context: The context of the model, in its own tokens.
        density: The number of the model's tokens for each of our estimated tokens.
    """
    if not context:
        return call, ()
    answer = min(call.most_tokens, max(16, context // 3))
    room = int((context - answer) / density) - _PER_MESSAGE * len(call.messages)
    if answer == call.most_tokens and _size(call.messages) <= room:
        return call, ()
    messages, cuts = _without_turns(call.messages, room)
    if (over := _size(messages) - room) > 0:
        last = messages[-1].content
        content, more = _shortened(last, max(_LEAST, estimate(last) - over))
        messages, cuts = [*messages[:-1], msgspec.structs.replace(messages[-1], content=content)], [*cuts, *more]
    if (over := _size(messages) - room) > 0 and messages[0].role == "system":
        shortened = shorten(messages[0].content, max(_LEAST, estimate(messages[0].content) - over))
        messages[0] = msgspec.structs.replace(messages[0], content=shortened.text)
        cuts = [*cuts, *_cut("prompt", shortened)]
    return msgspec.structs.replace(call, messages=tuple(messages), most_tokens=answer), tuple(cuts)


def _without_turns(messages: Sequence[Said], room: int) -> tuple[list[Said], list[Cut]]:
    """Drop the oldest turns, each question with its answer, until the rest fits, or none is left."""
    first = 1 if messages[0].role == "system" else 0
    turns, kept = list(messages[first:-1]), list(messages[first:-1])
    while kept and _size([*messages[:first], *kept, messages[-1]]) > room:
        kept = kept[2:]
    whole, left = (sum(len(said.content) for said in each) for each in (turns, kept))
    cuts = [Cut(part="turns", characters=whole, kept=left)] if left < whole else []
    return [*messages[:first], *kept, messages[-1]], cuts


def _shortened(content: str, room: int) -> tuple[str, list[Cut]]:
    names, spans = [], []
    at, key = 0, ""
    # Blocks come first. Text that looks like a block after the person's text begins is part of that text.
    while (opened := _OPENED.match(content, at)) is not None and opened[1] == (key or opened[1]):
        key = opened[1]
        closed = f"\n[end of data {key}]"
        end = content.find(closed, opened.end() - 1)
        if end < 0:
            break
        names.append(opened[2])
        spans.append((opened.end(), max(opened.end(), end)))
        at = end + len(closed)
        at += len(content[at : at + 2]) - len(content[at : at + 2].lstrip("\n"))
    names, spans = [*names, "text"], [*spans, (at, len(content))]
    texts = [content[begin:end] for begin, end in spans]
    beside = estimate(content) - sum(map(estimate, texts))
    given = shares(list(map(estimate, texts)), room - max(0, beside))
    # The person's text has priority over the data that came with it.
    given[-1] = min(estimate(texts[-1]), max(given[-1], (room - max(0, beside)) // 2))
    left = room - max(0, beside) - given[-1]
    given[:-1] = shares(list(map(estimate, texts[:-1])), left)
    shown = [shorten(text, most) for text, most in zip(texts, given, strict=True)]
    parts, at = [], 0
    for (begin, end), each in zip(spans, shown, strict=True):
        parts += [content[at:begin], each.text]
        at = end
    return "".join(parts), [cut for name, each in zip(names, shown, strict=True) for cut in _cut(name, each)]


def _cut(part: str, shown: Shortened) -> list[Cut]:
    return [Cut(part=part, characters=shown.characters, kept=shown.kept)] if shown.kept < shown.characters else []


def _size(messages: Sequence[Said]) -> int:
    return sum(estimate(said.content) for said in messages)
