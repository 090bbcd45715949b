"""The endpoints for operators: say how an exchange turned out, allow what the guards object to, reset a breaker.

They record the same events as the commands ``neuraxis precedents judge``, ``allowances`` and ``breaker``, through the
same code, which is passed in (:class:`Operations`). They require a key with the scope ``operate``. A key with ``ask``
lets an application report on its own exchanges, but not change what the guards stop. ``OF_AGENT`` in ``opt``: a key for
one agent may be used, and reaches that agent alone.
"""

from typing import Annotated, Any, Literal, Protocol

import msgspec
from litestar import Request, get
from litestar.datastructures import State
from litestar.params import FromPath, JSONBody, QueryParameter

from actors.contract.text.allowances import MOST_CHARACTERS, why_refused
from actors.gateway.external_events import InvalidField, check_name
from actors.gateway.http.bodies import Name, Reason
from actors.gateway.http.route_building import BAD_FIELD, failures_of, post_body
from actors.gateway.http.scopes import OF_AGENT, OPERATE, READ, agent_of_key
from actors.gateway.http.strict_requests import QUERY, User, agent_of
from schemas.names import wrong_with_name
from schemas.vocabulary.allowances import AllowanceRecorded
from schemas.vocabulary.loops import Who
from schemas.vocabulary.precedents import ShortText

HARM_LEVEL = 0.9
"""How bad the harm of a precedent was, above 0 and at most 1, if its verdict does not say it."""

ExchangeOutcome = Literal["harm", "false-alarm", "benign"]
"""How an exchange turned out."""


class Verdict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A person says how an exchange turned out: its input becomes a precedent of its agent.

    ``harm``: inputs like it are rejected from then on. ``benign``: it is a precedent without harm. ``false-alarm``: as
    ``benign``, and the text is allowed. ``harm_level`` says how bad a harm was, and belongs to ``harm`` alone.
    """

    exchange: Name
    verdict: ExchangeOutcome
    by: Who
    why: Reason
    harm_level: Annotated[float, msgspec.Meta(gt=0.0, le=1.0)] | None = None


class VerdictRecorded(msgspec.Struct, frozen=True, kw_only=True):
    """What a verdict has recorded: a precedent of an agent, and the sequence of its last event."""

    agent: str
    precedent: str
    verdict: ExchangeOutcome
    seq: int
    status: Literal["success"] = "success"


class Allowance(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A text that is allowed as a whole, or a phrase that is passed over in any text; one of the two is given."""

    allowance: Name
    by: Who
    why: Reason
    phrase: Annotated[str, msgspec.Meta(max_length=MOST_CHARACTERS)] = ""
    text: Annotated[str, msgspec.Meta(max_length=MOST_CHARACTERS)] = ""
    agent: Name | None = None


class Withdrawal(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An order that an allowance no longer holds."""

    by: Who
    why: Reason
    agent: Name | None = None


class AllowanceChanged(msgspec.Struct, frozen=True, kw_only=True):
    """An allowance was recorded or withdrawn; ``seq`` is the sequence of that event."""

    agent: str
    allowance: str
    seq: int
    status: Literal["success"] = "success"


class AllowanceShown(msgspec.Struct, frozen=True, kw_only=True):
    """An allowance in force."""

    allowance: str
    text: str
    phrase: str
    by: str
    why: str
    seq: int


class AllowancesShown(msgspec.Struct, frozen=True, kw_only=True):
    """An agent's allowances in force, in the order of recording.

    ``unread`` says which events about allowances were left out: this release cannot read them, or they were removed
    from the stream, and the ledger that has them is not beside the gateway. Empty if none was.
    """

    agent: str
    allowances: tuple[AllowanceShown, ...]
    unread: str = ""
    status: Literal["success"] = "success"


class BreakerReset(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A session's circuit breaker goes back to the state of a new session."""

    session: Name
    by: Who
    why: ShortText
    agent: Name | None = None


class BreakerWasReset(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a breaker before and after its reset, and the sequence of the event that records it."""

    agent: str
    session: str
    state_before: str
    trust_before: float
    state: str
    trust: float
    seq: int
    status: Literal["success"] = "success"


class NotLearned(Exception):
    """No precedent can be made of an input: it has no text, or none that is seen here; the message says why."""

    code = "not_learned"


class Operations(Protocol):
    """Operations of operators; each raises NotFound, InvalidField, NotAccepted or a LogError."""

    async def judge(self, verdict: Verdict, agent: str) -> VerdictRecorded:
        """Record a verdict; with ``agent``, only on an exchange of that agent."""
        ...

    async def learn_harm(self, exchange: str, by: str, why: str) -> str:
        """Make a harmful precedent of an exchange's input, unless there is one; return its name.

        Raises NotLearned besides.
        """
        ...

    async def allow(self, agent: str, allowance: AllowanceRecorded) -> int:
        """Record an allowance; return its sequence."""
        ...

    async def withdraw(self, agent: str, allowance: str, by: str, why: str) -> int:
        """Withdraw an allowance; return the sequence."""
        ...

    async def allowances(self, agent: str) -> AllowancesShown:
        """Return an agent's allowances in force."""
        ...

    async def reset_breaker(self, agent: str, session: str, by: str, why: str) -> BreakerWasReset:
        """Reset a session's breaker, and wait until it is done."""
        ...


_FAILURES = {404: "What it names is not there.", 503: "It could not be stored in time: see whether it is there."}

Agent = Annotated[str, QueryParameter(name="agent", description="The agent whose allowances they are.")]


@post_body("/v1/verdicts", Verdict, _FAILURES, security=OPERATE)
async def judge_exchange(data: JSONBody[Verdict], request: Request[Any, Any, State]) -> VerdictRecorded:
    """Say how an exchange turned out: its input becomes a precedent, a false alarm is allowed besides."""
    operations: Operations = request.app.state.operations
    if data.harm_level is not None and data.verdict != "harm":
        raise InvalidField(
            "harm_level",
            f"harm_level says how bad a harm was: the verdict {data.verdict} has none; leave it out",
        )
    return await operations.judge(data, agent_of_key(request))


@post_body("/v1/allowances", Allowance, _FAILURES, security=OPERATE)
async def add_allowance(
    data: JSONBody[Allowance], request: Request[Any, Any, State], user: User = ""
) -> AllowanceChanged:
    """Allow a text as a whole, or a phrase in any text, of one agent: no guard objects to it from then on."""
    operations: Operations = request.app.state.operations
    agent = agent_of(request, data.agent, user)
    check_name("agent", agent)
    if wrong := wrong_with_name(data.allowance):
        raise InvalidField("allowance", f"allowance: the name {wrong}")
    if "/" in data.allowance or data.allowance in (".", ".."):
        raise InvalidField(
            "allowance", "allowance: the name is part of an address: it may hold no slash, and be neither . nor .."
        )
    if bad := why_refused(data.text, data.phrase):
        field, why = bad
        raise InvalidField(field, f"{field}: {why}")
    event = AllowanceRecorded(allowance=data.allowance, text=data.text, phrase=data.phrase, by=data.by, why=data.why)
    return AllowanceChanged(agent=agent, allowance=data.allowance, seq=await operations.allow(agent, event))


@post_body("/v1/allowances/{allowance:str}/withdraw", Withdrawal, _FAILURES, security=OPERATE)
async def withdraw_allowance(
    allowance: FromPath[str], data: JSONBody[Withdrawal], request: Request[Any, Any, State], user: User = ""
) -> AllowanceChanged:
    """Withdraw an allowance: from then on every guard judges what it allowed."""
    operations: Operations = request.app.state.operations
    agent = agent_of(request, data.agent, user)
    seq = await operations.withdraw(agent, allowance, data.by, data.why)
    return AllowanceChanged(agent=agent, allowance=allowance, seq=seq)


@get(
    "/v1/allowances",
    security=READ,
    responses=failures_of({400: BAD_FIELD, **_FAILURES}),
    opt={QUERY: ("agent",), OF_AGENT: True},
)
async def list_allowances(request: Request[Any, Any, State], agent: Agent = "", user: User = "") -> AllowancesShown:
    """Return an agent's allowances in force. They hold people's words.

    The list is empty, too, for an agent that nothing is known of, since allowances may be given before its first input.
    """
    operations: Operations = request.app.state.operations
    agent_name = agent_of(request, agent, user)
    check_name("agent", agent_name)
    return await operations.allowances(agent_name)


@post_body("/api/breaker/reset", BreakerReset, _FAILURES, security=OPERATE)
async def reset_breaker(
    data: JSONBody[BreakerReset], request: Request[Any, Any, State], user: User = ""
) -> BreakerWasReset:
    """Reset a session's circuit breaker, whatever state it is in; the log keeps who ordered it, and why."""
    operations: Operations = request.app.state.operations
    agent = agent_of(request, data.agent, user, data.session)
    return await operations.reset_breaker(agent, data.session, data.by, data.why)


ENDPOINTS = (reset_breaker, judge_exchange, add_allowance, withdraw_allowance, list_allowances)
