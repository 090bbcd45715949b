"""Source G's endpoints on a simulated log, with the real guardrails behind them."""

import asyncio
import re
from collections.abc import AsyncIterator, Sequence

from actors.gateway.agents import AgentPer
from actors.registry import ACTORS
from events.jetstream.stream import DEDUPE_WINDOW
from events.log import Log, Stored
from tests.actors.gateway.asking import clock, stored
from tests.actors.gateway.http.rig import SCORED, SEED_COMPLETION, SEED_OVERRIDE, complete, gateway, guarding, shape
from tests.each import each
from tests.events.simulated_world import in_world, world_test
from tests.simulated import Faults, SimulatedConnection, SimulatedLog, SimulatedStream

STATUS = "/orchestrator/guardrails-status"
OVERRIDE = "/orchestrator/override-guardrails"

RESPONSE = {
    "status": "success",
    "loop_id": "loop_001",
    "reflection_result": {
        "alignment_score": 0.72,
        "drift_score": 0.28,
        "summary_valid": True,
        "reflection_persona": "SAGE",
        "bias_echo": False,
        "reflection_fatigue": 0.15,
        "repeated_tags": [],
        "repetition_counts": {},
    },
    "decision_result": {
        "decision": "rerun",
        "original_loop_id": "loop_001",
        "new_loop_id": "loop_001_r1",
        "rerun_reason": "alignment_threshold_not_met",
        "rerun_number": 1,
        "rerun_count": 1,
        "max_reruns": 3,
    },
    "orchestrator_persona": "SAGE",
    "timestamp": "2025-04-21T19:45:00.000Z",
}
"""Source G's own response to a loop that is done, with the counts of biases that its text adds to it."""

SHOWN = {
    "status": "success",
    "guardrails_status": {
        "loop_id": "loop_001",
        "rerun_count": 1,
        "max_reruns": 3,
        "rerun_limit_reached": False,
        "bias_echo": False,
        "reflection_fatigue": 0.15,
        "fatigue_threshold_exceeded": False,
        "force_finalize": False,
        "rerun_reason": "alignment_threshold_not_met",
        "rerun_trigger": ["alignment", "drift"],
        "alignment_score": 0.72,
        "drift_score": 0.28,
        "summary_valid": True,
        "reflection_persona": "SAGE",
    },
}
"""Source G's own response to a question."""


@world_test
async def test_the_seeds_loop_completion_is_answered_as_the_seed_shows(stream: SimulatedStream) -> None:
    async with guarding(stream), gateway(stream) as client:
        answer = await complete(client)
    told = answer.json()
    assert answer.status_code == 200
    assert shape(told) == shape(RESPONSE)
    assert list(told) == list(RESPONSE)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", told["timestamp"])
    # The sample's fatigue of 0.15 on a first pass contradicts the seed's own formula: nothing was compared yet.
    fatigue = {"reflection_fatigue": 0.0}
    expected = {
        **RESPONSE,
        "reflection_result": {**RESPONSE["reflection_result"], **fatigue},  # type: ignore[dict-item]
        "timestamp": told["timestamp"],
    }
    assert told == expected


@world_test
async def test_a_completion_that_nobody_scored_finalizes_with_the_seeds_defaults(stream: SimulatedStream) -> None:
    async with guarding(stream), gateway(stream) as client:
        told = (await client.post("/orchestrator/loop-complete", json=SEED_COMPLETION)).json()
    result, decision = told["reflection_result"], told["decision_result"]
    assert (result["alignment_score"], result["drift_score"], result["summary_valid"]) == (0.0, 1.0, False)
    assert (decision["decision"], decision["new_loop_id"]) == ("finalize", None)
    assert (decision["rerun_reason"], decision["rerun_number"]) == ("no_reflection_result", 0)
    assert shape(result) == shape(RESPONSE["reflection_result"])
    assert b'"alignment_score":null' in stored(stream, "guardrails.finalized")[0].data


@world_test
async def test_the_status_of_a_judged_loop_is_answered_as_the_seed_shows(stream: SimulatedStream) -> None:
    async with guarding(stream), gateway(stream) as client:
        await complete(client)
        told = (await client.get(f"{STATUS}/loop_001")).json()
    assert shape(told) == shape(SHOWN)
    assert list(told["guardrails_status"]) == list(SHOWN["guardrails_status"])
    assert told["guardrails_status"] == {**SHOWN["guardrails_status"], "reflection_fatigue": 0.0}  # type: ignore[dict-item]


@world_test
async def test_an_override_is_answered_as_the_seed_shows_and_is_on_record(stream: SimulatedStream) -> None:
    async with guarding(stream), gateway(stream) as client:
        await complete(client)
        told = (await client.post(f"{OVERRIDE}/loop_001", json=SEED_OVERRIDE)).json()
    assert told == {
        "status": "success",
        "loop_id": "loop_001",
        "override_fatigue": True,
        "override_max_reruns": False,
        "overridden_by": "operator",
        "override_reason": "Manual override to continue exploration",
    }
    (ordered,) = stored(stream, "loop.overridden")
    assert b"Manual override to continue exploration" in ordered.data
    assert b'"override_by":"operator"' in ordered.data


@world_test
async def test_a_loop_that_was_completed_twice_keeps_its_judgement(stream: SimulatedStream) -> None:
    async with guarding(stream), gateway(stream) as client:
        first, second = await complete(client), await complete(client, alignment_score=0.99, drift_score=0.0)
    assert second.json() == first.json()
    assert len(stored(stream, "guardrails.rerun_ordered")) == 1


@world_test
async def test_a_judgement_that_is_kept_no_longer_is_found_in_the_log(stream: SimulatedStream) -> None:
    async with guarding(stream), gateway(stream, most=2) as client:
        first = await complete(client)
        for number in range(3):
            await complete(client, loop_id=f"other_{number}")
        assert (await client.get(f"{STATUS}/loop_001")).status_code == 404
        assert (await complete(client)).json() == first.json()


class TrimmedLog(SimulatedLog):
    """A log whose events were all removed from the stream."""

    @property
    def trimmed_through(self) -> int:
        """The last sequence of them."""
        return 7

    async def history(self, filters: Sequence[str], after: int, upto: int) -> AsyncIterator[Sequence[Stored]]:
        """Read nothing."""
        for batch in list[Sequence[Stored]]():
            yield batch


@world_test
async def test_a_judgement_that_was_removed_from_the_stream_is_found_as_soon_as_the_ledger_is_there(
    stream: SimulatedStream,
) -> None:
    log, with_ledger = (kind(SimulatedConnection(stream, "g")) for kind in (TrimmedLog, SimulatedLog))
    has_ledger = asyncio.Event()

    async def whole() -> Log:
        return with_ledger if has_ledger.is_set() else log

    async with guarding(stream), gateway(stream, most=2, log=log, whole=whole) as client:
        first = await complete(client)
        for number in range(3):
            await complete(client, loop_id=f"other_{number}")
        again = await complete(client)
        assert again.status_code == 500
        assert "cannot be found in the log, whose events up to sequence 7 were removed" in again.text
        has_ledger.set()
        assert (await complete(client)).json() == first.json()


def test_one_idempotency_key_is_one_event_however_often_and_wherever_it_is_sent() -> None:
    async def body(stream: SimulatedStream) -> None:
        headers = {"Idempotency-Key": "order 7"}
        async with guarding(stream), gateway(stream) as one, gateway(stream) as other:
            asked = [
                client.post("/orchestrator/loop-complete", json=SCORED, headers=headers)
                for client in (one, other, one, other)
            ]
            answers = [answer.json() for answer in await asyncio.gather(*asked)]
        assert answers == [answers[0]] * 4
        assert len(stored(stream, "loop.completed")) == 1

    in_world(body, Faults(request_delay_s=(0.001, 0.05)), seed=5)


@world_test
async def test_a_key_that_the_stream_has_forgotten_is_recognised_by_a_gateway_that_started_since(
    stream: SimulatedStream,
) -> None:
    headers = {"Idempotency-Key": "order 7"}
    async with guarding(stream):
        async with gateway(stream) as client:
            first = await client.post("/orchestrator/loop-complete", json=SCORED, headers=headers)
        await asyncio.sleep(10 * DEDUPE_WINDOW)
        async with gateway(stream) as client:
            again = await client.post("/orchestrator/loop-complete", json=SCORED, headers=headers)
    assert again.json() == first.json()
    assert len(stored(stream, "loop.completed")) == 1


@world_test
async def test_a_key_sent_again_after_the_stream_has_forgotten_it_and_before_anybody_judged_stops_nobody(
    stream: SimulatedStream,
) -> None:
    headers = {"Idempotency-Key": "order 7"}
    async with gateway(stream, wait_s=3.0) as client:
        for _ in range(2):
            answer = await client.post("/orchestrator/loop-complete", json=SCORED, headers=headers)
            assert answer.status_code in (503, 504)
            await asyncio.sleep(10 * DEDUPE_WINDOW)
        assert len(stored(stream, "loop.completed")) == 2
        async with guarding(stream):
            # Of the same partition; a repeat that held it up would hold this up as well.
            assert (await complete(client, loop_id="another")).status_code == 200
            status = await client.get(f"{STATUS}/loop_001")
            assert status.status_code == 200
            again = await client.post("/orchestrator/loop-complete", json=SCORED, headers=headers)
            assert again.json()["status"] == status.json()["status"]
    assert len(stored(stream, "guardrails.repeated")) == 1


def test_concurrent_completions_of_a_family_are_judged_one_after_the_other() -> None:
    async def body(stream: SimulatedStream) -> None:
        loops = ["loop_001", "loop_001_r1", "loop_001_r2", "loop_001_r3"]
        async with guarding(stream), gateway(stream) as client:
            answers = await asyncio.gather(*(complete(client, loop_id=loop) for loop in loops))
        told = {answer.json()["loop_id"]: answer.json()["decision_result"] for answer in answers}
        assert set(told) == set(loops)
        ordered = [decision["new_loop_id"] for decision in told.values() if decision["decision"] == "rerun"]
        assert len(set(ordered)) == len(ordered) <= 3
        assert all(decision["rerun_count"] <= 3 for decision in told.values())
        assert told["loop_001_r3"]["rerun_reason"] == "max_reruns_reached"

    in_world(body, Faults(request_delay_s=(0.001, 0.05), delivery_delay_s=(0.0, 0.05), pages=(1, 9)), seed=11)


@world_test
async def test_an_override_lets_a_family_run_on_and_expires(stream: SimulatedStream) -> None:
    async with guarding(stream), gateway(stream) as client:
        stopped = await complete(client, loop_id="loop_001_r3")
        lift = {**SEED_OVERRIDE, "override_fatigue": False, "override_max_reruns": True, "override_by": "ann"}
        await client.post(f"{OVERRIDE}/loop_001_r3", json=lift)
        lifted = await complete(client, loop_id="loop_001_r4")
        await asyncio.sleep(2 * 3600)
        expired = await complete(client, loop_id="loop_001_r5")
    decisions = [answer.json()["decision_result"] for answer in (stopped, lifted, expired)]
    assert [decision["decision"] for decision in decisions] == ["finalize", "rerun", "finalize"]
    assert decisions[1]["new_loop_id"] == "loop_001_r5"
    assert b'"overridden_by":"ann"' in stored(stream, "guardrails.rerun_ordered")[0].data


@world_test
async def test_the_status_is_that_of_the_family_as_it_stands_now(stream: SimulatedStream) -> None:
    async with guarding(stream), gateway(stream) as client:
        shown = []

        async def look() -> None:
            status = (await client.get(f"{STATUS}/loop_001")).json()["guardrails_status"]
            shown.append((status["rerun_count"], status["force_finalize"], status["alignment_score"]))

        await complete(client)
        await look()
        await complete(client, loop_id="loop_001_r3", alignment_score=0.6)
        await look()
        lift = {**SEED_OVERRIDE, "override_fatigue": False, "override_max_reruns": True}
        await client.post(f"{OVERRIDE}/loop_001", json=lift)
        await look()
        await asyncio.sleep(2 * 3600)
        await look()
    assert shown == [(1, False, 0.72), (3, True, 0.72), (3, False, 0.72), (3, True, 0.72)]


@world_test
async def test_an_override_in_a_completion_shows_in_the_status(stream: SimulatedStream) -> None:
    async with guarding(stream), gateway(stream) as client:
        await complete(client, loop_id="loop_001_r3")
        lifted = {"override_max_reruns": True, "override_by": "ann"}
        await complete(client, loop_id="loop_001_r3", **lifted)
        status = (await client.get(f"{STATUS}/loop_001_r3")).json()["guardrails_status"]
    assert (status["force_finalize"], status["rerun_count"]) == (False, 4)


@world_test
async def test_repeated_biases_are_counted_in_the_answer(stream: SimulatedStream) -> None:
    async with guarding(stream), gateway(stream) as client:
        for name in ("one", "two", "three"):
            told = (await complete(client, loop_id=name, bias_tags=["haste"])).json()
    result = told["reflection_result"]
    assert (result["repeated_tags"], result["repetition_counts"]) == (["haste"], {"haste": 3})


@world_test
async def test_a_status_other_than_done_is_refused_in_the_words_of_the_source(stream: SimulatedStream) -> None:
    async with guarding(stream), gateway(stream) as client:
        answer = await complete(client, reflection_status="running")
    told = answer.json()
    assert answer.status_code == 400
    assert (told["status"], told["message"]) == ("error", "Invalid reflection status. Must be 'done'.")
    assert (told["loop_id"], told["field"]) == ("loop_001", "reflection_status")


@world_test
async def test_the_sample_request_with_question_and_answer_gives_the_decision_of_the_source(
    stream: SimulatedStream,
) -> None:
    async with guarding(stream, ACTORS["appraisal"], "s"), guarding(stream), gateway(stream) as client:
        words = {
            "question": "My kitchen tap drips all night: how do I replace its worn rubber washer, and which tools "
            "are needed to unscrew the handle without scratching the chrome?",
            "answer": "The Portuguese navigators reached Brazil in the spring of 1500 with thirteen ships.",
        }
        answer = await client.post("/orchestrator/loop-complete", json={**SEED_COMPLETION, **words})
        again = await client.post("/orchestrator/loop-complete", json={**SEED_COMPLETION, **words})
    told = answer.json()
    assert answer.status_code == 200
    decision = told["decision_result"]
    # Which of the two speaks first is the embedder's to say.
    assert decision["rerun_reason"] in ("alignment_threshold_not_met", "drift_threshold_exceeded")
    assert {**decision, "rerun_reason": ""} == {**RESPONSE["decision_result"], "rerun_reason": ""}  # type: ignore[dict-item]
    assert told["reflection_result"]["reflection_persona"] == "SAGE"
    assert again.json()["decision_result"] == decision


@world_test
async def test_an_override_of_an_unknown_loop_is_not_found(stream: SimulatedStream) -> None:
    async with guarding(stream), gateway(stream) as client:
        answer = await client.post(f"{OVERRIDE}/loop_404", json=SEED_OVERRIDE)
        asked = await client.get(f"{STATUS}/loop_404")
    for refused in (answer, asked):
        assert refused.status_code == 404
        assert list(refused.json()) == ["status", "code", "message", "loop_id"]
        assert (refused.json()["status"], refused.json()["loop_id"]) == ("error", "loop_404")


@world_test
async def test_agents_have_loops_of_their_own(stream: SimulatedStream) -> None:
    async with guarding(stream), gateway(stream) as client:
        await complete(client, agent="felix")
        assert (await client.get(f"{STATUS}/loop_001")).status_code == 404
        assert (await client.get(f"{STATUS}/loop_001", params={"agent": "felix"})).status_code == 200


@world_test
async def test_without_guardrails_a_request_is_told_that_it_is_in_the_log(stream: SimulatedStream) -> None:
    async with gateway(stream, wait_s=3.0) as client:
        answer = await complete(client)
        ready = await client.get("/readyz")
    (event,) = stored(stream, "loop.completed")
    assert answer.status_code == 504
    assert f"sequence {event.seq}" in answer.json()["message"]
    assert answer.json()["loop_id"] == "loop_001"
    assert ready.status_code == 503
    assert ready.json()["checks"] == {
        "log": "ok",
        "judgements": "ok",
        "guardrails": "no living worker is ready to run them",
    }


@world_test
async def test_a_request_ends_within_seconds_once_it_is_certain_that_nobody_runs_guardrails(
    stream: SimulatedStream,
) -> None:
    clock = asyncio.get_running_loop().time
    async with gateway(stream, wait_s=60.0) as client:
        async with guarding(stream):
            assert (await complete(client, loop_id="before")).status_code == 200
        begun = clock()
        answer = await complete(client)
        took = clock() - begun
        begun = clock()
        again = await complete(client, loop_id="loop_002")
        took_again = clock() - begun
        async with guarding(stream):
            await asyncio.sleep(1.0)
            status = await client.get("/orchestrator/guardrails-status/loop_001")
            later = await complete(client, loop_id="loop_003")
    (event, _) = stored(stream, "loop.completed")[1:3]
    assert (answer.status_code, answer.json()["code"]) == (503, "no_owner")
    assert f"sequence {event.seq}" in answer.json()["message"]
    assert "guardrails (no owner)" in answer.json()["message"]
    assert took < 10.0
    assert again.status_code == 503
    assert took_again < 1.0
    assert (status.status_code, later.status_code) == (200, 200)


@world_test
async def test_while_the_broker_is_away_a_request_is_told_to_come_again(stream: SimulatedStream) -> None:
    async with guarding(stream), gateway(stream, wait_s=3.0) as client:
        await complete(client, loop_id="before")
        stream.stop()
        answer = await complete(client)
        stream.start()
        again = await complete(client)
    assert answer.status_code == 503
    assert answer.headers["retry-after"] == "1"
    assert "Idempotency-Key" in answer.json()["message"]
    assert again.status_code == 200


@world_test
async def test_a_set_with_guardrails_at_work_is_ready(stream: SimulatedStream) -> None:
    async with guarding(stream), gateway(stream) as client:
        await complete(client)
        assert (await client.get("/healthz")).json() == {"status": "ok"}
        async with asyncio.timeout(5):  # the worker tells with its next heartbeat
            while (answer := await client.get("/readyz")).status_code != 200:
                assert answer.json()["checks"]["guardrails"] == "no living worker is ready to run them"
                await asyncio.sleep(0.1)
        assert answer.json()["status"] == "ready"


def test_a_request_has_its_time_once_and_not_for_each_step() -> None:
    async def body(stream: SimulatedStream) -> None:
        async with gateway(stream, wait_s=6.0) as client:
            begun = clock()
            answer = await complete(client)
            assert answer.status_code == 504, answer.text
            assert 5.9 <= clock() - begun <= 6.1
            assert "within 6.0 s" in answer.json()["message"]

    # Whose log takes seconds to be read, so that the request waits for that, too.
    in_world(body, Faults(request_delay_s=(1.0, 1.0)))


@world_test
async def test_each_user_has_loops_of_an_agent_of_their_own_where_agents_are_one_a_user(
    stream: SimulatedStream,
) -> None:
    ada, bob = {"X-Neuraxis-User": "ada"}, {"X-Neuraxis-User": "bob"}
    async with guarding(stream), gateway(stream, agent_per="user") as client:
        status = f"/orchestrator/guardrails-status/{SCORED['loop_id']}"
        done = await client.post("/orchestrator/loop-complete", json=SCORED, headers=ada)
        assert done.status_code == 200
        assert (await client.get(status, headers=ada)).status_code == 200
        assert (await client.get(status, params={"agent": "user:ada"})).status_code == 200
        assert (await client.get(status, headers=bob)).status_code == 404
        nobody = await client.post("/orchestrator/loop-complete", json=SCORED)
        assert nobody.status_code == 400
        assert "name the user, or an agent" in nobody.json()["message"]
        assert (await client.get(status)).status_code == 400
        assert (await client.post("/v1/ticks", json={"valence": 0})).status_code == 400
        assert (await client.post("/v1/ticks", json={"valence": 0}, headers=bob)).status_code == 202
        assert (await client.get(status, headers={"X-Neuraxis-User": "a" * 300})).status_code == 400


@world_test
async def test_a_user_s_name_in_a_header_is_the_one_that_was_written(stream: SimulatedStream) -> None:
    async with guarding(stream), gateway(stream, agent_per="user") as client:
        status = f"/orchestrator/guardrails-status/{SCORED['loop_id']}"
        jose = {"X-Neuraxis-User": "José".encode()}
        assert (await client.post("/orchestrator/loop-complete", json=SCORED, headers=jose)).status_code == 200
        assert (await client.get(status, headers=jose)).status_code == 200
        assert (await client.get(status, params={"agent": "user:José"})).status_code == 200
        latin = await client.get(status, headers={"X-Neuraxis-User": "José".encode("latin-1")})
        assert (latin.status_code, latin.json()["field"]) == (400, "X-Neuraxis-User")
        assert latin.json()["message"] == "the header X-Neuraxis-User is not UTF-8: write it so"


@each("agent_per", ["shared", "session"])
@world_test
async def test_a_user_who_would_change_nothing_is_refused_unless_the_agent_is_named(
    stream: SimulatedStream, agent_per: AgentPer
) -> None:
    async with guarding(stream), gateway(stream, agent_per=agent_per) as client:
        user, status = {"X-Neuraxis-User": "ada"}, f"/orchestrator/guardrails-status/{SCORED['loop_id']}"
        for answer in (
            await client.post("/orchestrator/loop-complete", json=SCORED, headers=user),
            await client.post("/v1/ticks", json={"valence": 0}, headers=user),
            await client.get(status, headers=user),
        ):
            assert (answer.status_code, answer.json()["field"]) == (400, "X-Neuraxis-User")
            assert 'set gateway.agent_per = "user", or name an agent' in answer.json()["message"]
        named = {**SCORED, "agent": "default"}
        assert (await client.post("/orchestrator/loop-complete", json=named, headers=user)).status_code == 200
        assert (await client.get(status, params={"agent": "default"}, headers=user)).status_code == 200
