"""What the doctor concludes of the endpoint that requests are passed on to."""

import asyncio
import socket
from pathlib import Path

from deploy.config.loading import UPSTREAM_VARIABLE
from deploy.health.findings import Finding, Verdict
from deploy.health.upstream_check import examine_upstream
from tests.actors.llm.scripted import Endpoint, fails, lists, serving
from tests.actors.webhook.alerts import dripping
from tests.each import each

KEY = "sk-upstream-0123456789"


def base_of(upstream: Endpoint) -> str:
    """Return an address of which the endpoint's own list of models is no part."""
    return upstream.base_url.replace("/v1", "/theirs")


async def examined(url: str, key: str = "", timeout_s: float = 5.0) -> Finding:
    found = await examine_upstream(url, {UPSTREAM_VARIABLE: key}, "", timeout_s)
    assert KEY not in str(found)
    return found


def test_one_that_lists_its_models_is_well_and_is_asked_with_our_key() -> None:
    async def main() -> None:
        async with serving(lists("a", "b")) as upstream:
            found = await examined(base_of(upstream), KEY)
            assert (found.verdict, "lists 2 models" in found.detail) == (Verdict.OK, True)
            assert [each.headers["authorization"] for each in upstream.asked] == [f"Bearer {KEY}"]

    asyncio.run(main())


@each(
    ("status", "body", "key", "verdict"),
    [
        (401, b"", KEY, Verdict.FAIL), (403, b"", KEY, Verdict.FAIL), (401, b"", "", Verdict.OK),
        (407, b"", "", Verdict.FAIL), (502, b"", "", Verdict.FAIL), (503, b"", KEY, Verdict.FAIL),
        (404, b"", KEY, Verdict.WARN), (302, b"", KEY, Verdict.WARN),
        (200, b'{"error": {"code": 401, "message": "no such key"}}', KEY, Verdict.FAIL),
        (200, b'{"error": {"code": 503, "message": "overloaded"}}', KEY, Verdict.FAIL),
        (200, b"<html><title>Sign in</title></html>", KEY, Verdict.WARN),
    ],
)  # fmt: skip
def test_one_that_does_not_is_judged_by_what_it_says(status: int, body: bytes, key: str, verdict: Verdict) -> None:
    async def main() -> None:
        async with serving(fails(status, body)) as upstream:
            found = await examined(base_of(upstream), key)
        assert found.verdict is verdict, found
        assert found.remedy or verdict is Verdict.OK

    asyncio.run(main())


def test_one_that_nobody_listens_at_or_that_comes_to_no_end_fails() -> None:
    async def main() -> list[Finding]:
        with socket.socket() as nobody:  # bound, and nobody listens
            nobody.bind(("127.0.0.1", 0))
            away = await examined(f"http://127.0.0.1:{nobody.getsockname()[1]}/v1")
        async with dripping() as drips:
            return [away, await examined(drips, timeout_s=0.2)]

    found = asyncio.run(main())
    assert [each.verdict for each in found] == [Verdict.FAIL, Verdict.FAIL]
    assert all("requests that are passed on to it fail" in each.remedy for each in found)


def test_without_an_upstream_there_is_nothing_to_look_at() -> None:
    assert asyncio.run(examined("")).verdict is Verdict.SKIP


def test_a_key_that_cannot_be_read_here_is_a_warning(tmp_path: Path) -> None:
    found = asyncio.run(examine_upstream("http://127.0.0.1:1/v1", {}, str(tmp_path / "none")))
    assert (found.verdict, "gateway.upstream" in found.remedy) == (Verdict.WARN, True)
