"""What a person finds at the gateway's root, and what a probe gets that asks by HEAD."""

import re
from html import unescape
from typing import Any

from tests.actors.gateway.http.rig import gateway
from tests.each import each
from tests.events.simulated_world import in_world
from tests.simulated import SimulatedStream

KEY = "correct horse battery staple"


def answers(*requests: tuple[str, str], **door: Any) -> list[Any]:
    found = []

    async def body(stream: SimulatedStream) -> None:
        async with gateway(stream, **door) as client:
            for method, path in requests:
                found.append(await client.request(method, path))

    in_world(body)
    return found


@each("path", ["/", "/docs", "/docs/"])
def test_the_root_lists_every_endpoint_and_leads_to_the_document(path: str) -> None:
    page, document = answers(("GET", path), ("GET", "/schema"))
    assert page.status_code == 200
    assert page.headers["content-type"].startswith("text/html")
    for served, methods in document.json()["paths"].items():
        for method, operation in methods.items():
            assert f"<code>{method.upper()} {served}</code>" in page.text
            assert operation["description"].splitlines()[0] in unescape(page.text)


def test_every_link_of_the_page_leads_somewhere_here_and_it_loads_nothing() -> None:
    [page] = answers(("GET", "/"))
    links = re.findall(r'(?:href|src)="([^"]*)"', page.text)
    assert "/schema" in links
    assert all(answer.status_code in (200, 503) for answer in answers(*(("GET", link) for link in links)))
    assert "http" not in page.text
    assert "<script" not in page.text
    assert page.headers["content-security-policy"].startswith("default-src 'none'")


def test_where_keys_are_asked_for_the_page_asks_for_one() -> None:
    [page] = answers(("GET", "/"), keys=[KEY])
    assert page.status_code == 401


@each(
    "path",
    [
        "/nowhere", "/schema/swagger", "/schema/redoc/", "/schema/a/b", "/schema/openapi.yml/x", "/docs/x", "/v1",
        "/healthz/x",
    ],
)  # fmt: skip
def test_what_is_not_served_is_answered_as_json_wherever_it_would_be(path: str) -> None:
    for answer in answers(("GET", path), ("POST", path)):
        assert answer.status_code in (404, 405)
        assert answer.headers["content-type"].startswith("application/json")
        assert answer.json()["code"] in ("not_found", "bad_method")


@each("path", ["/schema", "/schema/", "/schema/openapi.json", "/schema/openapi.yaml", "/schema/openapi.yml"])
def test_the_document_is_served_under_each_of_its_names(path: str) -> None:
    [answer] = answers(("GET", path))
    assert answer.status_code == 200
    assert "loop-complete" in answer.text


@each(
    "path", ["/healthz", "/readyz", "/", "/schema", "/orchestrator/guardrails-status/nobody", "/v1/ticks", "/nowhere"]
)
def test_head_is_answered_as_get_is_without_the_body(path: str) -> None:
    head, got = answers(("HEAD", path), ("GET", path))
    assert head.status_code == got.status_code
    assert head.content == b""
    assert got.content
    assert int(head.headers["content-length"]) > 0


def test_head_is_refused_where_get_is() -> None:
    head, got = answers(("HEAD", "/schema"), ("GET", "/schema"), keys=[KEY])
    assert (head.status_code, got.status_code) == (401, 401)
    assert head.content == b""
