"""What the client sends, how it reads what comes back, and when it sends again: over a transport made for each test."""

import asyncio
import fcntl
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest

import neuraxis
from neuraxis import AsyncClient, Client, Input, Layer
from neuraxis.events import event_of_message

URL = "http://127.0.0.1:8642"
VERDICT = {
    "exchange": "e1", "allowed": True, "stage": "ARBITER", "action": "PASSED", "reason": "check",
    "sentence": "Let pass.", "numbers": {"reflex.passed": {"matches": []}}, "of_a_later_release": 1,
}  # fmt: skip
ENDED = {"exchange": "e2", "agent": "default", "session": "s", "stage": "REFLEX", "action": "BLOCKED", "reason": "x"}
COMPLETION = {
    "choices": [{"message": {"role": "assistant", "content": "I cannot."}, "finish_reason": "content_filter"}],
    "usage": {"total_tokens": 0},
    "neuraxis": {**ENDED, "mode": None},
}
Answering = Callable[[httpx.Request], httpx.Response]


class Scripted:
    """Gives the answers in turn, and keeps what it was asked."""

    def __init__(self, *answers: httpx.Response | httpx.HTTPError) -> None:
        self._answers = list(answers)
        self.asked: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request)
        answer = self._answers.pop(0)
        if isinstance(answer, httpx.HTTPError):
            raise answer
        return answer

    def client(self, **options: Any) -> Client:
        return Client(URL, transport=httpx.MockTransport(self), **options)

    def bodies(self) -> list[Any]:
        return [json.loads(request.content) for request in self.asked]


def told(body: Any, status: int = 200, **headers: str) -> httpx.Response:
    return httpx.Response(status, json=body, headers={name.replace("_", "-"): text for name, text in headers.items()})


@pytest.fixture(autouse=True)
def paused(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    slept: list[float] = []
    monkeypatch.setattr("neuraxis.client.time.sleep", slept.append)
    return slept


def test_a_check_sends_what_it_is_given_and_returns_a_typed_verdict() -> None:
    server = Scripted(told({"allowed": True, "results": [VERDICT]}))
    layers = [Layer(role="system", content="Be kind.")]
    verdict = server.client(api_key="k").check(
        "Hello", layers=layers, documents=["A page"], context="travel", session="s", agent="a", user="ann"
    )
    assert (verdict.allowed, verdict.stage, verdict.numbers["reflex.passed"]) == (True, "ARBITER", {"matches": []})
    assert verdict.require() is verdict
    [request] = server.asked
    assert (request.url.path, request.headers["authorization"]) == ("/v1/guard", "Bearer k")
    assert request.headers["x-neuraxis-user"] == "ann"
    assert server.bodies() == [
        {
            "text": "Hello",
            "layers": [{"role": "system", "content": "Be kind."}],
            "documents": ["A page"],
            "context": "travel",
            "session": "s",
            "agent": "a",
        }
    ]


def test_a_refusal_is_a_verdict_and_an_error_only_for_who_requires_it() -> None:
    refused = {**VERDICT, "allowed": False, "action": "BLOCKED", "reason": "jailbreak"}
    verdict = Scripted(told({"results": [refused]})).client().check("x")
    with pytest.raises(neuraxis.Refused, match="Let pass") as raised:
        verdict.require()
    assert (raised.value.verdict, raised.value.code, raised.value.exchange) == (verdict, "jailbreak", "e1")


def test_several_inputs_are_one_request() -> None:
    server = Scripted(told({"results": [VERDICT, {**VERDICT, "allowed": False}]}))
    verdicts = server.client().check_all([Input(text="a"), Input(text="b", tool_results=["c"])])
    assert [each.allowed for each in verdicts] == [True, False]
    assert server.bodies() == [{"inputs": [{"text": "a"}, {"text": "b", "tool_results": ["c"]}]}]


def test_an_answer_has_its_decision() -> None:
    server = Scripted(told(COMPLETION))
    answer = server.client().ask("Who?", session="s")
    assert (answer.text, answer.refused, answer.decision.exchange, answer.decision.mode) == (
        "I cannot.",
        True,
        "e2",
        "",
    )
    assert server.asked[0].headers["x-neuraxis-session"] == "s"
    assert server.bodies() == [{"model": "neuraxis", "messages": [{"role": "user", "content": "Who?"}]}]


def test_feedback_is_sent_as_it_is_meant_and_answered_by_the_event() -> None:
    server = Scripted(told({"exchange": "e1", "event": "f1"}, 202))
    given = server.client().feedback("e1", reward=-0.5, harmful=False, comment="late")
    assert (given.exchange, given.event, server.asked[0].url.path) == ("e1", "f1", "/v1/feedback")
    assert server.bodies() == [{"exchange": "e1", "reward": -0.5, "harmful": False, "comment": "late"}]


def test_exchanges_are_narrowed_and_paged() -> None:
    row = {"exchange": "e1", "agent": "a", "session": "s", "seq": 4, "started": "t", "latency_ms": 1.5}
    server = Scripted(told({"exchanges": [row], "before": 4, "head": 9}))
    page = server.client().exchanges(agent="a", action="BLOCKED", limit=1)
    assert (page.exchanges[0].seq, page.exchanges[0].stage, page.before, page.head) == (4, "", 4, 9)
    assert dict(server.asked[0].url.params) == {"agent": "a", "action": "BLOCKED", "limit": "1"}


def test_why_has_the_sentence_and_the_whole_tree() -> None:
    server = Scripted(told({"sentence": "Refused.", "roots": []}))
    found = server.client().why("e1")
    assert (found.sentence, found.tree["roots"], server.asked[0].url.path) == ("Refused.", [], "/api/exchanges/e1/why")


OPENAIS = {"error": {"message": "one answer", "type": "invalid_request_error", "param": "n", "code": "bad_value"}}
OURS = {"status": "error", "code": "unknown_field", "field": "txt", "message": "did you mean text?"}


@pytest.mark.parametrize(
    ("status", "body", "kind", "code"),
    [
        (400, OURS, neuraxis.BadInput, "unknown_field"),
        (400, OPENAIS, neuraxis.BadInput, "bad_value"),
        (401, OURS, neuraxis.Unauthorized, "unknown_field"),
        (403, None, neuraxis.Forbidden, "status_403"),
        (404, OURS, neuraxis.NotFound, "unknown_field"),
        (413, OURS, neuraxis.BadInput, "unknown_field"),
        (307, None, neuraxis.BadAnswer, "status_307"),
        (500, [], neuraxis.ServerFailed, "status_500"),
        (503, OURS, neuraxis.Unavailable, "unknown_field"),
        (504, {**OURS, "code": "unanswered"}, neuraxis.Unanswered, "unanswered"),
        (504, {"error": {"message": "Timeout", "code": "504"}}, neuraxis.NotReachable, "504"),
        (504, None, neuraxis.NotReachable, "status_504"),
        (504, {"message": "Endpoint request timed out"}, neuraxis.NotReachable, "status_504"),
    ],
)
def test_each_failure_has_its_type(status: int, body: Any, kind: type[neuraxis.NeuraxisError], code: str) -> None:
    server = Scripted(told(body, status, x_neuraxis_exchange="e9"))
    with pytest.raises(kind) as raised:
        server.client().check("x")
    assert (raised.value.code, raised.value.status, raised.value.exchange) == (code, status, "e9")
    assert len(server.asked) == 1, "a check that may have been taken is not sent again"


def test_what_is_limited_says_when_to_come_again_and_is_sent_again(paused: list[float]) -> None:
    busy = told(OURS, 429, retry_after="3")
    server = Scripted(busy, httpx.ConnectError("refused"), told({"results": [VERDICT]}))
    assert server.client().check("x").allowed
    assert paused == [3.0, 0.4]
    with pytest.raises(neuraxis.RateLimited) as raised:
        Scripted(busy).client(retries=0).check("x")
    assert raised.value.retry_after == 3.0


def test_whatever_a_strange_server_answers_is_an_error_of_the_client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("neuraxis.calls.MOST_BYTES", 1_000_000)
    deep, long = httpx.Response(200, content=b"[" * 200_000), httpx.Response(200, content=b" " * 1_000_001)
    for answer in (deep, long, httpx.Response(200, content=b"9" * 10_000)):
        with pytest.raises(neuraxis.BadAnswer):
            Scripted(answer).client().check("x")
    for asked, seconds in (("nan", 1.0), ("inf", 3600.0), ("-1", 0.0), ("Wed, 21 Oct 2026 07:28:00 GMT", 1.0)):
        with pytest.raises(neuraxis.RateLimited) as raised:
            Scripted(told(OURS, 429, retry_after=asked)).client(retries=0).check("x")
        assert raised.value.retry_after == seconds


def test_only_what_changes_nothing_is_sent_again_after_a_broken_connection() -> None:
    row = told({"exchanges": [], "before": 0, "head": 0})
    server = Scripted(httpx.ReadError("cut"), told(OURS, 503), row)
    assert server.client().exchanges().exchanges == ()
    told_of = Scripted(httpx.ReadError("cut"), told({"exchange": "e1", "event": "f1", "precedent": "p1"}, 202))
    assert told_of.client().feedback("e1", harmful=True).precedent == "p1"
    assert len({each.headers["idempotency-key"] for each in told_of.asked}) == 1
    for call in (lambda client: client.ask("x"), lambda client: client.check("x")):
        broken = Scripted(httpx.ReadError("cut"))
        with pytest.raises(neuraxis.NotReachable) as raised:
            call(broken.client())
        assert (raised.value.code, len(broken.asked)) == ("broken", 1)


def test_a_pause_that_would_outlast_the_time_of_the_call_is_not_made() -> None:
    with pytest.raises(neuraxis.RateLimited):
        Scripted(told(OURS, 429, retry_after="30")).client(timeout=5).check("x")


@pytest.mark.parametrize(
    "body",
    [None, [], {}, {"results": []}, {"results": [{"exchange": "e1"}]}, {"results": [{**VERDICT, "stage": None}]}],
)
def test_what_is_no_neuraxis_is_said_to_be_none(body: Any) -> None:
    with pytest.raises(neuraxis.BadAnswer, match="base URL"):
        Scripted(told(body)).client().check("x")
    with pytest.raises(neuraxis.BadAnswer, match="base URL"):
        Scripted(httpx.Response(200, text="<h1>hello</h1>")).client().check("x")


WRONG: Sequence[tuple[Callable[[Client], object], str]] = [
    (lambda client: client.feedback("e1"), "reward"),
    (lambda client: client.feedback("e1", reward=2), "reward"),
    (lambda client: client.feedback("../x", harmful=True), "exchange"),
    (lambda client: client.why(""), "exchange"),
    (lambda client: client.check_all([]), "inputs"),
    (lambda client: client.check_all([Input(text="a")] * 129), "inputs"),
    (lambda client: client.ask("x", session="späť"), "session"),
    (lambda client: client.ask("x", user="a\nb"), "user"),
    (lambda client: client.ask("half a character: \ud800"), ""),
    (lambda client: client.ask([{"role": "user", "content": float("nan")}]), ""),
]


@pytest.mark.parametrize(("call", "field"), WRONG)
def test_what_cannot_be_right_is_told_before_anything_is_sent(call: Callable[[Client], object], field: str) -> None:
    server = Scripted()
    with pytest.raises(neuraxis.BadInput) as raised:
        call(server.client())
    assert (raised.value.field, server.asked) == (field, [])


def test_the_server_is_found_by_argument_then_environment_then_running_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NEURAXIS_URL", raising=False)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(neuraxis.Misconfigured, match="NEURAXIS_URL"):
        Client()
    Path(".neuraxis").mkdir()
    Path(".neuraxis/run.json").write_text('{"http": ""}')
    with pytest.raises(neuraxis.Misconfigured, match="no HTTP"):
        Client()
    Path(".neuraxis/run.json").write_text('{"http": "http://127.0.0.1:1"}')
    assert repr(Client()) == "Client('http://127.0.0.1:1')"
    with open(".neuraxis/lock", "w") as lock:
        with pytest.raises(neuraxis.Misconfigured, match="was killed"):  # another server may have its port by now
            Client()
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(neuraxis.Misconfigured, match="is starting"):
            Client()
        print(7, file=lock, flush=True)
        Path(".neuraxis/run.json").write_text('{"http": "http://0.0.0.0:1", "pid": 7}')
        assert repr(Client()) == "Client('http://127.0.0.1:1')", "past a proxy"
    monkeypatch.setenv("NEURAXIS_URL", "http://127.0.0.1:2/v1/")
    assert repr(Client()) == "Client('http://127.0.0.1:2')"
    assert repr(AsyncClient("https://guard.example/base")) == "AsyncClient('https://guard.example/base')"


@pytest.mark.parametrize(
    ("misspelt", "meant"),
    [
        ("NEURAXIS_ULR", "NEURAXIS_URL"),
        ("NEURAXISURL", "NEURAXIS_URL"),
        ("NEURAXIS_APIKEY", "NEURAXIS_API_KEY"),
        ("NEURAXIS_API_KYE", "NEURAXIS_API_KEY"),
    ],
)
def test_a_misspelt_variable_is_refused_rather_than_ignored(
    misspelt: str, meant: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "run.json").write_text('{"http": "http://127.0.0.1:1"}')
    for name in ("NEURAXIS_URL", "NEURAXIS_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(misspelt, "http://127.0.0.1:2")
    with pytest.raises(neuraxis.Misconfigured, match=f"{misspelt}: there is no such variable: did you mean {meant}"):
        Client(data=tmp_path)
    assert repr(Client("http://127.0.0.1:1", api_key="k")) == "Client('http://127.0.0.1:1')"
    monkeypatch.setenv(meant, "http://127.0.0.1:3")
    Client(data=tmp_path)
    monkeypatch.delenv(misspelt)
    monkeypatch.delenv(meant)
    for theirs in ("NEURAXIS_API_KEYS", "NEURAXIS_LLM_URL", "NEURAXIS_PORT", "NEURAXIS_UPSTREAM_API_KEY"):
        monkeypatch.setenv(theirs, "x")
    assert repr(Client(data=tmp_path)) == "Client('http://127.0.0.1:1')"


@pytest.mark.parametrize("address", ["127.0.0.1:8642", "ftp://x", "http://", "http://x:99999", "http://u:secret@x"])
def test_what_is_no_address_is_refused_without_repeating_a_password(address: str) -> None:
    with pytest.raises(neuraxis.Misconfigured) as raised:
        Client(address)
    assert "secret" not in str(raised.value)


def test_the_key_comes_from_argument_or_environment_and_is_shown_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEURAXIS_API_KEY", "key-of-the-environment")
    server = Scripted(*(told({"results": [VERDICT]}) for _ in range(3)))
    for given in ({}, {"api_key": "another-key"}, {"api_key": ""}):
        client = server.client(**given)
        client.check("x")
        assert "key" not in repr(client) + repr(client._server)
    sent = [each.headers.get("authorization") for each in server.asked]
    assert sent == ["Bearer key-of-the-environment", "Bearer another-key", None]
    with pytest.raises(neuraxis.Misconfigured) as raised:
        Client(URL, "two lines\n")
    assert "two" not in str(raised.value)


def test_the_asynchronous_client_does_the_same() -> None:
    server = Scripted(told(OURS, 429, retry_after="0"), told({"results": [VERDICT]}), told(COMPLETION), told(OURS, 401))

    async def act() -> None:
        async with AsyncClient(URL, transport=httpx.MockTransport(server)) as client:
            assert (await client.check("x")).allowed
            assert (await client.ask("y")).refused
            with pytest.raises(neuraxis.Unauthorized):
                await client.why("e1")

    asyncio.run(act())
    assert len(server.asked) == 4


def test_a_call_ends_when_its_time_is_over() -> None:
    async def silent(request: httpx.Request) -> httpx.Response:
        await asyncio.Event().wait()
        raise AssertionError

    async def act() -> None:
        async with AsyncClient(URL, timeout=0.05, transport=httpx.MockTransport(silent)) as client:
            with pytest.raises(neuraxis.NotReachable, match=r"within 0\.05 s"):
                await client.check("x")

    asyncio.run(act())
    for timeout, retries in ((0.0, 1), (float("nan"), 1), (1.0, -1)):
        with pytest.raises(neuraxis.Misconfigured):
            Client(URL, timeout=timeout, retries=retries)


def test_both_clients_have_the_same_calls() -> None:
    public = {name for name in vars(Client) if not name.startswith("_")}
    assert public == {name for name in vars(AsyncClient) if not name.startswith("_")}


@pytest.mark.parametrize(
    "wrong", [{"timeout": None}, {"timeout": "60"}, {"timeout": float("nan")}, {"retries": 2.5}, {"retries": None}]
)
def test_a_time_or_a_number_of_repeats_that_is_none_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(neuraxis.Misconfigured, match="the one is a number above 0, the other a whole one"):
        Client(URL, **wrong)


def test_a_limit_of_a_page_is_sent_as_it_was_given() -> None:
    server = Scripted(told({"exchanges": [], "before": 0, "head": 4}), told({"exchanges": [], "before": 0, "head": 4}))
    server.client().exchanges(limit=0)
    server.client().exchanges(before=0)
    assert [str(each.url.query, "ascii") for each in server.asked] == ["limit=0", "limit=50"]


def test_a_header_of_thousands_of_digits_is_no_sequence() -> None:
    message = event_of_message("forged_id.x", {"ce-id": "a", "ce-causeseq": "1" * 5_000}, b"{}")
    assert message.cause_seq == 0
