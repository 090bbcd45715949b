"""Reads the answer of an upstream's model from the bytes that are forwarded, for the record and histories. Pure.

The bytes are never changed. Reading is tolerant: an answer in an unknown format is recorded as plain text.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from actors.contract.answers.credentials import keys_in
from actors.gateway.forwarded_inputs import answer_of
from actors.gateway.http.openai.messages import ReadMessage, all_text_in, read_message
from actors.gateway.http.openai.passthrough.guarding import TextPath, index_of, json_values, texts_in
from schemas.intake.sse import DONE, Events, is_stream
from schemas.vocabulary.gateway import MOST_CHOICES, AnswerChoice, InputAnswered, ToolCall


class RelayedAnswer(msgspec.Struct, frozen=True):
    """An answer as it is recorded; ``message`` is its first choice as a message of the next request's history.

    ``failed``: the endpoint reported an error within its stream. ``left_unread``: more is delivered than is recorded,
    such as ``logprobs``, so reflex does not read all of it.
    """

    answer: InputAnswered
    message: ReadMessage | None = None
    failed: bool = False
    left_unread: bool = False


_LEFT_OUT = frozenset({"message", "delta", "logprobs"})
"""Keys of a choice that are left out: the message is read by itself, and ``logprobs`` should repeat it by tokens."""

_SHORTEST, _LONGEST_ADDRESS = 16, 4_096
"""Fewest and most characters of a text without white space that is read, outside a message's content.

A shorter one is a kind or a name, and a longer one, which is longer than any address, is a file.
"""


def read_whole_answer(body: bytes) -> RelayedAnswer:
    """Return the answer in a body: a completion, JSON lines, or a stream of events under another content type."""
    found = _object(body)
    choices = _list(found.get("choices"))
    has_more = any(choice.get("logprobs") or choice.get("delta") for choice in choices)
    if not choices:
        chunks = _chunks(body) if is_stream(body[:64]) else json_values(body)
        answer = _answer_of_chunks(chunks, body)
    else:
        # Only the length of further choices is recorded; ``left_unread`` has their texts read as well.
        further, choices = choices[MOST_CHOICES:], choices[:MOST_CHOICES]
        messages = [_mapping(choice.get("message")) for choice in choices]
        others = [{name: value for name, value in found.items() if name != "choices"}]
        others += [{name: value for name, value in choice.items() if name not in _LEFT_OUT} for choice in choices]
        endings = [choice.get("finish_reason") for choice in choices]
        answer = _relayed_answer(found, messages, endings, _words(others))
        left_out = sum(len(_text(_mapping(choice.get("message")).get("content"))) for choice in further)
        recorded = msgspec.structs.replace(answer.answer, left_out=answer.answer.left_out + left_out)
        answer, has_more = msgspec.structs.replace(answer, answer=recorded), has_more or bool(further)
    # A key may also be in a name or an id, which are not recorded.
    has_key = next(keys_in(body.decode("utf-8", "replace")), None) is not None
    left_unread = not choices or has_more or has_key or answer.answer.left_out > 0
    return msgspec.structs.replace(answer, failed=False, left_unread=left_unread)


def read_streamed_answer(body: bytes) -> RelayedAnswer:
    """Return the answer in a stream of events that was forwarded."""
    return _answer_of_chunks(_chunks(body), body)


def _chunks(body: bytes) -> list[Any]:
    events = Events()
    data = (event.data for event in (*events.feed(body), *events.end()) if event.data.strip() != DONE)
    return [value for each in data for value in json_values(each)]


def _answer_of_chunks(values: Sequence[Any], body: bytes) -> RelayedAnswer:
    """Return the answer whose parts are in some JSON values; without choices in them, all their texts as one."""
    chunks = [value for value in values if isinstance(value, dict)]
    parts: dict[int, _StreamedChoice] = {}
    stated: dict[str, Any] = {}
    for chunk in chunks:
        # Usage comes in a chunk of its own, whose choices are empty or null.
        stated |= {name: chunk[name] for name in ("model", "usage") if chunk.get(name)}
        for choice in _list(chunk.get("choices")):
            index = choice.get("index")
            parts.setdefault(index if isinstance(index, int) else 0, _StreamedChoice()).add(choice)
    failed = any(chunk.get("error") for chunk in chunks)  # some endpoints write null, where there is none
    if not parts:
        texts: dict[TextPath, list[str]] = {}
        for path, text in (each for value in values for each in texts_in(value)):
            texts.setdefault(path, []).append(text)
        joined = "\n".join((body.decode("utf-8", "replace"), *map("".join, texts.values())))
        return RelayedAnswer(answer_of([AnswerChoice(text=joined)]), failed=failed)
    ordered = [parts[index] for index in sorted(parts)]
    answer = _relayed_answer(stated, [each.message for each in ordered], [each.finish for each in ordered])
    return msgspec.structs.replace(answer, failed=failed)


class _StreamedChoice:
    """One choice of a stream, put together from its chunks."""

    def __init__(self) -> None:
        self.finish: Any = None
        self._texts: dict[TextPath, list[str]] = {}
        self._calls: dict[int, dict[str, str]] = {}

    @property
    def message(self) -> dict[str, Any]:
        """The message that the pieces make; a text deeper in it is named by its path, joined by dots."""
        texts = {".".join(map(str, path)): "".join(each) for path, each in self._texts.items()}
        found: dict[str, Any] = {"role": "assistant", **texts}
        if self._calls:
            calls = [self._calls[index] for index in sorted(self._calls)]
            found["tool_calls"] = [{"function": call} for call in calls]
        return found

    def add(self, choice: Mapping[str, Any]) -> None:
        """Add what a chunk has of this choice."""
        self.finish = choice.get("finish_reason") or self.finish
        delta = _mapping(choice.get("delta"))
        for path, text in texts_in({key: value for key, value in delta.items() if key not in ("role", "tool_calls")}):
            self._texts.setdefault(path, []).append(text)
        for at, call in enumerate(_list(delta.get("tool_calls"))):
            whole = self._calls.setdefault(index_of(call, at), {"name": "", "arguments": ""})
            added = _tool_call(call)
            whole["name"] += added.name
            whole["arguments"] += added.arguments


def _relayed_answer(
    body: Mapping[str, Any], messages: Sequence[Mapping[str, Any]], finishes: Iterable[Any], others: str = ""
) -> RelayedAnswer:
    usage = _mapping(body.get("usage"))
    choices = [_choice(message, finish) for message, finish in zip(messages, finishes, strict=True)]
    if others:
        choices[0] = msgspec.structs.replace(choices[0], text="\n".join(filter(None, (choices[0].text, others))))
    recorded = answer_of(
        choices,
        model=body["model"] if isinstance(body.get("model"), str) else "",
        prompt_tokens=_count(usage.get("prompt_tokens")),
        completion_tokens=_count(usage.get("completion_tokens")),
    )
    return RelayedAnswer(recorded, read_message({**messages[0], "role": "assistant"}))


def _choice(message: Mapping[str, Any], finish: Any) -> AnswerChoice:
    # Other texts of an answer, such as its reasoning or the reason of a refusal, are the model's words, too.
    calls = _list(message.get("tool_calls"))
    others = {key: value for key, value in message.items() if key != "tool_calls"}
    text = read_message({**others, "role": "assistant"}).text
    unnamed = [{key: value for key, value in call.items() if key not in ("function", "custom")} for call in calls]
    return AnswerChoice(
        text="\n".join(filter(None, (text, _words((others, *unnamed), set(all_text_in(others)))))),
        tool_calls=tuple(map(_tool_call, calls)),
        finish_reason=_text(finish),
    )


def _tool_call(call: Mapping[str, Any]) -> ToolCall:
    """Return a tool call, or what a chunk adds to one: of a function, or of a custom tool, which takes plain text."""
    function = _mapping(call.get("function")) or _mapping(call.get("custom"))
    given = function.get("arguments", function.get("input", ""))
    # Some endpoints write an object instead of its JSON text.
    arguments = given if isinstance(given, str) else msgspec.json.encode(given).decode() if given else ""
    return ToolCall(name=_text(function.get("name")), arguments=arguments)


def _words(values: Iterable[Any], known: Collection[str] = ()) -> str:
    """Return the texts in some values, except those in ``known``: whatever is delivered has to be read."""
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
