"""The endpoints for records: lists of exchanges, how and why one ended, events as they are stored, an overview.

Records hold people's text and all decisions. So a key with the scope ``read`` is required, and a key with an agent sees
only that agent. The code that reads the log is passed in (:class:`Records`).
"""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Annotated, Any, Protocol

import msgspec
from litestar import MediaType, Request, Response, get
from litestar.datastructures import State
from litestar.openapi import ResponseSpec
from litestar.params import FromPath, HeaderParameter, QueryParameter
from litestar.response import ServerSentEventMessage

from actors.gateway.external_events import InvalidField
from actors.gateway.http.openai.streaming_response import StreamingResponse, raw_headers
from actors.gateway.http.records.set_overview import SetOverview
from actors.gateway.http.route_building import failures_of
from actors.gateway.http.scopes import OF_AGENT, READ, agent_of_key, check_agent, check_exchange, key_check
from actors.gateway.http.strict_requests import QUERY
from events.ledger import ExchangeFilter, ExchangeResult, Page
from events.ledger.exchange_list import LONGEST_WORDS, MOST_LISTED, check_spelling
from events.ledger.reader import END
from schemas.event import ROOT
from schemas.intake import strict
from schemas.intake.topics import unknown_topic
from schemas.subjects import topic_filter

LAST_EVENT = "Last-Event-ID"
"""Header in which a browser names the last event that it received, by its sequence."""


class StreamedEvent(msgspec.Struct, frozen=True):
    """An event of the log as it is shown: its sequence, its public subject, its JSON, and its agent, if any."""

    seq: int
    topic: str
    data: str
    agent: str = ""


class Records(Protocol):
    """Reads the log and its ledger; each method raises NotFound, InvalidField or a LogError."""

    async def exchanges(self, wanted: ExchangeFilter) -> Page:
        """Return a page of exchanges, the latest first."""
        ...

    async def exchange(self, exchange: str) -> ExchangeResult:
        """Return how an exchange ended, by its whole id."""
        ...

    async def why(self, exchange: str) -> bytes:
        """Return why an exchange ended that way, as ``neuraxis why --json`` does."""
        ...

    async def overview(self, at: int) -> SetOverview:
        """Return the state of the set at a sequence of the log; 0: now."""
        ...

    async def follow(
        self, filter: str, after: int | None, *, words: bool
    ) -> AsyncGenerator[StreamedEvent | None, None]:
        """Yield the events after a sequence (None: only new ones) without end; yield None if none came for a while.

        Each event comes once and in order, whatever happens to the connection to the broker. Without ``words``,
        people's text is left out.
        """
        ...


_TREE = ResponseSpec(dict[str, Any], description="The tree of causes, as `neuraxis why --json` prints it.")
_TOO_LONG = failures_of({400: "The tree is too long to be sent: `neuraxis why` prints it."})
_UNREAD = {503: "The log or its ledger cannot be read now."}
_RESPONSES = failures_of({400: "The question is not valid: the message names the parameter.", **_UNREAD})
_OF_ONE = failures_of({404: "There is no such exchange.", **_UNREAD})

_FILTERS = ("agent", "session", "stage", "action", "reason", "mode", "words", "before", "at", "limit")

ExactFilter = Annotated[str, QueryParameter(description="Only exchanges with this value; all if it is not given.")]
Searched = Annotated[
    str,
    QueryParameter(
        max_length=LONGEST_WORDS,
        description="Only those whose end is described with all of these words, as `neuraxis why` describes ends.",
    ),
]
Count = Annotated[int, QueryParameter(ge=1, le=MOST_LISTED, description="How many, at most.")]
Before = Annotated[int, QueryParameter(ge=0, le=END, description="Only those whose input is before this sequence.")]
At = Annotated[
    int,
    QueryParameter(ge=0, le=END, description="As the log was at this sequence, without what came later. 0: now."),
]
Topic = Annotated[str, QueryParameter(description="Only this public subject; * and > are wildcards.")]
After = Annotated[
    int | None, QueryParameter(ge=0, le=END, description="Events after this sequence; without it, new events only.")
]
Words = Annotated[bool, QueryParameter(description="Whether people's words are shown; they are hidden otherwise.")]
LastEvent = Annotated[str, HeaderParameter(name=LAST_EVENT, description="What a browser sends when it connects again.")]


@get("/api/exchanges", security=READ, responses=_RESPONSES, opt={QUERY: _FILTERS, OF_AGENT: True})
async def list_exchanges(
    request: Request[Any, Any, State],
    agent: ExactFilter = "",
    session: ExactFilter = "",
    stage: ExactFilter = "",
    action: ExactFilter = "",
    reason: ExactFilter = "",
    mode: ExactFilter = "",
    words: Searched = "",
    before: Before = 0,
    at: At = 0,
    limit: Count = 50,
) -> Page:
    """Return exchanges, the latest first: whose they are, how and when they ended; without people's words."""
    wanted = ExchangeFilter(
        agent=check_agent(request, agent or agent_of_key(request)),
        session=session,
        stage=stage,
        action=action,
        reason=reason,
        mode=mode,
        words=words,
        before=before,
        at=at,
        limit=limit,
    )
    try:
        check_spelling(wanted)
    except strict.BadInput as wrong:
        raise InvalidField(wrong.field, str(wrong), wrong.code) from wrong
    records: Records = request.app.state.records
    return await records.exchanges(wanted)


@get("/api/exchanges/{exchange:str}", security=READ, responses=_OF_ONE, opt={OF_AGENT: True})
async def show_exchange(exchange: FromPath[str], request: Request[Any, Any, State]) -> ExchangeResult:
    """Return how an exchange ended, with the answer; ``ended`` is null while it is open.

    It is null, too, if this release cannot read the end, which another wrote: ``unread`` says why.
    """
    return await _exchange(request, exchange)


@get(
    "/api/exchanges/{exchange:str}/why",
    security=READ,
    responses={200: _TREE, **_TOO_LONG, **_OF_ONE},
    opt={OF_AGENT: True},
)
async def show_why(exchange: FromPath[str], request: Request[Any, Any, State]) -> Response[bytes]:
    """Return why an exchange ended as it did: its events as a tree of causes, like `neuraxis why --json`."""
    records: Records = request.app.state.records
    if agent_of_key(request):
        await _exchange(request, exchange)
    return Response(await records.why(exchange), media_type=MediaType.JSON)


@get("/api/overview", security=READ, responses=_RESPONSES, opt={QUERY: ("at",)})
async def show_overview(request: Request[Any, Any, State], at: At = 0) -> SetOverview:
    """Return the state of the set: ends of the latest exchanges, modes, latencies, alerts, breakers and changes."""
    records: Records = request.app.state.records
    return await records.overview(at)


@get(
    "/api/events",
    security=READ,
    responses=_RESPONSES,
    media_type="text/event-stream",
    opt={QUERY: ("topic", "after", "words"), OF_AGENT: True},
)
async def follow_events(
    request: Request[Any, Any, State],
    topic: Topic = "",
    after: After = None,
    words: Words = False,
    last_event: LastEvent = "",
) -> Response[bytes]:
    """Send events as they are stored, each once and in order: server-sent events, whose ids are the log's sequences.

    A client that connects again names the last event it received (`Last-Event-ID`), and gets those after it.
    """
    records: Records = request.app.state.records
    if last_event:
        if not (last_event.isascii() and last_event.isdecimal() and len(last_event) <= _DIGITS):
            raise InvalidField(LAST_EVENT, f"the header {LAST_EVENT} is no sequence of the log: it is a number")
        after = int(last_event)
    events = await records.follow(_filter_of(topic), after, words=words)
    return StreamingResponse(_sent(events, agent_of_key(request), key_check(request)), _EVENT_STREAM)


_DIGITS = 19
"""Most digits of a sequence: it has 64 bits."""

_EVENT_STREAM = raw_headers(
    {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-store", "x-accel-buffering": "no"}
)


async def _exchange(request: Request[Any, Any, State], exchange: str) -> ExchangeResult:
    """Return how an exchange ended; to a key of another agent it does not exist."""
    records: Records = request.app.state.records
    found = await records.exchange(exchange)
    check_exchange(exchange, found.agent, agent_of_key(request))
    return found


async def _sent(
    events: AsyncGenerator[StreamedEvent | None, None], agent: str, key_is_valid: Callable[[], bool]
) -> AsyncGenerator[bytes, None]:
    """Yield server-sent events; with ``agent``, only those of that agent. Ends when the key is revoked."""
    # Litestar's own response cancels the read repeatedly, even while it is being closed: the broker would keep its
    # consumer.
    async with aclosing(events):
        async for each in events:
            if not key_is_valid():
                return
            if each is None or (agent and each.agent != agent):
                # Also for events of other agents: a client that receives nothing for long would take the connection for
                # dead.
                yield ServerSentEventMessage(comment="nothing new", data=None).encode()
            else:
                yield ServerSentEventMessage(data=each.data, event=each.topic, id=str(each.seq)).encode()
            # Many events may have come at once: other tasks get to run, and a client that disconnected is noticed.
            await asyncio.sleep(0)


def _filter_of(topic: str) -> str:
    """Return the filter for a public subject, with or without its root; raises InvalidField for an invalid one."""
    subject = topic or ">"
    if subject != ROOT and not subject.startswith(f"{ROOT}."):
        subject = f"{ROOT}.{subject}"
    tokens = subject.split(".")
    if any(not token or any(char.isspace() or not char.isprintable() for char in token) for token in tokens) or (
        ">" in tokens[:-1]
    ):
        raise InvalidField("topic", "topic is no subject: write tokens with dots between, such as forged_id.alert.>")
    if unknown := unknown_topic(subject):
        raise InvalidField("topic", f"topic: {unknown}")
    return topic_filter(subject)


ENDPOINTS = (list_exchanges, show_exchange, show_why, show_overview, follow_events)
