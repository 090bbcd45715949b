"""What a model was asked: the parts of its prompt that the answer is compared with."""

import re
from typing import NamedTuple, get_args

from schemas.effectors.model_calls import ModelCall
from schemas.vocabulary.gateway import Layer, Role

# A data block is text of others within a message of the user, between ``[data KEY: role]`` and ``[end of data KEY]``.
_START = re.compile(r"\[data ([0-9a-f]+): (\w{1,40})[^\]\n]{0,200}\]\n")
_END = re.compile(r"\n\[end of data ([0-9a-f]+)\]")


class Prompt(NamedTuple):
    """``text`` is what the user wrote, ``layers`` are the other parts: system prompt, documents, earlier answers."""

    text: str
    layers: tuple[Layer, ...]


def prompt_of(call: ModelCall) -> Prompt:
    """Return the prompt of a model call; text in data blocks does not count as the user's own."""
    layers = [Layer(role=message.role, content=message.content) for message in call.messages if message.role != "user"]
    texts = []
    for message in call.messages:
        if message.role == "user":
            text, blocks = _without_blocks(message.content)
            texts.append(text)
            layers += blocks
    return Prompt("\n".join(texts), tuple(layers))


def _without_blocks(content: str) -> tuple[str, list[Layer]]:
    """Return a message without its data blocks, and these as layers.

    The last end of each key is looked up first: text of a user may begin many blocks that never end, and a search to
    the end of the message for each would take quadratic time.
    """
    last_ends = {end[1]: end.start() for end in _END.finditer(content)}
    kept, blocks, position = list[str](), list[Layer](), 0
    start = _START.search(content) if last_ends else None
    while start is not None:
        upto = start.end()
        if last_ends.get(start[1], -1) >= upto:
            end_line = f"\n[end of data {start[1]}]"
            end = content.index(end_line, upto)
            blocks.append(_layer(start[2], content[upto:end]))
            kept.append(content[position : start.start()])
            position = upto = end + len(end_line)
        start = _START.search(content, upto)
    return "".join((*kept, content[position:])), blocks


def _layer(kind: str, body: str) -> Layer:
    roles: dict[str, Role] = {role: role for role in get_args(Role)}
    return Layer(role=roles.get(kind, "document"), content=body)
