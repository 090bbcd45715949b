"""The endpoints that OpenAI's clients call: chat completions, and the list of models."""

from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, contextmanager, nullcontext
from typing import Annotated, Any
from urllib.parse import quote

from litestar import Request, Response, get, post
from litestar.datastructures import State
from litestar.openapi import ResponseSpec
from litestar.params import FromPath, HeaderParameter, JSONBody

from actors.gateway.answer_wait import NoEnd
from actors.gateway.http.openai.answers import (
    REFUSALS,
    ChatCompletion,
    Model,
    Models,
    completion_of,
    finish_of,
    headers_of,
    models_in,
)
from actors.gateway.http.openai.chat_inputs import ANSWER, FORWARD, SESSION, ChatInput, chat_input_of, named_session
from actors.gateway.http.openai.chat_service import AnswerEnd, AnswerText, ChatService, ExchangeFailed
from actors.gateway.http.openai.chunks import Chunks, event_of
from actors.gateway.http.openai.failures import ApiFailure, failure_of
from actors.gateway.http.openai.forwarding import IncomingRequest, UpstreamForwarder
from actors.gateway.http.openai.messages import read_message
from actors.gateway.http.openai.requests import MODEL, ChatRequest, ParsedRequest, check_answerable, read_request
from actors.gateway.http.openai.streaming_response import ClientGone, StreamingResponse, raw_headers, unless_client_gone
from actors.gateway.http.openai.upstream import UpstreamFailed
from actors.gateway.http.scopes import ASK, OF_AGENT
from actors.gateway.http.strict_requests import HEADERS, QUERY, User, agent_of, text_of_header
from events.errors import LogError, UnknownOutcome
from events.loggers import get_logger
from schemas.intake.strict import quoted_name

_logger = get_logger("neuraxis.gateway")

_PARSED = "chat"
"""The key under which a request's state keeps its body."""

_EXCHANGE = "x-neuraxis-exchange"

_GONE = 499
"""The status of a response whose client has disconnected."""

Session = Annotated[str, HeaderParameter(name=SESSION, description="The session of the conversation.")]

_BAD = ResponseSpec(ApiFailure, description="The request is not valid: param names the parameter.")
_UNKNOWN = ResponseSpec(ApiFailure, description="There is no such model.")
_UNANSWERED = ResponseSpec(ApiFailure, description="It was not answered in time: try again.")
_MODEL = ResponseSpec(Model, description="The model; one of the upstream's as that describes it.")
_DONE = ResponseSpec(ChatCompletion, description="The answer, or with finish_reason content_filter a refusal.")


class UnknownModel(LookupError):
    """This model does not exist here; the message says which ones do."""


async def read_body(request: Request[Any, Any, State]) -> None:
    """Read the body of a request for a completion: Litestar's ``before_request``."""
    request.state[_PARSED] = read_request(await request.body())


@post(
    "/v1/chat/completions",
    status_code=200,
    security=ASK,
    before_request=read_body,
    responses={200: _DONE, 400: _BAD, 404: _UNKNOWN, 503: _UNANSWERED},
    opt={QUERY: None, HEADERS: (SESSION,), OF_AGENT: True},
)
async def complete_chat(
    data: JSONBody[ChatRequest], request: Request[Any, Any, State], session: Session = "", user: User = ""
) -> Response[Any]:
    """Answer a conversation, as OpenAI's endpoint of this name does; with `stream`, in pieces as they come.

    Model `neuraxis` is Neuraxis itself: guards, memory, router and its own model. Any other is the upstream's: what the
    guards let pass is sent there unchanged.
    """
    chat: ChatService = request.app.state.chat
    try:
        if data.model != MODEL:
            forwarding = _forwarding(request, data.model)
            chat_input = _chat_input(request, session, user, FORWARD)
            with _session_kept(chat, chat_input):
                return await _forwarded(request, forwarding, chat_input, data)
        check_answerable(request.state[_PARSED], request.query_params)
        chat_input = _chat_input(request, session, user, ANSWER)
        with _session_kept(chat, chat_input):
            if data.stream:
                return await _streamed(request, chat, chat_input, data)
            return _completed(await unless_client_gone(request.receive, chat.ask(chat_input)), data)
    except ClientGone:
        return Response(None, status_code=_GONE)


# Clients send the headers that they were given for chats with every request.
@get("/v1/models", security=ASK, opt={HEADERS: (SESSION,), OF_AGENT: True})
async def list_models(request: Request[Any, Any, State]) -> Models:
    """List the models that a request may name: `neuraxis`, and those of the upstream, if it lists any."""
    forwarding: UpstreamForwarder | None = request.app.state.forwarding
    listed: list[Any] = []
    if forwarding is not None:
        try:
            found = await forwarding.fetch("/models", request.scope["headers"])
            listed = models_in(found.body)
            if not listed:
                _logger.warning("upstream_models_not_listed", status=found.status)
        except UpstreamFailed as failed:
            _logger.warning("upstream_models_not_listed", reason=failed.reason, error=str(failed))
    return Models(data=(Model(id=MODEL), *listed))


@get(
    "/v1/models/{model:path}",
    security=ASK,
    responses={200: _MODEL, 404: _UNKNOWN},
    opt={HEADERS: (SESSION,), OF_AGENT: True},
)
async def show_model(model: FromPath[str], request: Request[Any, Any, State]) -> Response[Any]:
    """Show a model that a request may name."""
    name = model.removeprefix("/")
    if name == MODEL:
        return Response(Model(id=MODEL), media_type="application/json")
    forwarding = _forwarding(request, name)
    if {"", ".", ".."} & set(name.split("/")):  # a path to something other than a model, called with our key
        raise UnknownModel(f"there is no model {quoted_name(name)}: /v1/models lists those there are")
    found = await forwarding.fetch(f"/models/{quote(name)}", request.scope["headers"])
    return StreamingResponse(_whole(found.body), found.headers, found.status)


ENDPOINTS = (complete_chat, list_models, show_model)


def _forwarding(request: Request[Any, Any, State], model: str) -> UpstreamForwarder:
    forwarding: UpstreamForwarder | None = request.app.state.forwarding
    if forwarding is None:
        raise UnknownModel(
            f"there is no model {quoted_name(model)} here: ask for {MODEL}, which is Neuraxis itself, or name the "
            "endpoint of your own models in gateway.upstream.url"
        )
    return forwarding


def _chat_input(request: Request[Any, Any, State], session: str, user: str, kind: str) -> ChatInput:
    given: ParsedRequest = request.state[_PARSED]
    chat: ChatService = request.app.state.chat
    caller, session = "", named_session(given, text_of_header(SESSION, session))
    if not session:
        caller = f"{kind}\n{request.headers.get('authorization', '')}"
        session = chat.histories.session_of(caller, tuple(map(read_message, given.body["messages"])))
    try:
        agent = agent_of(request, None, user, session, given.request.user or "")
        return chat_input_of(given, chat.histories, agent=agent, session=session, kind=kind, caller=caller)
    except Exception:
        if caller:
            chat.histories.wait_before(session, caller, tuple(map(read_message, given.body["messages"])))
        raise


@contextmanager
def _session_kept(chat: ChatService, chat_input: ChatInput) -> Iterator[None]:
    """Keep an unnamed session for the next request of its conversation, as ``conversation_histories`` describes.

    If the client disconnects, or it is not known whether the input is stored or how it ends, it may still be judged.
    Its session then waits nowhere.
    """
    try:
        yield
    except (ClientGone, UnknownOutcome, NoEnd):
        raise
    except Exception:  # such as a broker that is away: nothing was judged, and the client sends it again
        if chat_input.caller:
            chat.histories.wait_before(chat_input.session, chat_input.caller, chat_input.messages)
        raise
    if chat_input.caller:
        chat.histories.wait_at(chat_input.session, chat_input.caller, chat_input.messages)


def _completed(ended: AnswerEnd, data: ChatRequest) -> Response[Any]:
    completion = completion_of(ended.event, ended.decision, ended.usage, ended.created, data.model)
    return Response(completion, headers=headers_of(ended.decision), media_type="application/json")


async def _forwarded(
    request: Request[Any, Any, State], forwarding: UpstreamForwarder, chat_input: ChatInput, data: ChatRequest
) -> Response[Any]:
    incoming = IncomingRequest(await request.body(), request.scope["headers"], request.scope["query_string"])
    found = await unless_client_gone(request.receive, forwarding.forward(chat_input, incoming))
    if isinstance(found, AnswerEnd):
        return (
            StreamingResponse(_events(found, None, data), _event_headers(found))
            if data.stream
            else _completed(found, data)
        )
    ours = headers_of(found.ended.decision) if found.ended is not None else {_EXCHANGE: found.exchange}
    body = _whole(found.body) if isinstance(found.body, bytes) else found.body
    return StreamingResponse(body, [*found.headers, *raw_headers(ours)], found.status)


async def _whole(body: bytes) -> AsyncGenerator[bytes, None]:
    yield body


async def _streamed(
    request: Request[Any, Any, State], chat: ChatService, chat_input: ChatInput, data: ChatRequest
) -> Response[Any]:
    """Start a stream once there is something to send: a failure before that has an HTTP status of its own."""
    items = chat.ask_streaming(chat_input)
    try:
        first = await unless_client_gone(request.receive, anext(items))
    except BaseException:
        await items.aclose()
        raise
    return StreamingResponse(_events(first, items, data), _event_headers(first))


def _event_headers(first: AnswerText | AnswerEnd) -> list[tuple[bytes, bytes]]:
    known = headers_of(first.decision) if isinstance(first, AnswerEnd) else {_EXCHANGE: first.exchange}
    return raw_headers({"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-store", **known})


async def _events(
    first: AnswerText | AnswerEnd, rest: AsyncGenerator[AnswerText | AnswerEnd, None] | None, data: ChatRequest
) -> AsyncGenerator[bytes, None]:
    """Yield the events of a stream. An error in it is an event, too, since the status is already sent."""
    exchange = first.decision.exchange if isinstance(first, AnswerEnd) else first.exchange
    chunks = Chunks(exchange, first.created, data.model, with_usage=data.with_usage)
    yield chunks.begin()
    try:
        async with aclosing(rest) if rest is not None else nullcontext():
            item: AnswerText | AnswerEnd = first
            while isinstance(item, AnswerText):
                yield chunks.text(item.text)
                assert rest is not None
                item = await anext(rest)
    except (ExchangeFailed, LogError) as wrong:
        code = wrong.code if isinstance(wrong, LogError) else "exchange_failed"
        yield event_of(failure_of(503, str(wrong), code))
        return
    text = item.rest
    if text is None and item.event.action in REFUSALS:
        text = ""  # what was sent cannot be taken back; the finish reason says that the rest was withheld
    if text is None:
        withdrawn = f"the answer of exchange {exchange} was withdrawn while it was sent: discard it, and ask again"
        yield event_of(failure_of(503, withdrawn, "answer_withdrawn"))
        return
    for event in chunks.end(text, finish_of(item.event), item.decision, item.usage):
        yield event
