"""How often an endpoint is asked, how long it is waited for, and when it is left alone."""

import asyncio

import msgspec
import pytest

from actors.llm.client import ChatClient
from actors.llm.endpoint import Endpoint
from actors.llm.settings import Models
from schemas.vocabulary.llm import LlmCompleted, LlmFailed
from tests.actors.llm import scripted
from tests.actors.llm.asking import QUICK, Asking, call_of, over
from tests.actors.llm.scripted import HANGS, Reply, fails, nobody, says
from tests.actors.runtime.waiting import until
from tests.each import each


@each("first", [fails(429), fails(500), fails(503), Reply((b"{",), then="cut")])
def test_what_may_pass_is_tried_again(first: Reply) -> None:
    @over(first, says())
    async def _(asking: Asking, endpoint: scripted.Endpoint) -> None:
        assert (await asking.completed()).attempts == 2
        assert [asked.headers["idempotency-key"] for asked in endpoint.asked] == ["request-1"] * 2


@each("status", [301, 400, 401, 403, 404, 405, 413, 422])
def test_a_refusal_that_another_attempt_does_not_mend_is_final(status: int) -> None:
    @over(fails(status, Location="http://127.0.0.1:9/"))
    async def _(asking: Asking, endpoint: scripted.Endpoint) -> None:
        failed = await asking.failed()
        assert (failed.reason, failed.error) == ("endpoint_refused", f"HTTP {status}")
        assert len(endpoint.asked) == 1


@each(
    ("status", "said"),
    [
        (404, "model qwen3:8b not found, try pulling it first"),
        (400, "The model `qwen3:8b` does not exist or you do not have access to it."),
        (400, "qwen3:8b is a model id that is not found"),
    ],
)
def test_a_model_that_the_endpoint_lacks_is_named_so(status: int, said: str) -> None:
    @over(fails(status, f'{{"error": {{"message": "{said}"}}}}'.encode()))
    async def _(asking: Asking, endpoint: scripted.Endpoint) -> None:
        assert (await asking.failed()).reason == "no_model"


def test_a_purpose_without_a_model_asks_nobody() -> None:
    @over(says(), settings=msgspec.structs.replace(QUICK, models=Models(act="")))
    async def _(asking: Asking, endpoint: scripted.Endpoint) -> None:
        assert (await asking.failed()).reason == "no_model"
        assert endpoint.asked == []


def test_attempts_are_bounded_and_the_last_failure_is_recorded() -> None:
    @over(fails(503), settings=msgspec.structs.replace(QUICK, attempts=3))
    async def _(asking: Asking, endpoint: scripted.Endpoint) -> None:
        failed = await asking.failed()
        assert (failed.reason, failed.error) == ("endpoint_refused", "HTTP 503")
        assert len(endpoint.asked) == 3


def test_an_endpoint_that_is_not_there_is_unreachable() -> None:
    async def run() -> None:
        with nobody() as gone:
            async with ChatClient.open(Endpoint(gone), connect_s=2.0, concurrency=1) as client:
                asking = Asking(client, QUICK)
                failed = await asking.failed()
        assert (failed.reason, failed.error) == ("endpoint_unreachable", "ConnectError")
        assert len(asking.slept) == QUICK.attempts - 1

    asyncio.run(run())


def test_waits_are_random_up_to_a_bound_that_doubles() -> None:
    settings = msgspec.structs.replace(
        QUICK, attempts=8, backoff_first_ms=100, backoff_most_ms=1_000, circuit_failures=1_000
    )

    @over(fails(500), settings=settings)
    async def _(asking: Asking, endpoint: scripted.Endpoint) -> None:
        await asking.failed(call_of(timeout_ms=60_000))
        bounds = [min(1.0, 0.1 * 2**number) for number in range(7)]
        assert len(asking.slept) == 7
        assert all(0 <= slept <= bound for slept, bound in zip(asking.slept, bounds, strict=True))
        assert len(set(asking.slept)) == 7


def test_the_wait_that_an_endpoint_asks_for_is_kept() -> None:
    @over(fails(429, Retry_After="7"), says())
    async def _(asking: Asking, endpoint: scripted.Endpoint) -> None:
        await asking.completed()
        [slept] = asking.slept
        assert 7.0 <= slept <= 7.0 + QUICK.backoff_most_ms / 1000


def test_a_wait_longer_than_the_time_left_ends_the_request_at_once() -> None:
    @over(fails(429, Retry_After="3600"), says())
    async def _(asking: Asking, endpoint: scripted.Endpoint) -> None:
        assert (await asking.failed()).reason == "endpoint_refused"
        assert asking.slept == []


# --- time


def test_an_endpoint_that_hangs_is_overdue() -> None:
    @over(HANGS)
    async def _(asking: Asking, endpoint: scripted.Endpoint) -> None:
        failed = await asking.failed(call_of(timeout_ms=500))
        assert (failed.reason, failed.error) == ("endpoint_overdue", "TimeoutError")


def test_the_time_of_a_request_is_bounded_by_the_settings_too() -> None:
    @over(HANGS, settings=msgspec.structs.replace(QUICK, longest_ms=100))
    async def _(asking: Asking, endpoint: scripted.Endpoint) -> None:
        assert (await asking.failed(call_of(timeout_ms=3_600_000))).reason == "endpoint_overdue"


def test_a_request_that_waited_past_its_time_asks_nobody() -> None:
    @over(says())
    async def _(asking: Asking, endpoint: scripted.Endpoint) -> None:
        failed = await asking.failed(call_of(timeout_ms=5_000), age_s=6.0)
        assert (failed.reason, failed.error) == ("endpoint_overdue", "RequestExpired")
        assert endpoint.asked == []


def test_a_performance_that_is_cancelled_ends_as_cancelled() -> None:
    @over(HANGS)
    async def _(asking: Asking, endpoint: scripted.Endpoint) -> None:
        performing = asyncio.create_task(asking.ask())
        await until(lambda: bool(endpoint.asked), "the endpoint to be asked")
        performing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await performing


# --- the circuit


def test_a_dead_endpoint_is_left_alone_and_tried_again_after_a_while() -> None:
    settings = msgspec.structs.replace(QUICK, attempts=1, circuit_failures=3, circuit_wait_ms=1_000)

    @over(fails(500), fails(500), fails(500), says(), settings=settings)
    async def _(asking: Asking, endpoint: scripted.Endpoint) -> None:
        reasons = [(await asking.failed()).reason for _ in range(4)]
        assert reasons == ["endpoint_refused"] * 3 + ["circuit_open"]
        assert len(endpoint.asked) == 3
        while isinstance(event := await asking.ask(), LlmFailed):
            assert event.reason == "circuit_open"
            await asyncio.sleep(0.01)
        assert len(endpoint.asked) == 4


def test_the_request_that_finds_the_endpoint_dead_says_why_and_stops_trying() -> None:
    @over(fails(500), settings=msgspec.structs.replace(QUICK, attempts=10, circuit_failures=2))
    async def _(asking: Asking, endpoint: scripted.Endpoint) -> None:
        assert (await asking.failed()).reason == "endpoint_refused"
        assert len(endpoint.asked) == 2


def test_hanging_opens_the_circuit_and_refusing_does_not() -> None:
    settings = msgspec.structs.replace(QUICK, attempts=1, circuit_failures=1, circuit_wait_ms=60_000)

    @over(fails(401), fails(429), HANGS, settings=settings)
    async def _(asking: Asking, endpoint: scripted.Endpoint) -> None:
        patient, quick = call_of(), call_of(timeout_ms=200)
        reasons = [(await asking.failed(call)).reason for call in (patient, patient, quick, quick)]
        assert reasons == ["endpoint_refused", "endpoint_refused", "endpoint_overdue", "circuit_open"]


def test_a_model_that_fails_does_not_shut_out_another() -> None:
    settings = msgspec.structs.replace(QUICK, attempts=1, circuit_failures=1, circuit_wait_ms=60_000)

    @over(fails(500), says(), settings=settings)
    async def _(asking: Asking, endpoint: scripted.Endpoint) -> None:
        assert (await asking.failed()).reason == "endpoint_refused"
        assert (await asking.failed()).reason == "circuit_open"
        assert isinstance(await asking.ask(call_of(purpose="tiebreak")), LlmCompleted)
