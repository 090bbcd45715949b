"""Telemetry of a running set: what it tells Prometheus, the trace of an exchange, and its logs."""

import contextlib
import json
import re
import signal
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from tests.deploy.telemetry.receiver import HANG, Receiver, receiving
from tests.deploy.telemetry.test_rules import metrics_named
from tests.deploy.waiting import until
from tests.e2e.live import Live, command, environment

PAGE = Path(__file__).parents[3] / "docs" / "telemetry.md"
SESSION, WORDS = "telemetry-session", "Which zoo keeps quokkas beside okapis?"
TRACE, CALLER = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


@pytest.fixture(scope="module")
def client(address: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=address, timeout=60, trust_env=False) as opened:
        yield opened


@pytest.fixture(scope="module")
def traced(live: Live, client: httpx.Client, tmp_path_factory: pytest.TempPathFactory) -> Receiver:
    """A collector that has the trace of one exchange, from a process beside the set's own ledger."""
    folder = tmp_path_factory.mktemp("traces")
    with receiving() as receiver:
        with tracing_process(live, folder, receiver):
            answer = client.post(
                "/v1/chat/completions",
                json={"model": "neuraxis", "messages": [{"role": "user", "content": WORDS}]},
                headers={"traceparent": f"00-{TRACE}-{CALLER}-01", "x-neuraxis-session": SESSION},
            )
            assert answer.is_success, answer.text
            until(lambda: "exchange" in receiver.names(), "the trace of the exchange")
        return receiver


@contextlib.contextmanager
def tracing_process(live: Live, folder: Path, receiver: Receiver) -> Iterator[subprocess.Popen[bytes]]:
    """Run a ledger of its own that sends traces, until the end of the block; then it has to stop in order."""
    said = folder / "said.log"
    flags = ("--ledger", str(folder / "ledger.db"), "--set", f"telemetry.traces={receiver.url}")
    with (
        said.open("wb") as output,
        subprocess.Popen(
            [*command("worker", "ledger", *flags)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=live.folder,
            env=environment(),
        ) as process,
    ):
        try:
            until(lambda: "worker_ready" in said.read_text() or process.poll() is not None, "the ledger runs")
            until(lambda: (folder / "ledger.traces").exists() or process.poll() is not None, "traces begin")
            assert process.poll() is None, said.read_text()
            yield process
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0, said.read_text()
        finally:
            process.kill()


@pytest.fixture(scope="module")
def scraped(live: Live, client: httpx.Client, traced: Receiver) -> dict[str, Metric]:
    """What the gateway and each of the set's processes tell, by the name of the metric."""
    found: dict[str, Metric] = {}

    def told() -> bool:
        targets = client.get("/metrics/targets").json()
        texts = [client.get("/metrics").text]
        texts += [httpx.get(f"http://{each['targets'][0]}/metrics", trust_env=False).text for each in targets]
        found.clear()
        for family in (family for text in texts for family in text_string_to_metric_families(text)):
            metric = found.setdefault(family.name, family)
            if metric is not family:
                metric.samples.extend(family.samples)
        processes = {each["labels"]["process"] for each in targets}
        return {"deciders", "ledger"} <= processes and bool(found["neuraxis_exchanges"].samples)

    until(told, "the gateway knows where all processes tell their metrics, and has counted an end")
    return found


def documented() -> dict[str, tuple[str, set[str]]]:
    """Return the table of the page: a metric's name -> its type, and its labels."""
    rows = re.findall(r"^\| `(neuraxis_\w+)` \| (\w+)[^|]*\| ([^|]*)\|", PAGE.read_text(), re.MULTILINE)
    return {name: (kind, set(re.findall(r"`(\w+)`", labels))) for name, kind, labels in rows}


def name_of(metric: Metric) -> str:
    return f"{metric.name}_total" if metric.type == "counter" else metric.name


def ours(scraped: dict[str, Metric]) -> dict[str, Metric]:
    """Return our own metrics; not the framework's count of requests, nor when counters began."""
    return {
        name_of(metric): metric
        for name, metric in scraped.items()
        if name.startswith("neuraxis_") and not name.startswith("neuraxis_http") and not name.endswith("_created")
    }


def test_the_page_lists_every_metric_with_its_type_and_labels(scraped: dict[str, Metric]) -> None:
    told, page = ours(scraped), documented()
    assert set(page) == set(told)
    for name, metric in told.items():
        kind, labels = page[name]
        assert metric.type == kind, name
        assert metric.documentation, name
        for sample in metric.samples:
            assert set(sample.labels) - {"le"} == labels, name


def test_what_rules_and_panels_name_is_told_by_a_running_set(scraped: dict[str, Metric]) -> None:
    assert metrics_named() <= {name_of(metric) for metric in scraped.values()}


def test_the_budget_of_each_stage_is_an_edge_of_its_latencies(scraped: dict[str, Metric]) -> None:
    budgets = {each.labels["actor"]: each.value for each in scraped["neuraxis_decision_budget_seconds"].samples}
    assert set(budgets) == {"reflex", "intuition", "coherence", "arbiter"}
    buckets = [each for each in scraped["neuraxis_decision_seconds"].samples if each.name.endswith("_bucket")]
    for actor, budget in budgets.items():
        assert budget in {float(each.labels["le"]) for each in buckets if each.labels["actor"] == actor}
    edges = {actor: {each.labels["le"] for each in buckets if each.labels["actor"] == actor} for actor in budgets}
    assert len(set(map(frozenset, edges.values()))) == 1, "buckets can be added up over actors"


def test_what_the_set_did_is_counted_where_it_was_done(scraped: dict[str, Metric]) -> None:
    counted = scraped["neuraxis_decisions"].samples
    decisions = {(each.labels["actor"], each.labels["outcome"]): each.value for each in counted}
    assert decisions["reflex", "passed"] >= 1
    assert decisions["responder", "emitted"] >= 1
    lags = scraped["neuraxis_lag_messages"].samples
    led = {each.labels["partition"] for each in lags if each.labels["actor"] == "reflex"}
    assert len(led) == 16
    assert sum(each.value for each in scraped["neuraxis_appended_events"].samples) > 16
    assert sum(each.value for each in scraped["neuraxis_recoveries"].samples) >= 16


def test_no_label_holds_a_name_or_a_word_of_a_person(scraped: dict[str, Metric]) -> None:
    values = {value for metric in ours(scraped).values() for each in metric.samples for value in each.labels.values()}
    assert not [value for value in values if SESSION in value or "quokka" in value or "default" in value]
    assert len(values) < 400


def test_an_exchange_is_one_tree_of_spans_below_the_callers(traced: Receiver) -> None:
    spans = [span for span in traced.spans if span.trace_id.hex() == TRACE]
    (root,) = [span for span in spans if span.name == "exchange"]
    assert root.parent_span_id.hex() == CALLER
    by_id = {span.span_id: span for span in spans}

    def ancestry(span: Any) -> list[str]:
        return [span.name, *(ancestry(by_id[span.parent_span_id]) if span is not root else ())]

    ended = next(span for span in spans if span.name == "responder emitted")
    way = ancestry(ended)
    assert way[-1] == "exchange"
    assert "arbiter escalated" in way
    assert all(ancestry(span)[-1] == "exchange" for span in spans)
    for span in spans:
        assert root.start_time_unix_nano <= span.start_time_unix_nano <= span.end_time_unix_nano
    assert ended.end_time_unix_nano == root.end_time_unix_nano
    assert traced.resource["service.name"] == "neuraxis"
    assert "quokka" not in str(traced.spans)
    assert SESSION not in str(traced.spans)


def test_the_log_keeps_the_callers_trace_with_every_event_of_the_exchange(live: Live, traced: Receiver) -> None:
    (root,) = [span for span in traced.spans if span.name == "exchange" and span.trace_id.hex() == TRACE]
    exchange = next(each.value.string_value for each in root.attributes if each.key == "neuraxis.exchange")
    with contextlib.closing(sqlite3.connect(f"file:{live.ledger}?mode=ro", uri=True)) as ledger:
        rows = ledger.execute("SELECT headers FROM events WHERE exchange = ?", (exchange,)).fetchall()
    assert {json.loads(headers)["traceparent"][3:35] for (headers,) in rows} == {TRACE}


def test_a_collector_that_hangs_delays_no_end_of_a_process(live: Live, tmp_path: Path) -> None:
    with receiving(HANG) as receiver, tracing_process(live, tmp_path, receiver):
        live.ask("Hello there.", "--session", SESSION)
        until(lambda: receiver.asked > 0, "spans are sent")


@pytest.mark.usefixtures("traced")
def test_logs_of_processes_are_json_with_the_exchange_and_without_words(live: Live) -> None:
    lines = [json.loads(line) for line in live.output.read_text().splitlines() if line.startswith("{")]
    decided = [line for line in lines if str(line["event"]).startswith("[ROUTER]") or line.get("actor") == "router"]
    assert decided
    assert all(line.get("exchange") for line in decided if "Mode selected" in str(line["event"]))
    assert "quokka" not in live.output.read_text()
