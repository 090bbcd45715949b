"""The fields of an input as callers write it: its text, and everything else that goes into the prompt. Pure.

``documents`` and ``tool_results`` are plain names for retrieved texts and for the output of tools. They become layers
with those roles, so that every guard that reads layers reads them.
"""

from typing import Annotated

import msgspec

from schemas.vocabulary.gateway import Layer, Role

Name = Annotated[str, msgspec.Meta(min_length=1)]
"""A name that is not empty; a caller without one leaves the field out."""


class Attachment(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A document or a tool's result, where it is written as an object."""

    content: str


class InputLayer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A layer of the prompt; see ``schemas.vocabulary.gateway.Layer``, which the log reads more tolerantly."""

    role: Role
    content: str


class InputContext(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The kind of situation that an input belongs to, which precedents are compared by."""

    situation: Name = "general"


Attachments = tuple[str | Attachment, ...] | None
"""Documents or results of tools, each written as a text or as an object."""


class InputParts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The fields of an input besides its text, the same in every format that has inputs."""

    context: Name | InputContext | None = None
    layers: tuple[InputLayer, ...] | None = None
    documents: Attachments = None
    tool_results: Attachments = None


def situation_of(parts: InputParts) -> str:
    """Return the situation of an input; ``general`` where none is named."""
    context = parts.context
    return (context.situation if isinstance(context, InputContext) else context) or "general"


def layers_of(parts: InputParts) -> tuple[Layer, ...]:
    """Return everything beside the text as layers: first those written as layers, then documents, then tool results."""
    return (
        *(Layer(role=layer.role, content=layer.content) for layer in parts.layers or ()),
        *(Layer(role="document", content=_content(each)) for each in parts.documents or ()),
        *(Layer(role="tool", content=_content(each)) for each in parts.tool_results or ()),
    )


def _content(attached: str | Attachment) -> str:
    return attached if isinstance(attached, str) else attached.content
