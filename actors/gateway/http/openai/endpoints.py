"""The endpoints that clients of OpenAI's know: completions of chats, and the models that may be asked for."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Annotated, Any

from litestar import Request, Response, get, post
from litestar.datastructures import State
from litestar.openapi import ResponseSpec
from litestar.params import FromPath, HeaderParameter, JSONBody

from actors.gateway.agent_events import InvalidField
from actors.gateway.agents import AgentPer, agent_for, unheard_user
from actors.gateway.http.openai.answers import (
    ChatCompletion,
    Model,
    Models,
    completion_of,
    finish_of,
    headers_of,
)
from actors.gateway.http.openai.chunks import Chunks, event_of
from actors.gateway.http.openai.conversing import ANSWER, Conversations, Ended, Spoken, Unended
from actors.gateway.http.openai.failures import ApiFailure, failure_of
from actors.gateway.http.openai.questions import SESSION, Question, question_of, session_of
from actors.gateway.http.openai.requests import MODEL, ChatRequest, Given, check_answerable, read_request
from actors.gateway.http.openai.sending import Gone, Sent, unless_gone
from actors.gateway.http.reading import HEADERS, QUERY, USER, User
from events.errors import LogError

_GIVEN = "chat"
"""Where a request's state keeps its body."""

_GONE = 499
"""The status of a response that nobody reads any more."""

Session = Annotated[str, HeaderParameter(name=SESSION, description="The session of the conversation.")]

_BAD = ResponseSpec(ApiFailure, description="The request cannot be taken: param names the parameter.")
_UNKNOWN = ResponseSpec(ApiFailure, description="There is no such model.")
_AWAY = ResponseSpec(ApiFailure, description="It was not answered in time: try again.")
_DONE = ResponseSpec(ChatCompletion, description="The answer, or with finish_reason content_filter a refusal.")


class UnknownModel(LookupError):
    """There is no such model here; the message says which there are."""


async def read_body(request: Request[Any, Any, State]) -> None:
    """Read a request for a completion: Litestar's ``before_request``."""
    request.state[_GIVEN] = read_request(await request.body())


@post(
    "/v1/chat/completions",
    status_code=200,
    before_request=read_body,
    responses={200: _DONE, 400: _BAD, 404: _UNKNOWN, 503: _AWAY},
    opt={QUERY: None, HEADERS: (SESSION,)},
)
async def complete_chat(
    data: JSONBody[ChatRequest], request: Request[Any, Any, State], session: Session = "", user: User = ""
) -> Response[Any]:
    """Answer a conversation, as OpenAI's endpoint of this name does; `stream` has it in pieces as they come."""
    given: Given = request.state[_GIVEN]
    if data.model != MODEL:
        raise _unknown(data.model)
    check_answerable(data)
    conversations: Conversations = request.app.state.conversations
    question = _question(request, given, session, user)
    try:
        if data.stream:
            return await _streamed(request, conversations, question, with_usage=data.with_usage)
        ended = await unless_gone(request.receive, conversations.ask(question))
    except Gone:
        return Response(None, status_code=_GONE)
    completion = completion_of(ended.event, ended.decision, ended.usage, ended.created)
    return Response(completion, headers=headers_of(ended.decision), media_type="application/json")


@get("/v1/models")
async def list_models() -> Models:
    """List the models that may be asked for."""
    return Models(data=(Model(id=MODEL),))


@get("/v1/models/{model:path}", responses={404: _UNKNOWN})
async def show_model(model: FromPath[str]) -> Model:
    """Show a model that may be asked for."""
    name = model.removeprefix("/")
    if name != MODEL:
        raise _unknown(name)
    return Model(id=MODEL)


ENDPOINTS = (complete_chat, list_models, show_model)


def _unknown(model: str) -> UnknownModel:
    return UnknownModel(f"there is no model {model!a} here: ask for {MODEL}, which is the whole mind")


def _question(request: Request[Any, Any, State], given: Given, session: str, user: str) -> Question:
    per: AgentPer = request.app.state.agent_per
    conversations: Conversations = request.app.state.conversations
    if unheard := unheard_user("", per=per, user=user):
        raise InvalidField(USER, f"the header {USER}: {unheard}")
    session = session_of(given, session, request.headers.get("authorization", ""))
    agent = agent_for("", per=per, user=user or given.request.user or "", session=session)
    return question_of(given, conversations.histories, agent=agent, session=session, kind=ANSWER)


async def _streamed(
    request: Request[Any, Any, State], conversations: Conversations, question: Question, *, with_usage: bool
) -> Response[Any]:
    """Begin a stream once there is something to send: what fails before that has a status of its own."""
    told = conversations.tell(question)
    try:
        first = await unless_gone(request.receive, anext(told))
    except BaseException:
        await told.aclose()
        raise
    known = headers_of(first.decision) if isinstance(first, Ended) else {"x-neuraxis-exchange": first.exchange}
    headers = {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-store", **known}
    return Sent(_events(first, told, with_usage=with_usage), headers)


async def _events(
    first: Spoken | Ended, told: AsyncGenerator[Spoken | Ended, None], *, with_usage: bool
) -> AsyncGenerator[bytes, None]:
    """Yield the events of a stream. What goes wrong in it is an event, too: its status is sent already."""
    exchange = first.decision.exchange if isinstance(first, Ended) else first.exchange
    chunks = Chunks(exchange, first.created, with_usage=with_usage)
    yield chunks.begin()
    try:
        async with aclosing(told):
            item: Spoken | Ended = first
            while isinstance(item, Spoken):
                yield chunks.text(item.text)
                item = await anext(told)
    except (Unended, LogError) as wrong:
        yield event_of(failure_of(503, str(wrong), "unanswered"))
        return
    if item.rest is None:
        withdrawn = f"the answer of exchange {exchange} was withdrawn while it was told: pass it over, and ask again"
        yield event_of(failure_of(503, withdrawn, "answer_withdrawn"))
        return
    for event in chunks.end(item.rest, finish_of(item.event), item.decision, item.usage):
        yield event
