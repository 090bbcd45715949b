"""What comes in from outside. Owner: ``gateway``, the edge that accepts inputs."""

from itertools import chain, islice
from typing import Annotated, Literal

import msgspec

from schemas.actor import Scope
from schemas.entry import Entry
from schemas.event import Event, Milliseconds, Personal
from schemas.intake.limits import MOST_LAYERS

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

    ``left_out`` counts layers beyond ``schemas.intake.limits.MOST_LAYERS``, which no reader of the event gets to see:
    every guard counts them against the input (``layers``, in its ``unread``), and it is refused. No edge takes so many.
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
    left_out: Annotated[int, msgspec.Meta(ge=0)] = 0

    def __post_init__(self) -> None:
        """Take documents and tool results as layers of those roles, and no more layers than anybody looks at."""
        given = len(self.layers) + len(self.documents) + len(self.tool_results)
        if given == len(self.layers) <= MOST_LAYERS:
            return
        # Made one by one, and no more than are kept: a message of the log has room for two hundred thousand texts.
        more = chain(
            (Layer(role="document", content=content) for content in self.documents),
            (Layer(role="tool", content=content) for content in self.tool_results),
        )
        layers = (*self.layers[:MOST_LAYERS], *islice(more, max(0, MOST_LAYERS - len(self.layers))))
        left_out = self.left_out + given - len(layers)
        for name, value in (("layers", layers), ("documents", ()), ("tool_results", ()), ("left_out", left_out)):
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
