"""Reads the answer of another model from the bytes that are forwarded, for the record and later histories. Pure.

The bytes are never changed. Reading is tolerant: an answer in an unknown format is recorded as plain text.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from actors.gateway.forwarded_inputs import answer_of
from actors.gateway.http.openai.messages import ReadMessage, read_message
from schemas.intake.sse import DONE, Events
from schemas.vocabulary.gateway import AnswerChoice, InputAnswered, ToolCall


class RelayedAnswer(msgspec.Struct, frozen=True):
    """An answer as it is recorded, and as the guards will read its first choice in the history of the next request.

    ``failed``: the endpoint reported an error within its stream.
    """

    answer: InputAnswered
    said: ReadMessage | None = None
    failed: bool = False


def read_whole_answer(body: bytes) -> RelayedAnswer:
    """Return what a body says."""
    found = _object(body)
    choices = _list(found.get("choices"))
    if not choices:
        return RelayedAnswer(answer_of([AnswerChoice(text=body.decode("utf-8", "replace"))]))
    messages = [_mapping(choice.get("message")) for choice in choices]
    return _heard(found, messages, [choice.get("finish_reason") for choice in choices])


def read_streamed_answer(body: bytes) -> RelayedAnswer:
    """Return the answer in a stream of events that was forwarded."""
    events = Events()
    chunks = [_object(event.data) for event in (*events.take(body), *events.end()) if event.data.strip() != DONE]
    parts: dict[int, _Parts] = {}
    told: dict[str, Any] = {}
    for chunk in chunks:
        # Usage comes in a chunk of its own, whose choices are empty or null.
        told |= {name: chunk[name] for name in ("model", "usage") if chunk.get(name)}
        for choice in _list(chunk.get("choices")):
            index = choice.get("index")
            parts.setdefault(index if isinstance(index, int) else 0, _Parts()).take(choice)
    failed = any("error" in chunk for chunk in chunks)
    if not parts:
        text = "" if failed else body.decode("utf-8", "replace")
        return RelayedAnswer(answer_of([AnswerChoice(text=text)]), failed=failed)
    ordered = [parts[index] for index in sorted(parts)]
    heard = _heard(told, [each.message for each in ordered], [each.finish for each in ordered])
    return msgspec.structs.replace(heard, failed=failed)


class _Parts:
    """One choice of a stream, put together."""

    def __init__(self) -> None:
        self.finish: Any = None
        self._texts: dict[str, list[str]] = {}
        self._calls: dict[int, dict[str, str]] = {}

    @property
    def message(self) -> dict[str, Any]:
        """The message that the pieces make."""
        found: dict[str, Any] = {"role": "assistant", **{key: "".join(each) for key, each in self._texts.items()}}
        if self._calls:
            calls = [self._calls[index] for index in sorted(self._calls)]
            found["tool_calls"] = [{"function": call} for call in calls]
        return found

    def take(self, choice: Mapping[str, Any]) -> None:
        """Take what a chunk adds."""
        self.finish = choice.get("finish_reason") or self.finish
        delta = _mapping(choice.get("delta"))
        for key, value in delta.items():
            if isinstance(value, str) and key != "role":
                self._texts.setdefault(key, []).append(value)
        for place, call in enumerate(_list(delta.get("tool_calls"))):
            index = call.get("index")
            whole = self._calls.setdefault(index if isinstance(index, int) else place, {"name": "", "arguments": ""})
            function = _mapping(call.get("function"))
            for key in whole:
                if isinstance(function.get(key), str):
                    whole[key] += function[key]


def _heard(told: Mapping[str, Any], messages: Sequence[Mapping[str, Any]], finishes: Iterable[Any]) -> RelayedAnswer:
    usage = _mapping(told.get("usage"))
    answer = answer_of(
        [_choice(message, finish) for message, finish in zip(messages, finishes, strict=True)],
        model=told["model"] if isinstance(told.get("model"), str) else "",
        prompt_tokens=_count(usage.get("prompt_tokens")),
        completion_tokens=_count(usage.get("completion_tokens")),
    )
    return RelayedAnswer(answer, read_message({**messages[0], "role": "assistant"}))


def _choice(message: Mapping[str, Any], finish: Any) -> AnswerChoice:
    # All that an answer says beside its text, such as what it thought, or why it refuses, is the model's words, too.
    called = [_mapping(call.get("function")) for call in _list(message.get("tool_calls"))]
    beside = {key: value for key, value in message.items() if key != "tool_calls"}
    return AnswerChoice(
        text=read_message({**beside, "role": "assistant"}).words,
        tool_calls=tuple(
            ToolCall(name=_text(call.get("name")), arguments=_text(call.get("arguments"))) for call in called
        ),
        finish_reason=_text(finish),
    )


def _object(data: bytes) -> dict[str, Any]:
    try:
        return _mapping(msgspec.json.decode(data))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
