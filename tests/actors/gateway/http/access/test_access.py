"""Who may come in, and how much they may bring."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
import structlog
from litestar import Litestar, Request, get, post

from actors.gateway.http.access import MAX_BODY, CapacityMiddleware, Limits
from actors.gateway.http.failures import HANDLERS
from actors.gateway.http.keys.rate import Rates
from actors.gateway.http.scopes import PUBLIC
from tests.actors.gateway.asking import stored
from tests.actors.gateway.http.rig import LIMITS, SCORED, URL, gateway, guarding, ring_of
from tests.each import each
from tests.events.simulated_world import in_world, world_test
from tests.simulated import SimulatedStream
from tests.simulation.loop import run_virtual

KEY, OTHER = "correct horse battery staple", "another key, as good as the first"
LOOP = "/orchestrator/loop-complete"


class Counting:
    """Counts what is let through, and holds it until it may end."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.may_end = asyncio.Event()
        self.let_in = asyncio.Semaphore(0)

    async def take(self, body: bytes) -> None:
        self.bodies.append(body)
        self.let_in.release()
        await self.may_end.wait()


def through(counting: Counting, limits: Limits = LIMITS) -> httpx.AsyncClient:
    """Return a client of an application that counts the requests that it serves."""

    @post("/v1/ticks", status_code=204)
    async def take(request: Request[Any, Any, Any]) -> None:
        await counting.take(await request.body())

    @get("/healthz", opt={PUBLIC: True})
    async def probe() -> None:
        await counting.take(b"")

    app = Litestar(
        [take, probe],
        middleware=[CapacityMiddleware(limits, Rates())],
        exception_handlers=HANDLERS,
        openapi_config=None,
        logging_config=None,
    )
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=URL)  # type: ignore[arg-type]


def ask(path: str, headers: dict[str, str], **door: Any) -> httpx.Response:
    """Ask a gateway once, whose guardrails do not run."""
    answers = []

    async def body(stream: SimulatedStream) -> None:
        async with gateway(stream, **door) as client:
            answers.append(await client.get(path, headers=headers))

    in_world(body)
    return answers[0]


@each("host", ["127.0.0.1:8642", "localhost", "localhost:1", "[::1]:8642", "127.9.9.9"])
def test_a_gateway_for_this_machine_answers_to_its_names(host: str) -> None:
    assert ask("/healthz", {"Host": host}).status_code == 200


@each("host", ["evil.example", "127.0.0.1.evil.example", "10.0.0.7:8642", "", "[::1", "a b", "@"])
def test_a_gateway_for_this_machine_answers_to_no_other_name(host: str) -> None:
    refused = ask("/healthz", {"Host": host})
    # The framework itself refuses what is no host's name at all.
    assert refused.status_code == (400 if " " in host else 403)
    assert refused.json()["status"] == "error"


def test_behind_a_proxy_on_this_machine_a_key_takes_the_place_of_the_name() -> None:
    proxied = {"Host": "neuraxis.example", "Origin": "https://neuraxis.example"}
    assert ask("/schema", proxied, keys=[KEY]).status_code == 401
    assert ask("/schema", {**proxied, "Authorization": f"Bearer {KEY}"}, keys=[KEY]).status_code == 200


def test_a_gateway_that_others_reach_answers_to_any_name_but_asks_for_a_key() -> None:
    headers = {"Host": "neuraxis.example"}
    assert ask("/schema", headers, local=False, keys=[KEY]).status_code == 401
    allowed = ask("/schema", {**headers, "Authorization": f"Bearer {KEY}"}, local=False, keys=[KEY])
    assert allowed.status_code == 200


@each(
    ("origin", "status"),
    [("http://evil.example", 403), ("null", 403), ("http://127.0.0.1:1", 403), (URL, 200), ("http://[", 403)],
)
def test_pages_from_elsewhere_are_not_served(origin: str, status: int) -> None:
    assert ask("/schema", {"Origin": origin}).status_code == status


@each(
    ("site", "mode", "dest", "status"),
    [
        ("cross-site", "no-cors", "script", 403),
        ("same-site", "no-cors", "image", 403),
        ("cross-site", "navigate", "iframe", 403),
        ("cross-site", "navigate", "document", 200),
        ("same-origin", "cors", "empty", 200),
        ("none", "navigate", "document", 200),
    ],
)
def test_what_a_page_from_elsewhere_loads_without_an_origin_is_not_served(
    site: str, mode: str, dest: str, status: int
) -> None:
    browser = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": mode, "Sec-Fetch-Dest": dest}
    assert ask("/schema", browser).status_code == status


@each(
    ("path", "headers"),
    [("/schema", {}), ("/metrics", {}), ("/healthz", {}), ("/nothing", {}), ("/schema", {"Host": "evil.example"})],
)
def test_no_response_but_our_pages_runs_anything_in_a_browser(path: str, headers: dict[str, str]) -> None:
    answered = ask(path, headers)
    assert answered.headers["x-content-type-options"] == "nosniff"
    assert answered.headers["cross-origin-resource-policy"] == "same-origin"
    assert "sandbox" in answered.headers["content-security-policy"]


def test_a_response_says_once_what_a_browser_may_do_with_it() -> None:
    page = ask("/dashboard", {})
    for name in ("content-security-policy", "x-content-type-options", "referrer-policy"):
        assert len(page.headers.get_list(name)) == 1
    assert "script-src 'self'" in page.headers["content-security-policy"]


@each("key", [KEY, OTHER])
def test_any_of_several_keys_opens(key: str) -> None:
    assert ask("/schema", {"Authorization": f"Bearer {key}"}, keys=[KEY, OTHER]).status_code == 200


@each("value", ["", KEY, f"Basic {KEY}", f"Bearer {KEY}x", "Bearer", "Bearer ", f"Bearer {KEY[:-1]}"])
def test_nothing_else_opens(value: str) -> None:
    refused = ask("/schema", {"Authorization": value} if value else {}, keys=[KEY])
    assert refused.status_code == 401
    assert refused.headers["www-authenticate"] == "Bearer"
    assert "access-control-allow-origin" not in refused.headers


@each("path", ["/healthz", "/readyz"])
def test_probes_need_no_key(path: str) -> None:
    assert ask(path, {}, keys=[KEY]).status_code != 401


@world_test
async def test_a_refused_request_leaves_nothing_in_the_log(stream: SimulatedStream) -> None:
    async with guarding(stream), gateway(stream, keys=[KEY]) as client:
        assert (await client.post(LOOP, json=SCORED)).status_code == 401
    assert stored(stream, "loop.completed") == []


def test_keys_are_never_shown() -> None:
    async def body(stream: SimulatedStream) -> None:
        async with gateway(stream, keys=[KEY]) as client:
            await client.get("/schema", headers={"Authorization": f"Bearer {KEY}"})
            await client.get("/schema", headers={"Authorization": f"Bearer {OTHER}"})

    structlog.reset_defaults()
    with structlog.testing.capture_logs() as lines:
        in_world(body)
    said = json.dumps(lines)
    assert lines
    assert KEY not in said
    assert OTHER not in said
    assert KEY not in repr(ring_of([KEY]))


async def _pieces(total: int, piece: int = 65_536) -> AsyncIterator[bytes]:
    for begin in range(0, total, piece):
        yield b" " * min(piece, total - begin)


@each("size", [MAX_BODY + 1, 3 * MAX_BODY])
@each("chunked", [False, True])
def test_a_body_that_is_too_large_is_refused(size: int, chunked: bool) -> None:
    async def main() -> httpx.Response:
        app = Counting()
        async with through(app) as client:
            answer = await client.post("/v1/ticks", content=_pieces(size) if chunked else b" " * size)
        assert app.bodies == []
        return answer

    refused = run_virtual(main())
    assert refused.status_code == 413
    assert "1,000,000" in refused.json()["message"]


def test_a_body_of_just_the_size_goes_through_whole() -> None:
    async def main() -> list[bytes]:
        app = Counting()
        app.may_end.set()
        async with through(app) as client:
            assert (await client.post("/v1/ticks", content=_pieces(MAX_BODY))).status_code == 204
        return app.bodies

    assert [len(body) for body in run_virtual(main())] == [MAX_BODY]


def test_a_body_that_does_not_come_in_is_given_up() -> None:
    async def slowly() -> AsyncIterator[bytes]:
        yield b"{"
        await asyncio.sleep(3600)

    async def main() -> tuple[int, float]:
        async with through(Counting()) as client:
            answer = await client.post("/v1/ticks", content=slowly())
        return answer.status_code, asyncio.get_running_loop().time()

    status, took = run_virtual(main())
    assert status == 408
    assert took == pytest.approx(LIMITS.body_s)


def test_a_body_that_says_that_it_is_too_large_is_told_so_even_if_it_does_not_come_in() -> None:
    async def slowly() -> AsyncIterator[bytes]:
        yield b"{"
        await asyncio.sleep(3600)

    async def main() -> tuple[int, str]:
        async with through(Counting()) as client:
            stated = {"content-length": str(MAX_BODY + 1)}
            answer = await client.post("/v1/ticks", content=slowly(), headers=stated)
        return answer.status_code, answer.json()["message"]

    assert run_virtual(main()) == (413, "the body has more than 1,000,000 bytes: send less")


def test_who_has_no_key_takes_no_place_from_those_who_have() -> None:
    async def body(stream: SimulatedStream) -> None:
        async with gateway(stream, keys=[KEY], limits=Limits(concurrent=1, body_s=60.0)) as client:
            slowly = [
                asyncio.create_task(client.request(method, path, content=never()))
                for method, path in (("GET", "/dashboard"), ("GET", "/readyz"), ("POST", LOOP), ("POST", "/nowhere"))
            ]
            for each in slowly:
                assert (await each).status_code in (200, 401, 404, 503)
            assert (await client.get("/schema", headers={"Authorization": f"Bearer {KEY}"})).status_code == 200
            assert asyncio.get_running_loop().time() < 5

    async def never() -> AsyncIterator[bytes]:
        yield b"{"
        await asyncio.sleep(3600)

    in_world(body)


def test_beyond_the_limit_requests_are_told_to_come_again_and_probes_are_served() -> None:
    async def main() -> None:
        app = Counting()
        async with through(app, Limits(concurrent=3, body_s=5.0)) as client:
            held = [asyncio.create_task(client.post("/v1/ticks")) for _ in range(3)]
            for _ in held:
                await app.let_in.acquire()
            refused = await client.post("/v1/ticks")
            assert refused.status_code == 429
            assert refused.headers["retry-after"] == "1"
            probe = asyncio.create_task(client.get("/healthz"))
            await app.let_in.acquire()
            app.may_end.set()
            assert [answer.status_code for answer in await asyncio.gather(*held, probe)] == [204, 204, 204, 200]
            assert (await client.post("/v1/ticks")).status_code == 204

    run_virtual(main())
