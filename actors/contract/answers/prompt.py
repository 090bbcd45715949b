"""What a model was asked: the parts of its prompt that the answer is compared with."""

import re
from typing import NamedTuple, get_args

from schemas.effectors.model_calls import ModelCall
from schemas.vocabulary.gateway import Layer, Role

_BLOCK = re.compile(r"\[data ([0-9a-f]+): (\w+)[^\]\n]*\]\n(.*?)\n\[end of data \1\]", re.DOTALL)


class Prompt(NamedTuple):
    """The parts of a prompt that the answer is compared with."""

    text: str
    layers: tuple[Layer, ...]


def prompt_of(call: ModelCall) -> Prompt:
    """Return what a call of ours asks; text in data blocks does not count as the person's own."""
    layers = [Layer(role=said.role, content=said.content) for said in call.messages if said.role != "user"]
    texts = []
    for said in call.messages:
        if said.role == "user":
            layers += (_layer(kind, body) for _, kind, body in _BLOCK.findall(said.content))
            texts.append(_BLOCK.sub("", said.content))
    return Prompt("\n".join(texts), tuple(layers))


def _layer(kind: str, body: str) -> Layer:
    roles: dict[str, Role] = {role: role for role in get_args(Role)}
    return Layer(role=roles.get(kind, "document"), content=body)
