"""What comes in from outside. Owner: ``gateway``, the edge that accepts inputs."""

from typing import Literal

import msgspec

from schemas.actor import Scope
from schemas.entry import Entry
from schemas.event import Event, Milliseconds, Personal

Role = Literal["system", "user", "tool", "document"]


class Layer(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a prompt and the role it speaks in."""

    role: Role
    content: Personal


class InputReceived(Event, frozen=True, kw_only=True, tag="forged_id.input.received"):
    """An input was accepted: from here on it gets exactly one ``response.emitted``.

    ``text`` is what the user said; ``layers`` are the other parts of the prompt, if any. ``reply_to`` is a NATS
    inbox for a copy of the answer (empty: none). The exchange is ended as FAILED when nothing else has ended it
    ``deadline_after_ms`` after the server stored it. ``label`` is the caller's own id for the input; ``stream``:
    ``reply_to`` also gets the answer's text in parts while a model speaks.

    ``documents`` and ``tool_results`` are for publishers of their own, who may write them by these names. Whoever reads
    the event finds them among ``layers``, behind those, and nowhere else: no guard can leave them out.
    """

    text: Personal
    layers: tuple[Layer, ...] = ()
    situation: str = "general"
    reply_to: str = ""
    deadline_after_ms: Milliseconds = 60_000
    label: str = ""
    stream: bool = False
    documents: tuple[Personal, ...] = ()
    tool_results: tuple[Personal, ...] = ()

    def __post_init__(self) -> None:
        """Take documents and tool results as layers of those roles."""
        if not self.documents and not self.tool_results:
            return
        layers = (
            *self.layers,
            *(Layer(role="document", content=content) for content in self.documents),
            *(Layer(role="tool", content=content) for content in self.tool_results),
        )
        for name, value in (("layers", layers), ("documents", ()), ("tool_results", ())):
            msgspec.structs.force_setattr(self, name, value)


ENTRIES = (
    Entry(
        event=InputReceived,
        owner="gateway",
        scope=Scope.SESSION,
        meaning="An input was accepted; it will get exactly one response.emitted.",
        sample=InputReceived(text="What is the capital of Peru?", label="line-1"),
    ),
)
