"""An answer as a stream of server-sent events, each a chunk as OpenAI has them. Pure."""

from collections.abc import Iterator
from typing import Literal

import msgspec

from actors.gateway.http.openai.answers import Decision, Finish, Usage, completion_id

DONE = b"data: [DONE]\n\n"
"""The end of a stream."""


class Delta(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A piece of an answer."""

    role: str | None = None
    content: str | None = None


class ChunkChoice(msgspec.Struct, frozen=True, kw_only=True):
    """What a chunk adds to the one answer."""

    index: int = 0
    delta: Delta
    logprobs: None = None
    finish_reason: Finish | None = None


class ChatChunk(msgspec.Struct, frozen=True, kw_only=True):
    """A chunk of a stream. The last one with choices has ``neuraxis``; a further one has the usage, if asked for."""

    id: str
    object: Literal["chat.completion.chunk"] = "chat.completion.chunk"
    created: int
    model: str
    choices: tuple[ChunkChoice, ...]
    usage: Usage | msgspec.UnsetType | None = msgspec.UNSET
    neuraxis: Decision | msgspec.UnsetType = msgspec.UNSET


class Chunks:
    """Makes the events of one stream; if its usage is wanted, every chunk has that field."""

    def __init__(self, exchange: str, created: int, model: str, *, with_usage: bool) -> None:
        self._id = completion_id(exchange)
        self._created = created
        self._model = model
        self._with_usage = with_usage

    def begin(self) -> bytes:
        """Return the event that names the role of the speaker."""
        return self._event((ChunkChoice(delta=Delta(role="assistant", content="")),))

    def text(self, text: str) -> bytes:
        """Return the event for a piece of text."""
        return self._event((ChunkChoice(delta=Delta(content=text)),))

    def end(self, rest: str, finish: Finish, decision: Decision, usage: Usage) -> Iterator[bytes]:
        """Yield the events that end a stream: the rest of its text, how it ended, and the usage where it is wanted."""
        if rest:
            yield self.text(rest)
        yield self._event((ChunkChoice(delta=Delta(), finish_reason=finish),), decision)
        if self._with_usage:
            yield self._event((), usage=usage)
        yield DONE

    def _event(
        self,
        choices: tuple[ChunkChoice, ...],
        decision: Decision | msgspec.UnsetType = msgspec.UNSET,
        usage: Usage | None = None,
    ) -> bytes:
        counted = usage if self._with_usage else msgspec.UNSET
        return event_of(
            ChatChunk(
                id=self._id,
                created=self._created,
                model=self._model,
                choices=choices,
                usage=counted,
                neuraxis=decision,
            )
        )


def event_of(body: object) -> bytes:
    """Return a body as a server-sent event."""
    return b"data: " + msgspec.json.encode(body) + b"\n\n"
