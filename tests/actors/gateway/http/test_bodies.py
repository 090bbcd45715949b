"""Bodies: what is taken, what is refused and by which name; and that no body whatever breaks the gateway."""

import json
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from actors.gateway.external_events import InvalidField
from actors.gateway.http.loops.bodies import (
    GuardrailsOverride,
    LoopCompletion,
    Tick,
    completion_event,
    override_event,
    read_loop_body,
    tick_event,
)
from schemas.catalogue import CATALOGUE
from schemas.event import encode_event
from schemas.vocabulary.loops import LoopCompleted, TickObserved
from tests.actors.gateway.http.rig import SCORED, SEED_COMPLETION, SEED_OVERRIDE, gateway, guarding
from tests.each import each
from tests.events.simulated_world import in_world
from tests.simulated import SimulatedStream

LOOP, OVERRIDE, TICKS = "/orchestrator/loop-complete", "/orchestrator/override-guardrails/loop_001", "/v1/ticks"


def completion(**fields: Any) -> LoopCompleted:
    return completion_event(read_loop_body(json.dumps({**SEED_COMPLETION, **fields}).encode(), LoopCompletion))


def refused(body: Any, kind: Any = LoopCompletion) -> InvalidField:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    with pytest.raises(InvalidField) as wrong:
        event_of(raw, kind)
    return wrong.value


def event_of(raw: bytes, kind: Any) -> object:
    made = read_loop_body(raw, kind)
    if isinstance(made, Tick):
        return tick_event(made)
    return completion_event(made) if isinstance(made, LoopCompletion) else override_event("loop_001", made)


def test_the_seeds_request_is_taken_as_it_stands() -> None:
    assert completion() == LoopCompleted(loop_id="loop_001", orchestrator_persona="SAGE")


def test_biases_are_taken_as_words_and_as_the_seeds_objects() -> None:
    assert completion(bias_tags=["recency", {"tag": "anchoring", "severity": "high"}]).bias_tags == (
        "recency",
        "anchoring",
    )


@each(
    ("field", "body", "kind", "told"),
    [
        ("alignment_scor", SEED_COMPLETION, LoopCompletion, "did you mean 'alignment_score'?"),
        ("session", SEED_COMPLETION, LoopCompletion, "there are loop_id, reflection_status"),
        ("override_fatique", SEED_OVERRIDE, GuardrailsOverride, "did you mean 'override_fatigue'?"),
        ("working_memmory", {}, Tick, "did you mean 'working_memory'?"),
        ("workingMemory", {}, Tick, "did you mean 'working_memory'?"),
    ],
)
def test_a_field_that_is_not_known_is_refused_with_the_nearest(field: str, body: Any, kind: Any, told: str) -> None:
    wrong = refused({**body, field: None}, kind)
    assert (wrong.field, wrong.code) == (field, "unknown_field")
    assert f"there is no field {field!r}: " in str(wrong)
    assert told in str(wrong)


def test_a_field_that_is_not_known_is_refused_at_every_depth() -> None:
    wrong = refused({"chosen": [{"id": "a", "enrgy": 0.5}]}, Tick)
    assert str(wrong) == "chosen[0]: there is no field 'enrgy': did you mean 'energy'?"


@each(
    "body",
    [
        {}, {"citizen": "felix"}, {"agent": "felix"}, {"modes": {}}, {"working_memory": [], "chosen": []},
        {"thought_lines": ["", " ", "\u3164"]}, {"stimulus_embedding": []}, {"token_budget": 8},
        {"agent": "felix", "modes": {}},
    ],
)  # fmt: skip
def test_a_tick_that_says_nothing_is_refused_and_one_of_zeros_is_not(body: Any) -> None:
    wrong = refused(body, Tick)
    assert wrong.code == "missing_field"
    assert "the tick says nothing: it needs modes, arousal" in str(wrong)
    assert event_of(json.dumps({**body, "arousal": 0.0}).encode(), Tick)


@each(
    ("body", "field"),
    [
        ({"arousal": 0.5, "token_budget": 10**30}, "token_budget"),
        ({"arousal": 0.5, "chosen": [{"id": "a", "tokens": 2**53}]}, "chosen.tokens"),
        ({"modes": {"ACT": 0.5, "RESPOND": 7}}, "modes.RESPOND"),
    ],
)
def test_an_impossible_number_of_a_tick_is_named(body: Any, field: str) -> None:
    assert refused(body, Tick).field == field


@each(("told", "missing"), [("question", "answer"), ("answer", "question")])
def test_a_question_or_an_answer_that_no_critic_would_read_is_refused(told: str, missing: str) -> None:
    for other in ({}, {missing: None}, {missing: " "}):
        wrong = refused({**SCORED, told: "What is a lease?", **other}, LoopCompletion)
        assert (wrong.code, wrong.field) == ("missing_field", missing)


def test_an_override_that_overrides_nothing_is_refused_and_one_that_ends_overrides_is_not() -> None:
    who = {"override_by": "ann", "override_reason": "over"}
    assert refused(who, GuardrailsOverride).code == "missing_field"
    told = override_event(
        "loop_001", read_loop_body(json.dumps({**who, "override_fatigue": False}).encode(), GuardrailsOverride)
    )
    assert (told.override_fatigue, told.override_max_reruns) == (False, False)


def test_a_key_that_stands_twice_is_refused() -> None:
    assert refused(b'{"loop_id": "a", "loop_id": "b", "reflection_status": "done"}').code == "key_twice"


@each(
    ("field", "value"),
    [
        ("loop_id", 7),
        ("loop_id", ""),
        ("loop_id", None),
        ("loop_id", "x" * 201),
        ("loop_id", "a/b"),
        ("loop_id", "a\nb"),
        ("loop_id", "a\0"),
        ("reflection_status", "running"),
        ("reflection_status", "DONE"),
        ("reflection_status", None),
        ("orchestrator_persona", ["SAGE"]),
        ("override_fatigue", "yes"),
        ("override_max_reruns", 1),
        ("override_by", 7),
        ("alignment_score", 1.01),
        ("alignment_score", "0.5"),
        ("drift_score", -0.1),
        ("bias_tags", "recency"),
        ("bias_tags", [7]),
        ("bias_tags", [{"name": "recency"}]),
        ("bias_tags", ["x"] * 65),
        ("critics_conflict", "no"),
        ("agent", ""),
    ],
)
def test_a_field_that_is_not_what_it_should_be_is_named(field: str, value: Any) -> None:
    wrong = refused({**SEED_COMPLETION, field: value})
    assert field in wrong.field or field in str(wrong)


@each("field", ["loop_id", "reflection_status"])
def test_a_field_that_is_missing_is_named(field: str) -> None:
    assert field in str(refused({name: value for name, value in SEED_COMPLETION.items() if name != field}))


@each("field", ["override_by", "override_reason"])
@each("value", [None, "", "  ", 7])
def test_an_override_says_by_whom_and_why(field: str, value: Any) -> None:
    assert field in str(refused({**SEED_OVERRIDE, field: value}, GuardrailsOverride))
    lacking = {name: given for name, given in SEED_OVERRIDE.items() if name != field}
    assert field in str(refused(lacking, GuardrailsOverride))


@each("flag", ["override_fatigue", "override_max_reruns"])
def test_a_completion_that_overrides_says_by_whom(flag: str) -> None:
    assert refused({**SEED_COMPLETION, flag: True}).field == "override_by"
    assert completion(**{flag: True, "override_by": "operator"}).override_by == "operator"


def test_a_tick_is_what_the_vocabulary_has_and_whose_it_is() -> None:
    sample = CATALOGUE["forged_id.tick.observed"].sample
    body = {**json.loads(encode_event(sample)), "citizen": "felix"}
    assert tick_event(read_loop_body(json.dumps(body).encode(), Tick)) == ("felix", sample)
    assert tick_event(read_loop_body(b'{"agent": "felix", "arousal": 0}', Tick)) == ("felix", TickObserved())
    assert tick_event(read_loop_body(b'{"valence": 0}', Tick)) == ("", TickObserved())


def part(**fields: Any) -> dict[str, Any]:
    return {"id": "a", **fields}


@each(
    ("field", "value"),
    [
        ("modes", {f"mode-{number}": 0.5 for number in range(65)}),
        ("modes", {"\x1b[31m": 0.5}),
        ("working_memory", ["m" * 201]),
        ("working_memory", ["\n"]),
        ("identity_stable", ["i" * 201]),
        ("identity_lines", ["l" * 2001]),
        ("thought_lines", ["l" * 2001]),
        ("stimulus_terms", ["t" * 101]),
        ("chosen", [part(id="\u202e")]),
        ("chosen", [part(terms=["t" * 101])]),
        ("candidates", [part(id=str(number), terms=["t"] * 100) for number in range(51)]),
        ("candidates", [part(id=str(number), centroid=[0.5] * 2_000) for number in range(51)]),
    ],
)
def test_a_tick_that_holds_too_much_is_refused_by_its_field(field: str, value: Any) -> None:
    assert refused({field: value}, Tick).field.startswith(field)


def test_a_mode_that_is_named_with_and_without_its_prefix_is_refused() -> None:
    wrong = refused({"modes": {"mode_affect": 0.1, "affect": 0.9}}, Tick)
    assert (wrong.field, wrong.code) == ("modes", "key_twice")
    assert str(wrong) == "modes: mode_affect and affect are one mode: keep one of them"
    assert event_of(b'{"modes": {"mode_affect": 0.1, "mode_mode_affect": 0.9, "mode_": 0.2}}', Tick)


def test_a_loop_named_as_an_exchange_here_is_not_completed_from_outside() -> None:
    for loop in ("0197739e0d0000112233445566778899", "0197739e0d0000112233445566778899_r2"):
        assert refused({**SEED_COMPLETION, "loop_id": loop}).field == "loop_id"
    assert completion(loop_id="0197739e-0d00-0011-2233-445566778899").loop_id.startswith("0197739e")


def test_a_loops_name_leaves_room_for_the_endings_of_its_reruns() -> None:
    assert "at most 200" in str(refused({**SEED_COMPLETION, "loop_id": "x" * 201}))
    assert completion(loop_id="x" * 200).loop_id == "x" * 200
    assert completion(loop_id="x" * 200 + "_r1000000").loop_id.endswith("_r1000000")


@each("field", ["orchestrator_persona", "override_by"])
def test_a_name_that_a_terminal_would_obey_is_refused(field: str) -> None:
    assert refused({**SEED_COMPLETION, field: "\x1b[31mEVIL"}).field == field


@each("field", ["agent", "citizen"])
def test_a_tick_of_an_agent_without_a_name_is_refused(field: str) -> None:
    assert refused({field: "", "arousal": 0.5}, Tick).field == field


def test_a_tick_of_two_agents_is_refused() -> None:
    with pytest.raises(InvalidField, match="citizen"):
        tick_event(read_loop_body(b'{"agent": "felix", "citizen": "ann", "arousal": 0}', Tick))


BROKEN = [
    b"",
    b"{",
    b"null",
    b"[]",
    b"\xff",
    b'{"loop_id": "\xff", "reflection_status": "done"}',
    b'{"loop_id": "\\ud800", "reflection_status": "done"}',
    b'{"loop_id": "a", "reflection_status": "done", "alignment_score": NaN}',
    b'{"loop_id": "a", "reflection_status": "done", "alignment_score": 1e999}',
    b'{"loop_id": ' + b"[" * 100_000,
    b"[" * 100_000,
]
"""Bodies that are no JSON, no Unicode, or nested without end."""

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)
fields = st.sampled_from([*SCORED, *SEED_OVERRIDE, "bias_tags", "critics_conflict", "agent", "citizen", "modes"])
near_misses = st.builds(
    lambda good, changes: json.dumps({**good, **changes}).encode("utf-8", "surrogatepass"),
    st.sampled_from([SCORED, SEED_OVERRIDE, {}]),
    st.dictionaries(fields, json_values, max_size=3),
)
bodies = st.binary(max_size=200) | st.sampled_from(BROKEN) | near_misses
paths = st.sampled_from([LOOP, OVERRIDE, TICKS])
names = st.text(min_size=1, max_size=30)


Headers = dict[bytes, bytes] | list[tuple[bytes, bytes]]


def answered(*requests: tuple[str, str, bytes, Headers]) -> list[httpx.Response]:
    """Return what one gateway answers to (method, path, body, headers), one after the other."""
    answers = []

    async def main(stream: SimulatedStream) -> None:
        async with guarding(stream), gateway(stream) as client:
            for method, path, body, headers in requests:
                answers.append(await client.request(method, path, content=body, headers=headers))

    in_world(main)
    return answers


def ask(method: str, path: str, body: bytes, headers: Headers) -> httpx.Response:
    [answer] = answered((method, path, body, headers))
    return answer


def test_a_broken_body_is_refused_with_words() -> None:
    sent = [(path, body) for path in (LOOP, OVERRIDE, TICKS) for body in BROKEN]
    answers = answered(*(("POST", path, body, {}) for path, body in sent))
    for (path, body), answer in zip(sent, answers, strict=True):
        told = answer.json()
        assert (answer.status_code, told["status"]) == (400, "error"), (path, body[:60])
        assert len(told["message"]) < 300, (path, body[:60])


MISSPELT: list[tuple[str, Headers, str]] = [
    ("agnt=ada", {}, "there is no query parameter 'agnt': did you mean 'agent'?"),
    ("limt=5", {}, "there is no query parameter 'limt': there are agent"),
    ("agent=ada&agent=bob", {}, "the query parameter agent stands twice"),
    ("", {b"Idempotency_Key": b"k"}, "there is no header 'idempotency_key': did you mean 'Idempotency-Key'?"),
    ("agent=", {}, "the query parameter agent is empty: give it a value, or leave it out"),
    ("", {b"X-Neuraxis-User": b" "}, "the header X-Neuraxis-User is empty: give it a value, or leave it out"),
    ("", {b"Idempotency-Key": b""}, "the header Idempotency-Key is empty: give it a value, or leave it out"),
    ("", {b"Neuraxis-User": b"ada"}, "there is no header 'neuraxis-user': did you mean 'X-Neuraxis-User'?"),
    ("", {b"X-Neuraxis-Agent": b"a"}, "there is no header 'x-neuraxis-agent': did you mean 'X-Neuraxis-User'?"),
    ("", {b"Idempotency-Keys": b"k"}, "there is no header 'idempotency-keys': did you mean 'Idempotency-Key'?"),
    ("", {b"X-Idempotent": b"k"}, "there is no header 'x-idempotent': did you mean 'Idempotency-Key'?"),
    ("", {b"X-Neuraxis-Session": b"s"}, "there is no header 'x-neuraxis-session': only chats take it"),
    ("", {b"X-Idempotency-Key": b"k"}, "there is no header 'x-idempotency-key': did you mean 'Idempotency-Key'?"),
]
"""(query, headers, how the refusal begins)"""


def test_what_an_address_or_a_header_misspells_is_refused() -> None:
    status = "/orchestrator/guardrails-status/loop_001"
    answers = answered(*(("GET", f"{status}?{query}", b"", headers) for query, headers, _ in MISSPELT))
    for (query, headers, told), answer in zip(MISSPELT, answers, strict=True):
        assert (answer.status_code, answer.json()["message"][: len(told)]) == (400, told), (query, headers)


@each(
    "path",
    ["/v1/guard", "/v1/verdicts", "/v1/allowances", "/v1/allowances/a/withdraw", "/api/breaker/reset", "/api/what-if"],
)
def test_a_key_for_repeats_is_refused_where_a_repeat_would_count_again(path: str) -> None:
    """Whoever sends it would send the request again in case of doubt, and have the breaker count an input twice."""
    answer = ask("POST", path, b"{}", {b"Idempotency-Key": b"k"})
    assert (answer.status_code, answer.json()["field"]) == (400, "Idempotency-Key")
    assert "is not taken here, since a repeat counts as well" in answer.json()["message"]


@each("path", ["/v1/chat/completions", "/v1/moderations"])
def test_clients_of_openai_may_send_a_key_with_whatever_they_post(path: str) -> None:
    answer = ask("POST", path, b"{}", {b"Idempotency-Key": b"k"})
    assert "Idempotency-Key" not in answer.json()["error"]["message"]


def test_a_header_of_ours_that_stands_twice_is_refused() -> None:
    for name in ("X-Neuraxis-User", "Idempotency-Key"):
        twice = [(name.encode(), value) for value in (b"ada", b"bob")]
        answer = ask("GET", "/orchestrator/guardrails-status/loop_001", b"", twice)
        assert (answer.status_code, answer.json()["code"], answer.json()["field"]) == (400, "key_twice", name)


def test_a_refusal_has_a_code_the_field_and_what_to_do() -> None:
    answer = ask("POST", LOOP, json.dumps({**SEED_COMPLETION, "alignment_scor": 0.2}).encode(), {})
    assert answer.status_code == 400
    assert answer.json() == {
        "status": "error",
        "code": "unknown_field",
        "field": "alignment_scor",
        "message": "there is no field 'alignment_scor': did you mean 'alignment_score'?",
        "loop_id": "loop_001",
    }


@each(
    ("method", "path", "status", "told"),
    [
        ("POST", "/v1/chats", 404, "nothing is served at this path: /schema lists what is"),
        ("GET", TICKS, 405, "this path does not take this method: /schema lists those it takes"),
    ],
)
def test_a_wrong_address_is_told_where_to_look(method: str, path: str, status: int, told: str) -> None:
    answer = ask(method, path, b"", {})
    assert (answer.status_code, answer.json()["message"]) == (status, told)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(path=paths, body=bodies, key=st.none() | names)
@example(path=LOOP, body=json.dumps(SCORED).encode(), key="\n")
@example(path=LOOP, body=json.dumps(SCORED).encode(), key="k" * 201)
def test_no_body_and_no_key_breaks_the_gateway(path: str, body: bytes, key: str | None) -> None:
    headers = {} if key is None else {b"Idempotency-Key": key.encode("utf-8", "surrogatepass")}
    answer = ask("POST", path, body, headers)
    assert answer.status_code in (200, 202, 400, 404)
    told = answer.json()
    assert told["status"] == ("success" if answer.status_code < 300 else "error")
    assert answer.status_code < 300 or told["message"]


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(loop=names, agent=names)
def test_no_name_in_an_address_breaks_the_gateway(loop: str, agent: str) -> None:
    query = httpx.QueryParams({"agent": agent})
    escaped = "".join(f"%{byte:02X}" for byte in loop.encode("utf-8", "surrogatepass"))
    answer = ask("GET", f"/orchestrator/guardrails-status/{escaped}?{query}", b"", {})
    assert answer.status_code in (400, 404)
    assert answer.json()["status"] == "error"
