"""The endpoints for long computations on records: an exchange decided again with other settings, and states of actors.

They require a key with the scope ``read``, as all records do. The code that does the work is passed in
(:class:`Examinations`); it is limited in time and number. It ends when the client disconnects.
"""

from collections.abc import Awaitable
from typing import Annotated, Any, Protocol

import msgspec
from litestar import MediaType, Request, Response, get, post
from litestar.datastructures import State
from litestar.exceptions import ClientException
from litestar.openapi import ResponseSpec
from litestar.params import FromPath, JSONBody, QueryParameter

from actors.gateway.external_events import InvalidField
from actors.gateway.http.bodies import Name
from actors.gateway.http.openai.streaming_response import ClientGone, unless_client_gone
from actors.gateway.http.route_building import failures_of
from actors.gateway.http.scopes import READ
from actors.gateway.http.strict_requests import QUERY, refuse_unless
from events.ledger.reader import END

MOST_SETTINGS = 20
"""Most settings of one what-if."""

Key = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
"""The dotted name of a setting."""

Value = str | int | float | bool


class WhatIf(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An exchange to decide again with other ``settings``, such as ``router.base_scores.RESPOND`` -> 0.55."""

    exchange: Name
    settings: Annotated[dict[Key, Value], msgspec.Meta(min_length=1, max_length=MOST_SETTINGS)]


class Examinations(Protocol):
    """Examines the log; each method returns JSON, and raises NotFound, InvalidField or a LogError."""

    async def what_if(self, exchange: str, settings: dict[str, Value]) -> bytes:
        """Return what an exchange would have become under other settings."""
        ...

    async def state(self, actor: str, key: str, at: int, path: str) -> bytes:
        """Return the state of an actor's partition at a sequence, 0 for now, as ``neuraxis state --json`` does.

        ``key`` names the partition, or a session or an agent in it.
        """
        ...

    async def settings(self) -> bytes:
        """Return the settings with which a decision may be made again."""
        ...


_RESPONSES = {
    200: ResponseSpec(dict[str, Any], description="What was asked, as the command of that name prints it with --json."),
    **failures_of(
        {
            400: "The question is not valid: the message names the field.",
            404: "What it names is not there.",
            503: "It took too long, too many ask, or the log cannot be read now.",
        }
    ),
}

At = Annotated[int, QueryParameter(ge=0, le=END, description="As of this sequence of the log. 0: its end.")]
Path = Annotated[str, QueryParameter(description='Only this part of the state, such as sessions["travel"].trust.')]


@post("/api/what-if", status_code=200, security=READ, before_request=refuse_unless(WhatIf), responses=_RESPONSES)
async def decide_again(data: JSONBody[WhatIf], request: Request[Any, Any, State]) -> Response[bytes]:
    """Decide an exchange again with other settings: how it ends, and each decision that differs, before and after.

    It is computed as `neuraxis what-if` does: no effect is run, and nothing is recorded. People's words are hidden.
    """
    for key, value in data.settings.items():
        if value == "":
            raise InvalidField("settings", f"settings: {key} is empty: give it a value, or leave it out")
    examinations: Examinations = request.app.state.examinations
    return await _json_response(request, examinations.what_if(data.exchange, data.settings))


@get("/api/settings", security=READ, responses=_RESPONSES)
async def list_settings(request: Request[Any, Any, State]) -> Response[bytes]:
    """Return the settings that decisions read: their keys, what each takes, and its default."""
    examinations: Examinations = request.app.state.examinations
    return await _json_response(request, examinations.settings())


@get("/api/state/{actor:str}", security=READ, responses=_RESPONSES, opt={QUERY: ("at", "path")})
async def show_whole_state(
    actor: FromPath[str], request: Request[Any, Any, State], at: At = 0, path: Path = ""
) -> Response[bytes]:
    """Return the state of an actor with a single partition at a point of the log, as `neuraxis state --json` does."""
    examinations: Examinations = request.app.state.examinations
    return await _json_response(request, examinations.state(actor, "all", at, path))


@get("/api/state/{actor:str}/{key:path}", security=READ, responses=_RESPONSES, opt={QUERY: ("at", "path")})
async def show_state(
    actor: FromPath[str], key: FromPath[str], request: Request[Any, Any, State], at: At = 0, path: Path = ""
) -> Response[bytes]:
    """Return an actor's state for a session or an agent, or of a partition, at a point of the log, with people's words.

    The JSON is that of `neuraxis state --json`.
    """
    examinations: Examinations = request.app.state.examinations
    return await _json_response(request, examinations.state(actor, key.removeprefix("/"), at, path))


async def _json_response(request: Request[Any, Any, State], work: Awaitable[bytes]) -> Response[bytes]:
    try:
        return Response(await unless_client_gone(request.receive, work), media_type=MediaType.JSON)
    except ClientGone:
        raise ClientException("nobody waits for the answer any more") from None


ENDPOINTS = (decide_again, list_settings, show_whole_state, show_state)
