"""Builds a request of OpenAI's Chat Completions in the dialect that an endpoint supports. Pure."""

import json
from collections.abc import Sequence
from typing import Any

import msgspec

from actors.llm.wire.dialect import PLAIN, Dialect
from schemas.effectors.model_calls import ChatMessage, ModelCall


def request_body(call: ModelCall, model: str, dialect: Dialect = PLAIN) -> bytes:
    """Return the body that asks ``model`` for a call's answer."""
    messages = list(call.messages)
    body: dict[str, Any] = {"model": model}
    if dialect.length_parameter:
        body[dialect.length_parameter] = min(call.most_tokens, dialect.most_tokens or call.most_tokens)
    if call.answer_schema is not None:
        if dialect.answer_form == "json_schema":
            schema = {"name": "answer", "schema": call.answer_schema}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        else:
            messages = _with_schema(messages, call.answer_schema)
        if dialect.answer_form == "json_object":
            body["response_format"] = {"type": "json_object"}
    if call.stream_to and dialect.stream:
        body["stream"] = True
        if dialect.stream_options:
            body["stream_options"] = {"include_usage": True}
    return msgspec.json.encode(body | {"messages": messages if dialect.system_role else _without_system(messages)})


def _with_schema(messages: Sequence[ChatMessage], schema: dict[str, Any]) -> list[ChatMessage]:
    """Return messages whose instructions describe the schema of the answer, for an endpoint that enforces no schema."""
    instructions = f"Answer with JSON alone, which satisfies this JSON Schema: {json.dumps(schema, ensure_ascii=False)}"
    index = next((index for index, message in enumerate(messages) if message.role == "system"), None)
    if index is None:
        return [ChatMessage(role="system", content=instructions), *messages]
    joined = ChatMessage(role="system", content=f"{messages[index].content}\n\n{instructions}")
    return [*messages[:index], joined, *messages[index + 1 :]]


def _without_system(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """Return messages with the instructions put before the person's first text; the roles then alternate."""
    instructions = "\n\n".join(message.content for message in messages if message.role == "system")
    kept: list[ChatMessage] = []
    for message in messages:
        if message.role == "system":
            continue
        content = f"{instructions}\n\n{message.content}" if instructions and message.role == "user" else message.content
        instructions = "" if message.role == "user" else instructions
        if kept and kept[-1].role == message.role:
            content = f"{kept.pop().content}\n\n{content}"
        kept.append(ChatMessage(role=message.role, content=content))
    return [*kept, ChatMessage(role="user", content=instructions)] if instructions else kept
