"""When an agent looks back, and what becomes of models that fail."""

import msgspec

from actors.reflection.settings import ReflectionSettings
from schemas.vocabulary.llm import LlmFailed
from schemas.vocabulary.reflection import ReflectionConcluded, ReflectionRequested, ReflectionScheduled
from tests.actors.reflection.builders import AGENT, IDLE_MS, ON, Reflecting, answer, completed, end, opinion, selection
from tests.actors.scenario import Address
from tests.each import each


def test_one_event_an_idle_period_however_many_exchanges_end():
    agent = Reflecting()
    assert agent.exchange() == [ReflectionScheduled(wake_after_ms=IDLE_MS)]
    assert [agent.exchange() for _ in range(5)] == [[]] * 5


def test_its_events_belong_to_the_agent_and_to_no_exchange():
    agent = Reflecting()
    agent.request(selection())
    assert {(each.agent, each.session, each.exchange) for each in agent.partition.emitted} == {("agent", "", "")}


def test_an_agent_that_was_busy_lately_is_looked_at_once_it_has_been_idle_for_long_enough():
    agent = Reflecting()
    agent.exchange()
    agent.partition.now_ns += (IDLE_MS - 1_000) * 1_000_000
    agent.exchange()
    [later] = agent.wake(after_ms=1_000)
    assert later.event == ReflectionScheduled(wake_after_ms=IDLE_MS - 1_000)
    [asked] = agent.wake(after_ms=IDLE_MS - 1_000)
    assert isinstance(asked.event, ReflectionRequested)


@each("confidence", [0.2, 0.4, 0.6])
def test_decisions_of_middling_confidence_are_not_looked_at(confidence: float):
    assert Reflecting().exchange(selection(confidence)) == []


@each("action", ["BLOCKED", "FAILED", "WITHHELD"])
def test_only_exchanges_that_were_answered_are_looked_at(action: str):
    assert Reflecting().exchange(action=action) == []


def test_the_first_choice_of_an_act_loop_is_not_looked_at_but_the_one_it_was_answered_in():
    agent = Reflecting()
    acting = msgspec.structs.replace(selection(mode="ACT"), terminal_mode=None)
    assert agent.exchange(acting) == []


def test_a_repeated_end_schedules_nothing():
    agent = Reflecting()
    agent.exchange()
    agent.wake(after_ms=1)
    assert agent.partition.when(end(), Address(exchange="x1")) == []


def test_another_batch_follows_while_there_is_more_to_look_at():
    agent = Reflecting()
    asked = agent.request(*[selection()] * 7)
    first = agent.says(asked, answer(*(opinion(number) for number in range(1, 6))))
    assert first.wake_after_ms == IDLE_MS
    [again] = agent.wake(by=ReflectionConcluded)
    assert isinstance(again.event, ReflectionRequested)
    last = agent.says(again, answer(opinion(1), opinion(2)))
    assert (len(again.event.batch), last.wake_after_ms, last.counted) == (2, 0, 7)


def test_a_model_that_fails_adds_nothing_and_is_asked_again_later():
    agent = Reflecting()
    asked = agent.request(selection())
    failed = LlmFailed(reason="circuit_open", error="", failed_seq=1, failed_topic="", request=asked.id)
    assert agent.partition.when(msgspec.structs.replace(failed, purpose="act"), AGENT) == []
    [concluded] = agent.partition.when(msgspec.structs.replace(failed, purpose="reflect"), AGENT)
    assert isinstance(concluded, ReflectionConcluded)
    assert (concluded.reason, concluded.insights, concluded.counted) == ("circuit_open", (), 0)
    assert concluded.wake_after_ms == ON.retry_after_ms
    [again] = agent.wake(by=ReflectionConcluded)
    assert isinstance(again.event, ReflectionRequested)


def test_a_failure_of_a_request_that_could_not_be_read_is_its_own():
    agent = Reflecting()
    agent.request(selection())
    failed = LlmFailed(reason="undecodable", error="", failed_seq=1, failed_topic="forged_id.reflection.requested")
    [concluded] = agent.partition.when(failed, AGENT)
    assert isinstance(concluded, ReflectionConcluded)
    assert concluded.reason == "undecodable"


@each(
    "text",
    [
        "",
        "I would rather not say.",
        "{}",
        answer(),
        answer(opinion(2)),
        answer(opinion(1, "DANCE")),
        answer(opinion(1, confidence=1.1)),
        answer(opinion(1, dimension="mood")),
        answer(opinion(1, rationale="x" * 20_000)),
        "[" * 15_000,
    ],
)
def test_an_answer_that_is_not_as_asked_adds_nothing_and_says_so(text: str):
    agent = Reflecting()
    concluded = agent.says(agent.request(selection()), text)
    assert (concluded.reason, concluded.insights, concluded.pressure) == ("answer_invalid", (), False)
    assert agent.partition.state.minds["agent"].queue == ()


def test_an_answer_in_a_fence_is_read():
    agent = Reflecting()
    concluded = agent.says(agent.request(selection()), f"```json\n{answer(opinion(1))}\n```")
    assert (concluded.reason, concluded.counted) == ("", 1)


def test_an_answer_to_somebody_else_is_not_its_own():
    agent = Reflecting()
    asked = agent.request(selection())
    for other in (completed(answer(opinion(1)), "another"), completed(answer(opinion(1)), asked.id, "tiebreak")):
        assert agent.partition.when(other, AGENT) == []


def test_an_answer_that_never_comes_is_given_up_in_time_and_the_batch_is_looked_at_after_the_next_exchange():
    agent = Reflecting()
    asked = agent.request(selection())
    assert isinstance(asked.event, ReflectionRequested)
    assert asked.event.wake_after_ms == ON.patience_ms
    assert agent.exchange() == []
    [given_up] = agent.wake(by=ReflectionRequested, after_ms=ON.patience_ms)
    assert isinstance(given_up.event, ReflectionConcluded)
    assert (given_up.event.reason, given_up.event.counted, given_up.event.wake_after_ms) == ("unanswered", 0, 0)
    assert agent.partition.when(completed(answer(opinion(1)), asked.id), AGENT) == []
    assert agent.exchange() == [ReflectionScheduled(wake_after_ms=IDLE_MS)]
    [again] = agent.wake()
    assert isinstance(again.event, ReflectionRequested)
    assert {each.exchange for each in asked.event.batch} < {each.exchange for each in again.event.batch}


def test_turning_it_off_drops_what_it_kept():
    agent = Reflecting()
    agent.exchange()
    off = ReflectionSettings()
    agent.partition.configure(off)
    assert agent.wake() == []
    assert len(agent.partition.state.minds) == 0
