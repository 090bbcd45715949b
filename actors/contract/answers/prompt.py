"""What a model was asked: the parts of its prompt that the answer is compared with."""

import re
from typing import NamedTuple, get_args

from schemas.effectors.model_calls import ModelCall
from schemas.vocabulary.gateway import Layer, Role

# A data block: text of others within a message of the user, between ``[data KEY: role]`` and ``[end of data KEY]``.
_BLOCK = re.compile(r"\[data ([0-9a-f]+): (\w+)[^\]\n]*\]\n(.*?)\n\[end of data \1\]", re.DOTALL)


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
            layers += (_layer(kind, body) for _, kind, body in _BLOCK.findall(message.content))
            texts.append(_BLOCK.sub("", message.content))
    return Prompt("\n".join(texts), tuple(layers))


def _layer(kind: str, body: str) -> Layer:
    roles: dict[str, Role] = {role: role for role in get_args(Role)}
    return Layer(role=roles.get(kind, "document"), content=body)
