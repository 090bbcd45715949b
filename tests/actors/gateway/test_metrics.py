"""What is counted of a log, and how Prometheus reads it; by its own parser."""

import msgspec
from prometheus_client.parser import text_string_to_metric_families

from actors.gateway.metrics import Metrics
from events.log import Stored
from schemas.catalogue import ALERTS, CATALOGUE
from schemas.envelope import LATENCY
from schemas.event import topic_of
from schemas.vocabulary.llm import LlmCompleted, LlmFailed
from tests.events.ledger.messages import INPUT, PASSED, RESPONSE, stored

COMPLETED, FAILED = CATALOGUE[topic_of(LlmCompleted)].sample, CATALOGUE[topic_of(LlmFailed)].sample
ALERT = CATALOGUE[topic_of(next(iter(ALERTS.values())))].sample


def told(*messages: Stored, log_seq: int = 9, ledger_seq: int = 7, **served: bool) -> dict[tuple[str, ...], float]:
    """Return the samples after some messages: by name and the values of their labels, in the order of the labels."""
    metrics = Metrics()
    metrics.count(messages)
    measured = {"log_seq": log_seq, "ledger_seq": ledger_seq}
    text = metrics.render(**measured, served=served, ready=ledger_seq >= 0).decode()
    return {
        (sample.name, *(value for _, value in sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_an_exchange_counts_once_with_its_end_and_the_time_to_it() -> None:
    found = told(stored(1, INPUT, at_ms=0), stored(2, PASSED, at_ms=1), stored(3, RESPONSE, at_ms=30))
    assert found["neuraxis_inputs_total",] == 1
    assert found["neuraxis_exchanges_total", RESPONSE.action, RESPONSE.mode, RESPONSE.stage] == 1
    assert found["neuraxis_exchange_seconds_sum", RESPONSE.stage] == 0.03
    in_bucket = {edge: found["neuraxis_exchange_seconds_bucket", edge, RESPONSE.stage] for edge in ("0.02", "0.05")}
    assert in_bucket == {"0.02": 0, "0.05": 1}


def test_an_end_whose_beginning_was_not_seen_counts_without_a_time() -> None:
    found = told(stored(3, RESPONSE))
    assert found["neuraxis_exchanges_total", RESPONSE.action, RESPONSE.mode, RESPONSE.stage] == 1
    assert ("neuraxis_exchange_seconds_count", RESPONSE.stage) not in found


def test_models_and_alerts_count_by_what_for_and_why() -> None:
    found = told(stored(1, COMPLETED), stored(2, COMPLETED), stored(3, FAILED), stored(4, ALERT))
    assert found["neuraxis_model_tokens_total", "read", COMPLETED.purpose] == 2 * COMPLETED.prompt_tokens
    assert found["neuraxis_model_failures_total", FAILED.purpose, FAILED.reason] == 1
    assert found["neuraxis_alerts_total", ALERT.severity, ALERT.source, ALERT.status] == 1


def test_what_cannot_be_read_is_counted_as_that() -> None:
    """The rules about exchanges and alerts watch nothing where another release writes these: one of their own tells."""
    rotten = msgspec.structs.replace(stored(1, RESPONSE), data=b"{")
    newer = [
        msgspec.structs.replace(each, headers={**each.headers, "ce-dataversion": "9"})
        for each in (stored(3, ALERT), stored(4, RESPONSE), stored(5, COMPLETED))
    ]
    found = told(rotten, stored(2, INPUT), *newer, stored(6, RESPONSE))
    assert (found["neuraxis_inputs_total",], found["neuraxis_events_unread_total",]) == (1, 4)
    assert told(stored(1, INPUT), stored(2, RESPONSE))["neuraxis_events_unread_total",] == 0


def test_what_is_measured_when_it_is_asked_for_is_told() -> None:
    found = told(log_seq=12, ledger_seq=-1, reflex=True, arbiter=False)
    assert (found["neuraxis_log_sequence",], found["neuraxis_ledger_sequence",]) == (12, -1)
    assert (found["neuraxis_stage_served", "reflex"], found["neuraxis_stage_served", "arbiter"]) == (1, 0)
    assert (found["neuraxis_ready",], told()["neuraxis_ready",]) == (0, 1)


def test_no_label_holds_a_name_or_a_word_of_a_person() -> None:
    found = told(stored(1, INPUT, agent="ada", session="s1"), stored(3, RESPONSE, agent="ada", session="s1"))
    assert not {"ada", "s1", "x1", INPUT.text, RESPONSE.response} & {value for _, *values in found for value in values}


def test_a_time_of_thousands_of_digits_is_no_time_and_ends_no_gateway() -> None:
    odd = msgspec.structs.replace(stored(1, COMPLETED), headers={**stored(1, COMPLETED).headers, LATENCY: "1" * 5_000})
    found = told(odd, stored(2, COMPLETED))
    assert found["neuraxis_model_tokens_total", "read", COMPLETED.purpose] == 2 * COMPLETED.prompt_tokens
    assert found["neuraxis_model_request_seconds_count", COMPLETED.purpose] == 1
