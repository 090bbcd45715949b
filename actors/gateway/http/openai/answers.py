"""Turns the end of an exchange into a response for clients of OpenAI's. Pure."""

from collections.abc import Iterable
from typing import Any, Literal
from urllib.parse import quote

import msgspec

from actors.gateway.http.openai.requests import MODEL
from schemas.vocabulary.responder import ResponseEmitted

REFUSALS = ("BLOCKED", "REJECTED", "WITHHELD")
"""The actions that count as a refusal."""

Finish = Literal["stop", "length", "content_filter"]
"""How an answer ended, in OpenAI's words."""


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens of the models that were asked for an answer; 0 if no model was, or if its endpoint reports none."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    total_tokens: int = 0


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """What was decided on a request, and by which stage; `neuraxis why EXCHANGE` has the numbers."""

    exchange: str
    agent: str
    session: str
    stage: str
    action: str
    reason: str
    mode: str | None = None


class AssistantMessage(msgspec.Struct, frozen=True, kw_only=True):
    """The answer."""

    role: Literal["assistant"] = "assistant"
    content: str
    refusal: None = None


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """The one answer."""

    index: int = 0
    message: AssistantMessage
    logprobs: None = None
    finish_reason: Finish


class ChatCompletion(msgspec.Struct, frozen=True, kw_only=True):
    """An answer in OpenAI's shape; ``neuraxis`` is the decision behind it, a field that OpenAI's clients ignore."""

    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: str
    choices: tuple[Choice, ...]
    usage: Usage
    neuraxis: Decision


class Model(msgspec.Struct, frozen=True, kw_only=True):
    """A model that a request may name."""

    id: str
    object: Literal["model"] = "model"
    created: int = 0
    owned_by: str = MODEL


class Models(msgspec.Struct, frozen=True, kw_only=True):
    """The models that a request may name."""

    object: Literal["list"] = "list"
    data: tuple[Any, ...]


def models_in(body: bytes) -> list[Any]:
    """Return the models that another endpoint lists, unchanged; none where it lists none."""
    try:
        found: Any = msgspec.json.decode(body)
    except msgspec.DecodeError:
        return []
    listed = found.get("data") if isinstance(found, dict) else None
    return listed if isinstance(listed, list) else []


def decision_of(event: ResponseEmitted, *, exchange: str, agent: str, session: str) -> Decision:
    """Return the decision that the end of an exchange states."""
    return Decision(
        exchange=exchange,
        agent=agent,
        session=session,
        stage=event.stage,
        action=event.action,
        reason=event.reason,
        mode=event.mode,
    )


def finish_of(event: ResponseEmitted) -> Finish:
    """Return how an answer ended, as OpenAI's finish reason."""
    if event.action in REFUSALS:
        return "content_filter"
    return event.finish_reason if event.finish_reason in ("length", "content_filter") else "stop"


def completion_of(event: ResponseEmitted, decision: Decision, usage: Usage, created: int, model: str) -> ChatCompletion:
    """Return the end of an exchange as a completion of ``model``; ``created`` is in Unix seconds."""
    choice = Choice(message=AssistantMessage(content=event.response), finish_reason=finish_of(event))
    return ChatCompletion(
        id=completion_id(decision.exchange),
        created=created,
        model=model,
        choices=(choice,),
        usage=usage,
        neuraxis=decision,
    )


def completion_id(exchange: str) -> str:
    """Return the id of an exchange's completion."""
    return f"chatcmpl-{exchange}"


def headers_of(decision: Decision) -> dict[str, str]:
    """Return a decision as headers of a response."""
    values = {
        "exchange": decision.exchange,
        "stage": decision.stage,
        "action": decision.action,
        "reason": decision.reason,
        "mode": decision.mode or "",
    }
    return {f"x-neuraxis-{name}": quote(value, safe=" !#$&'()*+,/:;=?@[]") for name, value in values.items() if value}


def sum_of(usages: Iterable[Usage]) -> Usage:
    """Return the tokens of several calls together."""
    given = list(usages)
    prompt = sum(each.prompt_tokens for each in given)
    completion = sum(each.completion_tokens for each in given)
    return Usage(prompt_tokens=prompt, completion_tokens=completion, total_tokens=prompt + completion)
