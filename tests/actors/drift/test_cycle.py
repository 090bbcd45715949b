"""When an idle mind drifts, and when it does not."""

from actors.drift.decider import State
from schemas.actor import Scope
from schemas.catalogue import entry_of, owned_by
from schemas.entry import Entry
from schemas.event import Event, topic_of
from schemas.persistent import ExpiringMap, encode_state
from schemas.vocabulary.clock import ClockFired
from schemas.vocabulary.drift import DriftScheduled, DriftSkipped, DriftStarted, DriftThought
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.memory import MemoryWandered
from schemas.wording.personal import personal_location
from tests.actors.drift.builders import AGENT, MINUTE_MS, TALKED, partition, started, talk, thought, upon, wake
from tests.actors.memory.builders import response
from tests.actors.scenario import MS, Address
from tests.each import each


def skipped(event: object) -> str:
    """Return why there was no drift."""
    assert isinstance(event, DriftSkipped)
    return event.reason


def test_the_end_of_an_exchange_schedules_a_drift_of_the_agent():
    drift = partition()
    (event,) = talk(drift)
    assert isinstance(event, DriftScheduled)
    assert 210_000 <= event.wake_after_ms <= 975_000
    message = drift.emitted[-1]
    assert (message.agent, message.session, message.exchange) == ("agent", "", "")


def test_one_drift_is_scheduled_however_many_exchanges_end():
    drift = partition()
    assert [len(talk(drift, f"e{number}", after_ms=1_000)) for number in range(5)] == [1, 0, 0, 0, 0]


def test_the_end_of_an_exchange_that_never_began_schedules_nothing():
    assert partition().when(response()) == []


def test_a_repeated_input_of_an_ended_exchange_does_not_keep_the_agent_from_drifting():
    drift = partition()
    talk(drift)
    drift.hear(InputReceived(text="Hello"), Address(exchange="e1"))
    assert isinstance(wake(drift), DriftStarted)


def test_an_agent_with_an_open_exchange_does_not_drift_until_that_has_ended():
    """mode-router: Drift Cycle, all queues idle? no -> skip."""
    drift = partition()
    talk(drift)
    drift.hear(InputReceived(text="And?"), Address(exchange="open"))
    event = wake(drift)
    assert isinstance(event, DriftSkipped)
    assert (event.reason, event.wake_after_ms) == ("busy", 0)
    (scheduled,) = drift.when(response(), Address(exchange="open"))
    assert isinstance(scheduled, DriftScheduled)


def test_an_open_exchange_of_another_agent_keeps_nobody_from_drifting():
    drift = partition()
    talk(drift)
    drift.hear(InputReceived(text="Hello"), Address(agent="other", exchange="e2"))
    assert isinstance(wake(drift), DriftStarted)


def test_a_timer_of_somebody_else_or_of_a_session_starts_nothing():
    drift = partition()
    talk(drift)
    fired = ClockFired(set_by=topic_of(DriftScheduled), due_ns=0)
    assert drift.when(ClockFired(set_by="forged_id.reflection.scheduled", due_ns=0), AGENT) == []
    assert drift.when(fired, TALKED) == []
    assert drift.when(fired, Address()) == []


def test_a_timer_that_was_replaced_while_it_went_off_starts_nothing():
    drift = partition()
    talk(drift)
    thought(drift)
    assert drift.when(ClockFired(set_by=topic_of(DriftStarted), due_ns=0), AGENT) == []


def test_a_drift_starts_with_what_it_drew():
    """mode-router: Drift Cycle, select seed concept (weighted random)."""
    drift = partition()
    talk(drift)
    event = wake(drift)
    assert isinstance(event, DriftStarted)
    assert sorted(event.strategies) == ["decaying", "random", "recent", "salient"]
    assert event.pick == event.draws[-2]
    assert (event.resting, event.fatigue, event.wake_after_ms) == ((), 0.0, 120_000)


@each("reason", ["no_seed", "no_episode"])
def test_where_memory_comes_upon_nothing_there_is_no_thought(reason: str):
    drift = partition()
    talk(drift)
    wandered = MemoryWandered(request=started(drift), reason=reason)  # type: ignore[arg-type]
    (event,) = drift.when(wandered, AGENT)
    assert skipped(event) == reason


def test_an_agent_that_lived_through_nothing_lately_waits_until_it_is_talked_to():
    """mode-router: Drift Cycle, recent episodes? no -> skip."""
    drift = partition()
    talk(drift)
    (event,) = drift.when(MemoryWandered(request=started(drift), reason="no_episode"), AGENT)
    assert isinstance(event, DriftSkipped)
    assert event.wake_after_ms == 0
    assert [type(each) for each in talk(drift, "e2")] == [DriftScheduled]


@each(("activation", "thinks"), [(0.0, False), (0.399999, False), (0.4, True), (1.0, True)])
def test_an_activation_from_four_tenths_on_is_a_thought(activation: float, thinks: bool):
    """mode-router: Drift Cycle, activation energy; Safeguards, threshold 0.4."""
    drift = partition()
    talk(drift)
    first, *_ = drift.when(upon(started(drift), activation), TALKED)
    assert isinstance(first, DriftThought) == thinks
    assert thinks or skipped(first) == "weak"


def test_a_thought_is_of_the_session_that_it_rests_on_and_the_next_drift_of_the_agent():
    drift = partition()
    talk(drift)
    event = thought(drift)
    assert (event.concept, event.seed, event.strategy) == ("peru", "concept:97", "recent")
    assert (event.activation, event.episode, event.by, event.reason) == (0.7, "episode:3", "composer", "")
    said, scheduled = drift.emitted[-2:]
    assert (said.session, said.exchange) == ("morning", "")
    assert (scheduled.session, scheduled.exchange) == ("", "")


def test_the_composer_s_thought_says_what_it_is_and_what_it_rests_on():
    drift = partition()
    talk(drift)
    event = thought(drift)
    assert event.text.startswith("An idle ")
    assert all(words in event.text for words in ("peru", "capital", "What is the capital of Peru?"))


def test_what_memory_came_upon_for_another_drift_is_ignored():
    drift = partition()
    talk(drift)
    request = started(drift)
    assert drift.when(upon("another"), TALKED) == []
    assert len(drift.when(upon(request), TALKED)) == 2
    assert drift.when(upon(request), TALKED) == []


def test_a_drift_that_nobody_answers_is_given_up_until_the_next_exchange():
    drift = partition()
    talk(drift)
    started(drift)
    event = wake(drift, set_by=DriftStarted, after_ms=120_000)
    assert isinstance(event, DriftSkipped)
    assert (event.reason, event.wake_after_ms) == ("unanswered", 0)
    assert [type(each) for each in talk(drift, "e2")] == [DriftScheduled]
    assert isinstance(wake(drift), DriftStarted)


def test_where_all_concepts_rest_the_next_drift_is_when_the_first_has_rested():
    drift = partition()
    talk(drift)
    thought(drift)
    began_ns = drift.now_ns
    (event,) = drift.when(MemoryWandered(request=started(drift), reason="no_seed"), AGENT)
    assert skipped(event) == "no_seed"
    assert drift.now_ns + event.wake_after_ms * MS == began_ns + 60 * MINUTE_MS * MS


def test_where_there_is_no_concept_and_none_rests_the_end_of_the_next_exchange_is_waited_for():
    drift = partition()
    talk(drift)
    (event,) = drift.when(MemoryWandered(request=started(drift), reason="no_seed"), AGENT)
    assert (skipped(event), event.wake_after_ms) == ("no_seed", 0)
    assert [type(each) for each in talk(drift, "e2")] == [DriftScheduled]


def test_a_thought_that_was_had_is_not_had_again_but_one_on_another_episode_is():
    drift = partition()
    talk(drift)
    thought(drift)
    (event,) = drift.when(upon(started(drift)), TALKED)
    assert skipped(event) == "repeated"
    assert (event.seed, event.activation) == ("concept:97", 0.7)
    again, _ = drift.when(upon(started(drift, set_by=DriftSkipped), episode="episode:4"), TALKED)
    assert isinstance(again, DriftThought)


def test_only_the_latest_thoughts_are_kept_from_coming_again():
    drift = partition(thoughts_kept=1, fatigue_budget=100.0)
    talk(drift)
    assert [thought(drift, seed=seed).seed for seed in ("concept:1", "concept:2", "concept:1")]
    assert skipped(drift.when(upon(started(drift), seed="concept:1"), TALKED)[0]) == "repeated"


def test_drifts_that_lead_to_nothing_put_the_next_off_twice_as_long_each_up_to_a_day():
    drift = partition(jitter=0.0, long_gap_chance=0.0)
    talk(drift)
    pauses = []
    set_by: type[Event] = DriftScheduled
    for _ in range(10):
        (event,) = drift.when(upon(started(drift, set_by=set_by), 0.1), TALKED)
        assert isinstance(event, DriftSkipped)
        pauses.append(event.wake_after_ms // MINUTE_MS)
        set_by = DriftSkipped
    assert pauses == [5, 10, 20, 40, 80, 160, 320, 640, 1280, 1440]


def test_talking_to_an_agent_whose_next_drift_was_put_off_brings_it_forward():
    drift = partition(jitter=0.0, long_gap_chance=0.0)
    talk(drift)
    drift.hear(upon(started(drift), 0.1), TALKED)
    drift.hear(upon(started(drift, set_by=DriftSkipped), 0.1), TALKED)
    (event,) = talk(drift, "e2")
    assert isinstance(event, DriftScheduled)
    assert event.wake_after_ms == 5 * MINUTE_MS
    assert talk(drift, "e3") == []
    (after,) = drift.when(upon(started(drift), 0.1), TALKED)
    assert after.wake_after_ms == 5 * MINUTE_MS


def test_a_concept_rests_for_an_hour_after_a_thought():
    """mode-router: Drift Safeguards, per-concept cooldown (60min)."""
    drift = partition()
    talk(drift)
    thought(drift, seed="concept:97")
    event = wake(drift, after_ms=60 * MINUTE_MS - 1)
    assert isinstance(event, DriftStarted)
    assert event.resting == ("concept:97",)
    drift.hear(upon(drift.emitted[-1].id, seed="concept:1"), TALKED)
    event = wake(drift, after_ms=1)
    assert isinstance(event, DriftStarted)
    assert event.resting == ("concept:1",)


def test_a_concept_that_came_to_nothing_rests_too():
    drift = partition()
    talk(drift)
    drift.hear(upon(started(drift), 0.1, seed="concept:5"), TALKED)
    event = wake(drift, set_by=DriftSkipped)
    assert isinstance(event, DriftStarted)
    assert event.resting == ("concept:5",)


def test_thoughts_tire_until_half_an_hour_after_them():
    """mode-router: Drift Cycle, fatigued? yes -> skip."""
    drift = partition()
    talk(drift)
    for number in range(3):
        thought(drift, 0.9, seed=f"concept:{number}")
    event = wake(drift)
    assert isinstance(event, DriftSkipped)
    assert event.reason == "fatigued"
    assert event.wake_after_ms > 0
    # The first was 10 minutes before the last and is past the window 20 minutes from there.
    event = wake(drift, set_by=DriftSkipped, after_ms=15 * MINUTE_MS)
    assert isinstance(event, DriftStarted)
    assert event.fatigue == 1.8


def test_switched_off_it_says_and_keeps_nothing():
    drift = partition(enabled=False)
    assert talk(drift) == []
    assert drift.when(ClockFired(set_by=topic_of(DriftScheduled), due_ns=0), AGENT) == []
    assert drift.state == State(settings=drift.state.settings)


@each("entry", [*owned_by("drift"), entry_of(MemoryWandered)], named=lambda entry: entry.topic)
def test_what_has_words_keeps_its_session_whose_key_they_are_sealed_with(entry: Entry):
    assert personal_location(entry.event) is None or entry.scope is Scope.SESSION


def test_no_word_of_anybody_is_in_its_state():
    drift = partition()
    drift.hear(InputReceived(text="swordfish"), Address(exchange="e0"))
    talk(drift)
    drift.hear(response("swordfish"), Address(exchange="e0"))
    thought(drift)
    encoded = encode_state(drift.state)
    assert not any(word in encoded for word in (b"swordfish", b"peru", b"Peru", b"capital"))


def test_nothing_is_kept_of_an_agent_with_nothing_to_think_about():
    drift = partition()
    talk(drift)
    drift.hear(MemoryWandered(request=started(drift), reason="no_episode"), AGENT)
    assert len(drift.state.minds) == 0
    assert drift.state.ended != ExpiringMap()
