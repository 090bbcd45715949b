"""Reads the answer of another model from the bytes that are forwarded, for the record and later histories. Pure.

The bytes are never changed. Reading is tolerant: an answer in an unknown format is recorded as plain text.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from actors.gateway.forwarded_inputs import answer_of
from actors.gateway.http.openai.messages import ReadMessage, read_message, words_in
from actors.gateway.http.openai.passthrough.guarding import Place, index_of, texts_in
from schemas.intake.sse import DONE, Events, is_stream
from schemas.vocabulary.gateway import AnswerChoice, InputAnswered, ToolCall


class RelayedAnswer(msgspec.Struct, frozen=True):
    """An answer as it is recorded, and as the guards will read its first choice in the history of the next request.

    ``failed``: the endpoint reported an error within its stream.
    """

    answer: InputAnswered
    said: ReadMessage | None = None
    failed: bool = False


_BESIDE = frozenset({"message", "delta", "logprobs"})
"""Of a choice: the message, which is read by itself, and its own words once more, one by one."""

_SHORTEST, _LONGEST_ADDRESS = 16, 4_096
"""Characters of a text without white space beside a message's words that is read."""


def read_whole_answer(body: bytes) -> RelayedAnswer:
    """Return what a body says: an answer, or events in one piece, whatever their type was said to be."""
    found = _object(body)
    choices = _list(found.get("choices"))
    if not choices and is_stream(body[:64]) and (streamed := read_streamed_answer(body)).said is not None:
        return streamed
    if not choices:
        # JSON may write a sign as another one: what it means is read beside what it is.
        meant = [text for _, text in texts_in(found)] if b"\\" in body else []
        return RelayedAnswer(answer_of([AnswerChoice(text="\n".join((body.decode("utf-8", "replace"), *meant)))]))
    messages = [_mapping(choice.get("message")) for choice in choices]
    beside = [{name: value for name, value in found.items() if name != "choices"}]
    beside += [{name: value for name, value in choice.items() if name not in _BESIDE} for choice in choices]
    return _relayed_answer(found, messages, [choice.get("finish_reason") for choice in choices], _words(beside))


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
    heard = _relayed_answer(told, [each.message for each in ordered], [each.finish for each in ordered])
    return msgspec.structs.replace(heard, failed=failed)


class _Parts:
    """One choice of a stream, put together."""

    def __init__(self) -> None:
        self.finish: Any = None
        self._texts: dict[Place, list[str]] = {}
        self._calls: dict[int, dict[str, str]] = {}

    @property
    def message(self) -> dict[str, Any]:
        """The message that the pieces make; texts at a depth are named by their places."""
        said = {".".join(map(str, place)): "".join(each) for place, each in self._texts.items()}
        found: dict[str, Any] = {"role": "assistant", **said}
        if self._calls:
            calls = [self._calls[index] for index in sorted(self._calls)]
            found["tool_calls"] = [{"function": call} for call in calls]
        return found

    def take(self, choice: Mapping[str, Any]) -> None:
        """Take what a chunk adds."""
        self.finish = choice.get("finish_reason") or self.finish
        delta = _mapping(choice.get("delta"))
        for place, text in texts_in({key: value for key, value in delta.items() if key not in ("role", "tool_calls")}):
            self._texts.setdefault(place, []).append(text)
        for at, call in enumerate(_list(delta.get("tool_calls"))):
            whole = self._calls.setdefault(index_of(call, at), {"name": "", "arguments": ""})
            added = _called(call)
            whole["name"] += added.name
            whole["arguments"] += added.arguments


def _relayed_answer(
    body: Mapping[str, Any], messages: Sequence[Mapping[str, Any]], finishes: Iterable[Any], beside: str = ""
) -> RelayedAnswer:
    usage = _mapping(body.get("usage"))
    choices = [_choice(message, finish) for message, finish in zip(messages, finishes, strict=True)]
    if beside:
        choices[0] = msgspec.structs.replace(choices[0], text="\n".join(filter(None, (choices[0].text, beside))))
    answer = answer_of(
        choices,
        model=body["model"] if isinstance(body.get("model"), str) else "",
        prompt_tokens=_count(usage.get("prompt_tokens")),
        completion_tokens=_count(usage.get("completion_tokens")),
    )
    return RelayedAnswer(answer, read_message({**messages[0], "role": "assistant"}))


def _choice(message: Mapping[str, Any], finish: Any) -> AnswerChoice:
    # All that an answer says beside its text, such as what it thought, or why it refuses, is the model's words, too.
    calls = _list(message.get("tool_calls"))
    beside = {key: value for key, value in message.items() if key != "tool_calls"}
    text = read_message({**beside, "role": "assistant"}).words
    unnamed = [{key: value for key, value in call.items() if key not in ("function", "custom")} for call in calls]
    return AnswerChoice(
        text="\n".join(filter(None, (text, _words((beside, *unnamed), set(words_in(beside)))))),
        tool_calls=tuple(map(_called, calls)),
        finish_reason=_text(finish),
    )


def _called(call: Mapping[str, Any]) -> ToolCall:
    """Return a call, or what a chunk adds to one: of a function, or of a tool that takes text as it is."""
    called = _mapping(call.get("function")) or _mapping(call.get("custom"))
    given = called.get("arguments", called.get("input", ""))
    # Some write an object in the place of its JSON.
    arguments = given if isinstance(given, str) else msgspec.json.encode(given).decode() if given else ""
    return ToolCall(name=_text(called.get("name")), arguments=arguments)


def _words(values: Iterable[Any], known: Collection[str] = ()) -> str:
    """Return the texts in some values, but for those that are known: whatever is delivered has to be read.

    A short word is a kind or a name, and one that is longer than any address is a file.
    """
    texts = (text for value in values for _, text in texts_in(value) if text not in known)
    return "\n".join(
        text for text in texts if _SHORTEST <= len(text) <= _LONGEST_ADDRESS or any(map(str.isspace, text))
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
