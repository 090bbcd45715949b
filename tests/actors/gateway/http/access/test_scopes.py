"""What each endpoint asks of a key: its scope, and that a key with an agent reaches nothing of another's."""

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
from litestar import Litestar, get

from actors.gateway.http.app import ENDPOINTS
from actors.gateway.http.failures import HANDLERS
from actors.gateway.http.keys import ALL_SCOPES, ANYBODY, ApiKeys
from actors.gateway.http.keys.api_keys import CHECK_INTERVAL_S
from actors.gateway.http.records.endpoints import StreamedEvent
from actors.gateway.http.scopes import OF_AGENT, PUBLIC, SCHEME, keep_to_scope
from deploy.operating.api_key_file import add_key, revoke_key
from tests.actors.gateway.asking import stored
from tests.actors.gateway.http.fakes import Operations, Records, rated_by_name
from tests.actors.gateway.http.rig import SCORED, SEED_OVERRIDE, gateway, key_of
from tests.each import each
from tests.events.simulated_world import in_world
from tests.simulated import SimulatedStream

NEEDS_NO_KEY = {"/healthz", "/readyz", "/dashboard", "/dashboard/{name:str}"}
OF_NO_AGENT = {("GET", path) for path in ("/", "/docs", "/v1/models", "/v1/models/{model:path}")}
"""What a key with an agent may have, since it tells of no agent at all."""

OWN = {"Authorization": f"Bearer {'own-' * 8}"}
"""Brings the key of agent ``own``, which may do all."""

RING = ApiKeys([key_of("own-" * 8, *ALL_SCOPES, agent="own")])
ROUTES = sorted(
    ((method, path, handler) for handler in ENDPOINTS for path in handler.paths for method in handler.http_methods),
    key=lambda route: route[:2],
)


def concrete(path: str) -> str:
    """Return a path that a pattern matches."""
    return "/".join("x" if part.startswith("{") else part for part in path.split("/"))


def at_a_gateway(
    use: Callable[[httpx.AsyncClient, SimulatedStream], Awaitable[None]], ring: ApiKeys, **more: Any
) -> None:
    async def body(stream: SimulatedStream) -> None:
        services = {"records": Records(), "operations": Operations(), "rated": rated_by_name, **more}
        async with gateway(stream, ring=ring, wait_s=1.0, answer_s=1.0, **services) as client:
            await use(client, stream)

    in_world(body)


def scopes_in(handler: Any) -> list[str] | None:
    named = [each[SCHEME] for each in handler.security or () if SCHEME in each]
    return [scope for each in named for scope in each] if named else None


def test_every_endpoint_names_its_scope_or_needs_no_key() -> None:
    """A new endpoint says so in ``security`` (ASK, READ, OPERATE, ANY_KEY): see ``actors.gateway.http.scopes``."""
    undeclared = [path for _, path, handler in ROUTES if scopes_in(handler) is None and not handler.opt.get(PUBLIC)]
    assert undeclared == []
    assert {path for _, path, handler in ROUTES if handler.opt.get(PUBLIC)} == NEEDS_NO_KEY


def test_every_endpoint_refuses_a_key_without_its_scope_and_whoever_has_none() -> None:
    keys = [key_of(f"without-{scope}-0123456789", *sorted({*ALL_SCOPES} - {scope})) for scope in ALL_SCOPES]

    async def use(client: httpx.AsyncClient, stream: SimulatedStream) -> None:
        for method, path, handler in ROUTES:
            if handler.opt.get(PUBLIC):
                continue
            assert (await client.request(method, concrete(path))).status_code == 401, path
            for scope in ALL_SCOPES:
                brought = {"Authorization": f"Bearer without-{scope}-0123456789"}
                if scope in (scopes_in(handler) or ()):
                    refused = await client.request(method, concrete(path), headers=brought)
                    assert refused.status_code == 403, (method, path, refused.text)
                    assert scope in refused.text
        assert stored(stream, "") == []

    at_a_gateway(use, ApiKeys(keys))


def test_an_endpoint_that_names_no_scope_serves_nobody() -> None:
    @get("/new")
    async def new() -> None:
        raise AssertionError

    async def asked() -> httpx.Response:
        app = Litestar([new], guards=[keep_to_scope], exception_handlers=HANDLERS, openapi_config=None)

        async def with_key(scope: Any, receive: Any, send: Any) -> None:
            await app({**scope, "auth": ANYBODY}, receive, send)

        async with httpx.AsyncClient(transport=httpx.ASGITransport(with_key), base_url="http://127.0.0.1") as client:
            return await client.get("/new")

    assert asyncio.run(asked()).status_code == 403


# --- a key with an agent

SAYING = {"messages": [{"role": "user", "content": "Hello."}], "model": "neuraxis"}
BUTTON = {"allowance": "button", "phrase": "ignore previous", "by": "ann", "why": "a button"}
THEIRS = {"agent": "theirs"}
USER = {"X-Neuraxis-User": "somebody"}
JUDGED = {"exchange": "theirs", "verdict": "harm", "by": "ann", "why": "harm"}
LOOP, OVERRIDE = "/orchestrator/loop-complete", "/orchestrator/override-guardrails/{loop_id:str}"

ATTEMPTS: list[tuple[str, str, dict[str, Any], int]] = [
    ("POST", LOOP, {"json": {**SCORED, **THEIRS}}, 403),
    ("POST", LOOP, {"json": SCORED, "headers": USER}, 403),
    ("GET", "/orchestrator/guardrails-status/{loop_id:str}", {"params": THEIRS}, 403),
    ("POST", OVERRIDE, {"json": {**SEED_OVERRIDE, **THEIRS}}, 403),
    ("POST", "/v1/ticks", {"json": {"arousal": 0.5, **THEIRS}}, 403),
    ("POST", "/v1/ticks", {"json": {"arousal": 0.5, "citizen": "theirs"}}, 403),
    ("POST", "/v1/guard", {"json": {"text": "Hello.", **THEIRS}}, 403),
    ("POST", "/v1/guard", {"json": {"inputs": [{"text": "Hello."}, {"text": "Hello.", **THEIRS}]}}, 403),
    ("POST", "/v1/moderations", {"json": {"input": "Hello."}, "headers": USER}, 403),
    ("POST", "/v1/chat/completions", {"json": SAYING, "headers": USER}, 403),
    ("POST", "/v1/feedback", {"json": {"exchange": "theirs", "reward": 1.0}}, 404),
    ("POST", "/api/breaker/reset", {"json": {"session": "s", "by": "ann", "why": "x", **THEIRS}}, 403),
    ("POST", "/v1/verdicts", {"json": JUDGED}, 404),
    ("POST", "/v1/allowances", {"json": {**BUTTON, **THEIRS}}, 403),
    ("POST", "/v1/allowances/{allowance:str}/withdraw", {"json": {"by": "ann", "why": "gone", **THEIRS}}, 403),
    ("GET", "/v1/allowances", {"params": THEIRS}, 403),
    ("GET", "/api/exchanges", {"params": THEIRS}, 403),
    ("GET", "/api/exchanges/{exchange:str}", {}, 404),
    ("GET", "/api/exchanges/{exchange:str}/why", {}, 404),
    ("GET", "/api/events", {}, 200),  # what it gets is looked at below
]
"""By which a key with an agent would reach another agent, at each endpoint that lets it in."""


def test_every_endpoint_keeps_a_key_to_its_agent_or_does_not_let_it_in() -> None:
    """A new endpoint that lets such keys in (OF_AGENT) needs an attempt above."""
    attempted = {(method, path) for method, path, _, _ in ATTEMPTS}
    assert attempted | OF_NO_AGENT == {(method, path) for method, path, each in ROUTES if each.opt.get(OF_AGENT)}

    async def use(client: httpx.AsyncClient, stream: SimulatedStream) -> None:
        for method, path, given, status in ATTEMPTS:
            sent = {**given, "headers": {**OWN, **given.get("headers", {})}}
            refused = await client.request(method, concrete(path).replace("/x", "/theirs"), **sent)
            assert refused.status_code == status, (method, path, refused.text)
        for method, path, handler in ROUTES:
            if not handler.opt.get(OF_AGENT) and not handler.opt.get(PUBLIC):
                refused = await client.request(method, concrete(path), headers=OWN)
                assert refused.status_code == 403, (method, path)
        assert [each for each in stored(stream, "") if each.headers.get("ce-agent")] == []

    at_a_gateway(use, RING, agent_per="user")


def test_a_key_with_an_agent_acts_for_that_agent_without_naming_it() -> None:
    async def use(client: httpx.AsyncClient, stream: SimulatedStream) -> None:
        for path, body in (
            (LOOP, SCORED),
            ("/v1/ticks", {"arousal": 0.5}),
            ("/v1/guard", {"text": "Hello."}),
            ("/v1/moderations", {"input": "Hello."}),
            ("/v1/chat/completions", {**SAYING, "user": "somebody"}),
        ):
            before = len(stored(stream, ""))
            answer = await client.post(path, json=body, headers=OWN)
            assert answer.status_code not in (400, 401, 403, 404), (path, answer.text)
            assert [each.headers["ce-agent"] for each in stored(stream, "")[before:]] == ["own"], path

    for agent_per in ("shared", "user", "session"):
        at_a_gateway(use, RING, agent_per=agent_per)


def test_a_key_with_an_agent_reads_of_that_agent_alone() -> None:
    records = Records()

    async def use(client: httpx.AsyncClient, stream: SimulatedStream) -> None:
        assert (await client.get("/api/exchanges", headers=OWN)).status_code == 200
        assert [wanted.agent for wanted in records.wanted] == ["own"]
        for path in ("/api/exchanges/own", "/api/exchanges/own/why"):
            assert (await client.get(path, headers=OWN)).status_code == 200
        events = (await client.get("/api/events", headers=OWN)).text
        assert "theirs" not in events
        assert [line for line in events.splitlines() if line.startswith("id:")] == ["id: 2", "id: 4"]

    at_a_gateway(use, RING, records=records)


def test_a_reader_of_events_whose_key_is_revoked_reads_no_further(tmp_path: Path) -> None:
    now, file = [0.0], tmp_path / "keys"
    key, told = add_key(file, ("read",), agent="", per_minute=0, note="")

    class Revoking(Records):
        async def _following(self) -> AsyncGenerator[StreamedEvent | None, None]:
            yield StreamedEvent(1, "forged_id.input.received", "{}")
            revoke_key(file, key.id)
            now[0] += CHECK_INTERVAL_S
            yield StreamedEvent(2, "forged_id.input.received", "{}")

    async def use(client: httpx.AsyncClient, stream: SimulatedStream) -> None:
        read = await client.get("/api/events", headers={"Authorization": f"Bearer {told}"})
        assert [line for line in read.text.splitlines() if line.startswith("id:")] == ["id: 1"]

    at_a_gateway(use, ApiKeys([], file, lambda: now[0]), records=Revoking())


# --- what is put on record


def test_what_an_operator_does_is_on_record_with_the_id_of_the_key_before_it_is_done() -> None:
    told = "an-operator's-own-key"
    key = key_of(told, *ALL_SCOPES)
    headers = {"Authorization": f"Bearer {told}"}

    async def use(client: httpx.AsyncClient, stream: SimulatedStream) -> None:
        overriding = {**SCORED, "override_fatigue": True, "override_by": "ann"}
        for method, path, body in (
            ("GET", "/v1/allowances", None),
            ("POST", LOOP, SCORED),
            ("POST", LOOP, overriding),
            ("POST", concrete(OVERRIDE), SEED_OVERRIDE),
            ("POST", "/v1/allowances/button/withdraw", {"by": "ann", "why": "gone"}),
        ):
            await client.request(method, path, json=body, headers=headers)
        recorded = [json.loads(each.data) for each in stored(stream, "access.operated")]
        assert [(each["key_id"], each["action"], each["about"]) for each in recorded] == [
            (key.id, f"POST {LOOP}", ""),
            (key.id, "POST /orchestrator/override-guardrails/{loop_id}", "x"),
            (key.id, "POST /v1/allowances/{allowance}/withdraw", "button"),
        ]
        topics = [each.subject.rpartition(".")[2] for each in stored(stream, "")]
        assert topics.index("operated", topics.index("operated") + 1) < topics.index("overridden")
        assert all(told not in repr((each.headers, each.data)) for each in stored(stream, ""))

    at_a_gateway(use, ApiKeys([key]))


def test_an_override_in_a_completion_takes_an_operators_key() -> None:
    told = "an-application's-own-key"

    async def use(client: httpx.AsyncClient, stream: SimulatedStream) -> None:
        for flag in ("override_fatigue", "override_max_reruns"):
            body = {**SCORED, flag: True, "override_by": "ann"}
            refused = await client.post(LOOP, json=body, headers={"Authorization": f"Bearer {told}"})
            assert (refused.status_code, "operate" in refused.json()["message"]) == (403, True)
        assert stored(stream, "") == []

    at_a_gateway(use, ApiKeys([key_of(told, "ask", "read")]))


@each("path", ["/v1/chat/completions", "/v1/ticks"])
def test_a_key_that_asks_too_often_is_told_when_it_may_again(path: str) -> None:
    told, other = "a-key-with-a-limit-of-two", "another-key-of-the-gateway"
    ring = ApiKeys([key_of(told, "ask", per_minute=2), key_of(other, "ask")])

    async def use(client: httpx.AsyncClient, stream: SimulatedStream) -> None:
        headers = {"Authorization": f"Bearer {told}"}
        answers = [await client.post(path, content=b"no json", headers=headers) for _ in range(3)]
        assert [answer.status_code for answer in answers] == [400, 400, 429]
        assert 1 <= int(answers[2].headers["retry-after"]) <= 30
        error = answers[2].json().get("error", {})
        assert (error.get("type") == "rate_limit_error") is path.startswith("/v1/chat")
        assert told not in answers[2].text
        allowed = await client.post(path, content=b"no json", headers={"Authorization": f"Bearer {other}"})
        assert allowed.status_code == 400

    at_a_gateway(use, ring)
