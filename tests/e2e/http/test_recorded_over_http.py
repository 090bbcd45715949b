"""What is recorded, read over HTTP from a running set: lists, why, and events as they come."""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from deploy.processes.gateway.records import MOST_FOLLOWERS
from tests.deploy.waiting import until
from tests.e2e.live import Live
from tests.each import each


@pytest.fixture(scope="module")
def client(live: Live) -> Iterator[httpx.Client]:
    address = json.loads((live.data / "run.json").read_text())["http"]
    with httpx.Client(base_url=address, timeout=60, trust_env=False) as opened:
        yield opened


@pytest.fixture(scope="module")
def asked(live: Live, client: httpx.Client) -> dict[str, Any]:
    """An exchange that ended, once the ledger has its end."""
    row = live.ask("What is the capital of Peru?", "--session", "recorded-over-http")
    until(lambda: client.get(f"/api/exchanges/{row['exchange']}").json().get("ended"), "the ledger has its end")
    return row


def events(
    client: httpx.Client, count: int, headers: dict[str, str] | None = None, **given: Any
) -> list[dict[str, Any]]:
    """Return the first events of a reading: their ids, names and bodies as server-sent events have them."""
    found, event = list[dict[str, Any]](), dict[str, Any]()
    with client.stream("GET", "/api/events", params=given, headers=headers or {}) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream"), answer.read()
        for line in answer.iter_lines():
            if line:
                name, _, value = line.partition(": ")
                event[name] = value
            elif event:
                found.append(event)
                event = {}
                if len(found) == count:
                    return found
    raise AssertionError("the reading ended")


def test_an_exchange_is_listed_and_shown_as_it_ended(client: httpx.Client, asked: dict[str, Any]) -> None:
    page = client.get("/api/exchanges", params={"session": "recorded-over-http", "limit": 5}).json()
    (row,) = page["exchanges"]
    assert (row["exchange"], row["stage"], row["mode"]) == (asked["exchange"], asked["stage"], asked["mode"])
    assert page["head"] >= row["ended_seq"] > row["seq"]
    shown = client.get(f"/api/exchanges/{asked['exchange']}").json()
    assert shown["ended"]["response"] == asked["response"]
    assert "Peru" not in json.dumps(page)


def test_why_says_what_the_command_says(client: httpx.Client, live: Live, asked: dict[str, Any]) -> None:
    (told,) = live.rows("why", asked["exchange"], "--json")
    assert client.get(f"/api/exchanges/{asked['exchange']}/why").json() == told


def test_an_overview_tells_of_now_and_of_any_point_before(client: httpx.Client, asked: dict[str, Any]) -> None:
    now = client.get("/api/overview").json()
    ended = {(each["stage"], each["action"]) for each in now["recorded"]["ended"]}
    assert (asked["stage"], asked["action"]) in ended
    assert "reflex" in [each["stage"] for each in now["now"]["stages"] if each["served"] == each["partitions"]]
    begun = client.get(f"/api/exchanges/{asked['exchange']}").json()["started_seq"]
    before, after = (client.get("/api/overview", params={"at": at}).json() for at in (begun - 1, begun))
    assert (before["now"], before["recorded"]["at"]) == (None, begun - 1)
    assert after["recorded"]["exchanges"] == before["recorded"]["exchanges"] + 1
    assert "Peru" not in json.dumps([now, before, after])


def test_events_come_in_order_and_go_on_where_a_client_was(
    client: httpx.Client, live: Live, asked: dict[str, Any]
) -> None:
    first = events(client, 6, after=0)
    assert [int(each["id"]) for each in first] == sorted(int(each["id"]) for each in first)
    assert json.loads(first[0]["data"])["seq"] == int(first[0]["id"])
    again = events(client, 3, headers={"Last-Event-ID": first[2]["id"]})
    assert again == first[3:]
    (received,) = events(client, 1, topic="input.received", after=0)
    assert received["event"] == "forged_id.input.received"
    (with_words,) = events(client, 1, topic="input.received", after=0, words="true")
    hidden, told = (json.loads(each["data"])["data"]["text"] for each in (received, with_words))
    assert hidden != told


@each(
    ("path", "status", "word"),
    [
        ("/api/exchanges/none-such", 404, "none-such"),
        ("/api/exchanges/none-such/why", 404, "none-such"),
        ("/api/exchanges?limit=0", 400, "limit"),
        ("/api/exchanges?limit=501", 400, "limit"),
        ("/api/exchanges?before=-1", 400, "before"),
        ("/api/exchanges?agents=ann", 400, "agent"),
        ("/api/overview?at=-1", 400, "at"),
        ("/api/overview?when=1", 400, "when"),
        ("/api/overview?at=9223372036854775808", 400, "at"),
        ("/api/exchanges?before=9223372036854775808", 400, "before"),
        ("/api/events?after=9223372036854775808", 400, "after"),
        ("/api/events?topic=a..b", 400, "topic"),
        ("/api/events?topic=>.a", 400, "topic"),
        ("/api/events?topic=alerts.>", 400, "did you mean forged_id.alert.>"),
        ("/api/events?topic=forged_id.router.mode_selcted", 400, "forged_id.router.mode_selected"),
        ("/api/events?topic=nonsense.>", 400, "neuraxis schema subjects"),
        ("/api/events?after=99999999", 400, "the log ends at sequence"),
        ("/api/overview?at=99999999", 400, "the log ends at sequence"),
        ("/api/exchanges?at=99999999", 400, "the log ends at sequence"),
        ("/api/exchanges?before=99999999", 400, "the log ends at sequence"),
        ("/api/events?after=x", 400, "after"),
        ("/api/events?words=maybe", 400, "words"),
    ],
)
def test_a_question_that_cannot_be_answered_says_why(client: httpx.Client, path: str, status: int, word: str) -> None:
    answer = client.get(path)
    assert (answer.status_code, word in answer.text) == (status, True), answer.text


def test_a_last_event_that_is_no_sequence_is_refused(client: httpx.Client) -> None:
    answer = client.get("/api/events", headers={"Last-Event-ID": "yesterday"})
    assert (answer.status_code, "Last-Event-ID" in answer.text) == (400, True), answer.text
    answer = client.get("/api/events", headers={"Last-Event-ID": "99999999"})
    assert (answer.status_code, "the log ends at sequence" in answer.text) == (400, True), answer.text


def test_probes_by_head_end_at_once_and_take_no_readers_place(client: httpx.Client) -> None:
    with httpx.Client(base_url=client.base_url, timeout=10, trust_env=False) as probe:  # on one connection
        heads = [probe.head("/api/events") for _ in range(MOST_FOLLOWERS + 1)]
        assert probe.get("/readyz").status_code == 200
    assert {(each.status_code, each.headers["content-type"], each.content) for each in heads} == {
        (200, "text/event-stream; charset=utf-8", b"")
    }
    assert events(client, 1, after=0)


@pytest.mark.usefixtures("asked")
def test_prometheus_reads_what_the_set_did_and_how_it_stands(client: httpx.Client) -> None:
    def ended() -> bool:
        families = {each.name: each for each in text_string_to_metric_families(client.get("/metrics").text)}
        return any(sample.value for sample in families["neuraxis_exchanges"].samples)

    until(ended, "an end is counted")
    answer = client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain")
    samples = [each for family in text_string_to_metric_families(answer.text) for each in family.samples]
    served = {each.labels["stage"]: each.value for each in samples if each.name == "neuraxis_stage_served"}
    assert served["reflex"] == served["responder"] == 1
    values = {each.name: each.value for each in samples}
    assert values["neuraxis_log_sequence"] >= values["neuraxis_ledger_sequence"] > 0
    assert any(each.name == "neuraxis_http_requests_total" for each in samples)


@pytest.mark.usefixtures("asked")
def test_commands_that_follow_end_at_once_where_nothing_they_ask_for_can_come(live: Live) -> None:
    for command, said in (
        (("log", "tail", "--topic", "forged_id.ruoter.>"), "did you mean forged_id.router.>?"),
        (("log", "tail", "--since", "99999999"), "ends at sequence"),
        (("alerts", "--since", "99999999"), "ends at sequence"),
    ):
        assert said in live.run(*command, status=1).stderr
