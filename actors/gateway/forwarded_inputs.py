"""The outcome of an input that was forwarded to a model chosen by its sender, as an event for the log."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from actors.gateway.external_events import WrappedEvent, build_event
from schemas.effectors.model_calls import MOST_TOKENS, Masked
from schemas.identity import event_id
from schemas.subjects import Partitions
from schemas.vocabulary.arbiter import ArbiterPassed
from schemas.vocabulary.gateway import (
    MOST_CHOICES,
    MOST_TOOL_CALLS,
    AnswerChoice,
    InputAbandoned,
    InputAnswered,
    ToolCall,
)

MOST_ANSWER_BYTES = 393_216
"""Bytes of an answer's texts, as JSON, that are recorded: the same limit as for an input, so that both fit."""

_LONGEST_NAME, _LONGEST_FINISH_REASON = 256, 64
"""Most characters of the name of a model or tool, and of a finish reason."""

_AROUND_A_CALL = 32
"""Bytes of JSON that a tool call takes besides its name and arguments."""


class PassedInput(msgspec.Struct, frozen=True, kw_only=True):
    """The arbiter's event that lets an input pass all guards, with its id, its sequence, and whose input it is.

    ``time_ns`` is when the log stored that event, in nanoseconds since 1970. ``masked`` lists the personal data for
    which the model is shown placeholders; ``recogniser`` names the program that found it, and its version.
    """

    exchange: str
    agent: str
    session: str
    event: ArbiterPassed
    id: str
    seq: int
    time_ns: int
    masked: tuple[Masked, ...] = ()
    recogniser: str = ""


def new_outcome(
    passed: PassedInput, outcome: InputAnswered | InputAbandoned, *, partitions: Partitions, now_ns: int
) -> WrappedEvent:
    """Wrap the outcome of a forwarded input. An exchange has one outcome.

    A second one is not stored within the deduplication window of the stream; after that, the first has ended the
    exchange.
    """
    outcome = msgspec.structs.replace(outcome, masked=passed.masked, recogniser=passed.recogniser)
    return build_event(
        outcome,
        id=event_id(passed.exchange, "gateway", 1),  # the input has index 0
        agent=passed.agent,
        session=passed.session,
        exchange=passed.exchange,
        cause=passed.id,
        cause_seq=passed.seq,
        partitions=partitions,
        now_ns=now_ns,
    )


def answer_of(
    choices: Iterable[AnswerChoice],
    *,
    model: str = "",
    prompt_tokens: int | None = None,
    completion_tokens: int | None = None,
) -> InputAnswered:
    """Return an answer as it is recorded: whole if it fits, else its beginning and a count of the characters left out.

    It is never refused: the model's answer has been paid for and may be delivered already.
    """
    kept, room = [], _Room(MOST_ANSWER_BYTES)
    given = tuple(choices)
    for choice in given[:MOST_CHOICES]:
        text = room.take(choice.text)
        calls = tuple(_calls(choice.tool_calls, room))
        finish_reason = _plain(choice.finish_reason)[:_LONGEST_FINISH_REASON]
        kept.append(AnswerChoice(text=text, tool_calls=calls, finish_reason=finish_reason))
    for choice in given[MOST_CHOICES:]:
        room.left_out += len(choice.text) + _arguments_length(choice.tool_calls)
    return InputAnswered(
        choices=tuple(kept),
        model=_plain(model)[:_LONGEST_NAME],
        prompt_tokens=_count(prompt_tokens),
        completion_tokens=_count(completion_tokens),
        left_out=room.left_out,
    )


def _calls(calls: Sequence[ToolCall], room: "_Room") -> Iterator[ToolCall]:
    for index, call in enumerate(calls):
        if index == MOST_TOOL_CALLS or not room.left:
            room.left_out += _arguments_length(calls[index:])
            return
        name = _plain(call.name)[:_LONGEST_NAME]
        room.spend(_size(name) + _AROUND_A_CALL)
        yield ToolCall(name=name, arguments=room.take(call.arguments))


class _Room:
    """The bytes that are left for an answer's texts, and the number of characters that did not fit."""

    def __init__(self, size: int) -> None:
        self.left = size
        self.left_out = 0

    def spend(self, size: int) -> None:
        """Subtract the size of something other than a text."""
        self.left = max(0, self.left - size)

    def take(self, text: str) -> str:
        """Return the beginning of a text, as much as fits."""
        kept = _plain(text[: self.left])  # every character takes at least a byte
        if _size(kept) > self.left:
            kept = kept[: bisect_right(range(len(kept)), self.left, key=lambda most: _size(kept[: most + 1]))]
        self.left_out += len(text) - len(kept)
        self.spend(_size(kept))
        return kept


def _size(text: str) -> int:
    return len(msgspec.json.encode(text)) - 2


def _plain(text: str) -> str:
    """Return a text without lone surrogates, which no message of the log can hold."""
    return text.encode("utf-8", "replace").decode()


def _arguments_length(calls: Iterable[ToolCall]) -> int:
    return sum(len(call.arguments) for call in calls)


def _count(tokens: int | None) -> int | None:
    return None if tokens is None or tokens < 0 else min(tokens, MOST_TOKENS)
