"""What is recorded, over HTTP: wrong questions, and a reader of events who leaves."""

import asyncio
import errno
from collections.abc import AsyncGenerator
from typing import Any

from litestar import Litestar
from litestar.datastructures import State

from actors.gateway.http.keys import ANYBODY, ApiKeys
from actors.gateway.http.records.endpoints import StreamedEvent, follow_events
from events.ledger import ExchangeResult
from tests.actors.gateway.http import fakes
from tests.actors.gateway.http.rig import gateway
from tests.each import each
from tests.events.simulated_world import in_world
from tests.simulated import SimulatedStream


class Followed:
    """Records of one event, whose reading takes its time to be put away, as one of a broker's does."""

    def __init__(self) -> None:
        self.put_away = False

    async def follow(
        self, filter: str, after: int | None, *, words: bool
    ) -> AsyncGenerator[StreamedEvent | None, None]:
        return self._following()

    async def _following(self) -> AsyncGenerator[StreamedEvent | None, None]:
        try:
            yield StreamedEvent(7, "forged_id.alert.info.swarm", "{}")
            yield None
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.01)
            self.put_away = True


async def leave_after(count: int, records: Followed) -> list[dict[str, Any]]:
    """Follow events over ASGI, and go once ``count`` parts of the body have come; return what was sent."""
    app = Litestar(
        [follow_events],
        state=State({"records": records, "api_keys": ApiKeys()}),
        openapi_config=None,
        logging_config=None,
    )
    sent, leaves, asked = list[dict[str, Any]](), asyncio.Event(), False

    async def receive() -> dict[str, Any]:
        nonlocal asked
        if not asked:
            asked = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await leaves.wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)
        if sum(each["type"] == "http.response.body" for each in sent) == count:
            leaves.set()

    scope = {"type": "http", "method": "GET", "path": "/api/events", "query_string": b"", "headers": []}
    async with asyncio.timeout(30):
        await app({**scope, "root_path": "", "client": None, "server": None, "auth": ANYBODY}, receive, send)  # type: ignore[arg-type, typeddict-item]
    return sent


@each("wrong", ["limit=0", "limit=x", "before=-1", "at=99999999999999999999"])
def test_a_wrong_parameter_is_named_with_what_is_wrong_and_its_address_is_not_repeated(wrong: str) -> None:
    answers = []

    async def body(stream: SimulatedStream) -> None:
        async with gateway(stream) as client:
            answers.append(await client.get(f"/api/exchanges?{wrong}&session=somebody"))

    in_world(body)
    told = answers[0].json()
    name, _, _ = wrong.partition("=")
    assert (answers[0].status_code, told["code"], told["field"]) == (400, "bad_value", name)
    assert told["message"].startswith(f"{name}: Expected `int`")
    assert "somebody" not in answers[0].text


def test_a_reader_who_leaves_leaves_nothing_behind() -> None:
    records = Followed()
    start, event, quiet = asyncio.run(leave_after(2, records))
    assert records.put_away
    assert dict(start["headers"])[b"content-type"] == b"text/event-stream; charset=utf-8"
    assert event["body"].splitlines() == [b"id: 7", b"event: forged_id.alert.info.swarm", b"data: {}", b""]
    assert quiet["body"].startswith(b": nothing new")


@each(
    ("error", "status", "code", "told"),
    [
        (OSError(errno.EMFILE, "Too many open files"), 503, "out_of_resources", "has run out of open files"),
        (MemoryError(), 503, "out_of_resources", "has run out of memory"),
        (OSError(errno.ENOENT, "No such file"), 500, "failed", "a bug"),
    ],
)
def test_what_the_gateway_has_run_out_of_is_told_as_that_and_not_as_a_bug(
    error: Exception, status: int, code: str, told: str
) -> None:
    class Exhausted(fakes.Records):
        async def exchange(self, exchange: str) -> ExchangeResult:
            raise error

    async def body(stream: SimulatedStream) -> None:
        async with gateway(stream, records=Exhausted()) as client:
            answer = await client.get("/api/exchanges/e1")
        assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text
        assert told in answer.json()["message"]
        assert ("retry-after" in answer.headers) == (status == 503)

    in_world(body)
