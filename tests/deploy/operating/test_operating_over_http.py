"""Verdicts and allowances over HTTP, on a real broker: who may, what is put on record, and what is refused."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from typing import Any

import httpx
import pytest

from actors.contract.text.allowances import MOST_ALLOWANCES, MOST_CHARACTERS
from actors.gateway.http.access import Limits
from actors.gateway.http.app import Services, application
from actors.gateway.http.keys import ALL_SCOPES, ApiKeys
from actors.gateway.operator_orders import Order
from deploy.operating.order_client import give
from deploy.processes.gateway.operations import BrokerOperations
from events.jetstream import Access, JetStreamLog
from schemas.vocabulary.access import Operated
from schemas.vocabulary.allowances import AllowanceRecorded
from tests.actors.gateway.http.rig import key_of, ring_of
from tests.broker import Broker
from tests.deploy.operating.test_allowances import TEXT, neuraxis, rows, with_input
from tests.each import each

__all__ = ["with_input"]

API, OPERATOR = "an-application's-key", "an-operator's-own-key"
URL = "http://127.0.0.1:8642"
JUDGED = {"verdict": "false-alarm", "by": "ann", "why": "our own mail"}
BUTTON = {"allowance": "button", "phrase": "ignore previous", "by": "ann", "why": "a button", "agent": "ann"}


async def unrecorded(operated: Operated) -> None:
    """Put nothing on record: most of these gateways reach no broker."""


def only(operations: BrokerOperations) -> Services:
    """Return services of which none but this is asked."""
    others: dict[str, Any] = dict.fromkeys(Services.__struct_fields__)
    return Services(**{**others, "operations": operations, "audit": unrecorded})


@contextlib.asynccontextmanager
async def gateway(
    url: str,
    keys: Sequence[str] = (),
    operators: Sequence[str] = (),
    *,
    ring: ApiKeys | None = None,
    local: bool = True,
    wait_s: float = 20.0,
) -> AsyncIterator[httpx.AsyncClient]:
    operations = BrokerOperations(Access(servers=url), "NEURAXIS", wait_s=wait_s)
    app = application(ring or ring_of(keys, operators), local=local, limits=Limits(concurrent=8, body_s=5.0))
    app.open(only(operations))
    transport = httpx.ASGITransport(app, raise_app_exceptions=True)  # type: ignore[arg-type]
    async with httpx.AsyncClient(transport=transport, base_url=URL) as client:
        yield client


def ask(url: str, method: str, path: str, body: Any = None, *, key: str = "", **given: Any) -> httpx.Response:
    headers = {"Authorization": f"Bearer {key}"} if key else {}

    async def once() -> httpx.Response:
        async with gateway(url, **given) as client:
            return await client.request(method, path, json=body, headers=headers)

    return asyncio.run(once())


def exchange_of(broker: Broker) -> str:
    (told,) = rows(neuraxis(broker, "precedents", "judge", "last", "benign", "--why", "to learn its id", "--json"))
    return str(told["precedent"]).removeprefix("verdict-")


def test_a_verdict_by_http_puts_on_record_what_the_command_does(with_input: Broker) -> None:
    exchange = exchange_of(with_input)
    by_http = ask(with_input.url, "POST", "/v1/verdicts", {**JUDGED, "exchange": exchange})
    assert by_http.status_code == 200, by_http.text
    assert by_http.json() | {"seq": 0} == {
        "agent": "ann",
        "precedent": f"verdict-{exchange}",
        "verdict": "false-alarm",
        "seq": 0,
        "status": "success",
    }
    (precedent,) = rows(neuraxis(with_input, "precedents", "list", "--agent", "ann", "--json"))
    (allowance,) = rows(neuraxis(with_input, "allowances", "list", "--agent", "ann", "--json"))
    assert (precedent["description"], precedent["outcome"], precedent["by"]) == (TEXT, "benign", "ann")
    assert (allowance["text"], allowance["why"], allowance["seq"]) == (TEXT, "our own mail", by_http.json()["seq"])

    harm = {"exchange": exchange, "verdict": "harm", "harm_level": 0.8, "by": "bob", "why": "somebody was locked out"}
    assert ask(with_input.url, "POST", "/v1/verdicts", harm).status_code == 200
    (precedent,) = rows(neuraxis(with_input, "precedents", "list", "--agent", "ann", "--json"))
    assert (precedent["outcome"], precedent["harm_level"], precedent["by"]) == ("harmful", 0.8, "bob")
    assert precedent["why"] == "somebody was locked out"
    assert rows(neuraxis(with_input, "allowances", "list", "--agent", "ann", "--json")) == []


def test_a_key_with_an_agent_judges_exchanges_of_that_agent_alone(with_input: Broker) -> None:
    body = {**JUDGED, "exchange": exchange_of(with_input)}
    for agent, status in (("bob", 404), ("ann", 200)):
        ring = ApiKeys([key_of(OPERATOR, *ALL_SCOPES, agent=agent)])
        judged = ask(with_input.url, "POST", "/v1/verdicts", body, key=OPERATOR, ring=ring)
        assert judged.status_code == status, judged.text


def test_a_reason_may_be_as_long_as_the_body_says(with_input: Broker) -> None:
    added = ask(with_input.url, "POST", "/v1/allowances", {**BUTTON, "why": "w" * 2_000})
    assert added.status_code == 200, added.text


def test_a_false_alarm_that_could_not_be_allowed_is_refused(with_input: Broker) -> None:
    exchange = exchange_of(with_input)

    async def fill() -> None:
        log = await JetStreamLog.connect(with_input.url)
        try:
            held = [
                AllowanceRecorded(allowance=f"a-{n}", phrase=f"p {n}", by="ann", why="x")
                for n in range(MOST_ALLOWANCES)
            ]
            await give(log, [Order(event=each, agent="ann") for each in held], 20.0)
        finally:
            await log.close()

    asyncio.run(fill())
    refused = ask(with_input.url, "POST", "/v1/verdicts", {**JUDGED, "exchange": exchange})
    assert (refused.status_code, f"has {MOST_ALLOWANCES} allowances" in refused.json()["message"]) == (400, True)


@pytest.mark.parametrize("field", ["by", "why"])
def test_who_and_why_are_not_blank(field: str) -> None:
    for path, body in (
        ("/v1/verdicts", {**JUDGED, "exchange": "e-1"}),
        ("/v1/allowances", BUTTON),
        ("/v1/allowances/button/withdraw", {"by": "ann", "why": "gone"}),
    ):
        for blank in (" ", "\u200b", "\u3164"):
            refused = ask(NOWHERE, "POST", path, {**body, field: blank})
            assert (refused.status_code, refused.json().get("field")) == (400, field)


def test_only_a_harm_has_a_level() -> None:
    for verdict in ("benign", "false-alarm"):
        body = {**JUDGED, "exchange": "e-1", "verdict": verdict, "harm_level": 0.5}
        refused = ask(NOWHERE, "POST", "/v1/verdicts", body)
        assert (refused.status_code, refused.json()["field"]) == (400, "harm_level")


def test_an_allowance_of_hardly_anything_is_refused_as_the_command_refuses_it() -> None:
    for phrase in ("a", ".", "\u3164", "\u200b\u200b"):
        refused = ask(NOWHERE, "POST", "/v1/allowances", {**BUTTON, "phrase": phrase})
        assert (refused.status_code, refused.json()["field"]) == (400, "phrase")
    refused = ask(NOWHERE, "POST", "/v1/allowances", {**BUTTON, "phrase": "", "text": "\u3164"})
    assert (refused.status_code, refused.json()["field"]) == (400, "text")


def test_an_allowance_is_named_as_a_path_can_name_it() -> None:
    for name in ("a/b", ".", ".."):
        refused = ask(NOWHERE, "POST", "/v1/allowances", {**BUTTON, "allowance": name})
        assert (refused.status_code, refused.json()["field"]) == (400, "allowance")


def test_allowances_are_added_listed_and_withdrawn_by_http_as_by_command(with_input: Broker) -> None:
    url = with_input.url
    added = ask(url, "POST", "/v1/allowances", BUTTON)
    assert added.status_code == 200, added.text
    assert (added.json()["agent"], added.json()["allowance"]) == ("ann", "button")
    shown = ask(url, "GET", "/v1/allowances?agent=ann").json()["allowances"]
    assert shown == rows(neuraxis(with_input, "allowances", "list", "--agent", "ann", "--json"))
    gone = {"by": "ann", "why": "the button is gone", "agent": "ann"}
    assert ask(url, "POST", "/v1/allowances/button/withdraw", gone).status_code == 200
    assert ask(url, "GET", "/v1/allowances?agent=ann").json()["allowances"] == []
    again = ask(url, "POST", "/v1/allowances/button/withdraw", gone)
    assert (again.status_code, again.json()["code"]) == (404, "not_found")
    assert "has no allowance 'button'" in again.json()["message"]


def test_an_exchange_that_is_not_there_is_not_found(with_input: Broker) -> None:
    found = ask(with_input.url, "POST", "/v1/verdicts", {**JUDGED, "exchange": "0" * 32})
    assert (found.status_code, found.json()["code"]) == (404, "not_found")


# --- who may: none of these reaches a broker

NOWHERE = "nats://127.0.0.1:9"
REFUSED = [
    ("POST", "/v1/verdicts", {**JUDGED, "exchange": "e-1"}),
    ("POST", "/v1/allowances", BUTTON),
    ("POST", "/v1/allowances/button/withdraw", {"by": "ann", "why": "gone"}),
    ("GET", "/v1/allowances", None),
    ("POST", "/api/breaker/reset", {"session": "lunch", "by": "ann", "why": "read it"}),
    ("POST", "/api/what-if", {"exchange": "e-1", "settings": {"router.act": False}}),
    ("GET", "/api/settings", None),
    ("GET", "/api/state/breaker/lunch", None),
    ("GET", "/api/state/clock", None),
]


@each(("method", "path", "body"), REFUSED)
def test_an_applications_key_opens_nothing_of_an_operators(method: str, path: str, body: Any) -> None:
    given = {"keys": (API,), "operators": (OPERATOR,)}
    refused = ask(NOWHERE, method, path, body, key=API, **given)
    assert (refused.status_code, refused.json()["code"]) == (403, "forbidden")
    assert "neuraxis keys add --scope" in refused.json()["message"]
    assert ask(NOWHERE, method, path, body, **given).status_code == 401


@pytest.mark.parametrize("local", [True, False])
def test_where_there_are_keys_and_none_of_an_operator_nobody_may_and_is_told_how(local: bool) -> None:
    refused = ask(NOWHERE, "GET", "/v1/allowances", key=API, keys=(API,), local=local)
    assert refused.status_code == 403
    assert "neuraxis keys add --scope read" in refused.json()["message"]


def test_where_there_are_operators_keys_alone_they_are_asked_for_on_loopback_too() -> None:
    assert ask(NOWHERE, "GET", "/v1/allowances", operators=(OPERATOR,)).status_code == 401


def test_an_operators_key_lets_in_where_keys_are_asked_for_and_an_absent_broker_is_told(
    with_input: Broker,
) -> None:
    given = {"keys": (API,), "operators": (OPERATOR,), "local": False}
    assert ask(with_input.url, "GET", "/v1/allowances", key=OPERATOR, **given).json()["allowances"] == []
    away = ask(NOWHERE, "GET", "/v1/allowances", key=OPERATOR, wait_s=0.5, **given)
    assert (away.status_code, "retry-after" in away.headers) == (503, True)


# --- what is refused


@each(
    ("path", "body", "field"),
    [
        ("/v1/verdicts", {**JUDGED, "exchange": "e-1", "verdict": "bad"}, "verdict"),
        ("/v1/verdicts", {**JUDGED, "exchange": "e-1", "harm_level": 0}, "harm_level"),
        ("/v1/verdicts", {**JUDGED, "exchange": "e-1", "harmlevel": 1}, "harmlevel"),
        ("/v1/verdicts", {"exchange": "e-1", "verdict": "harm", "by": "ann"}, "why"),
        ("/v1/allowances", {**BUTTON, "text": "both"}, "phrase"),
        ("/v1/allowances", {**BUTTON, "phrase": " "}, "phrase"),
        ("/v1/allowances", {**BUTTON, "phrase": "a" * (MOST_CHARACTERS + 1)}, "phrase"),
        ("/v1/allowances", {**BUTTON, "allowance": "a\u0007b"}, "allowance"),
        ("/v1/allowances/button/withdraw", {"by": "ann"}, "why"),
    ],
)
def test_a_body_that_cannot_be_taken_is_refused_by_its_field(path: str, body: Any, field: str) -> None:
    refused = ask(NOWHERE, "POST", path, body)
    assert refused.status_code == 400, refused.text
    assert refused.json()["field"] == field
