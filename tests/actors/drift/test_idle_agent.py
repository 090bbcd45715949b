"""An idle agent in virtual time, through drift, memory and clock: the safeguards hold of all that it thinks."""

from collections import defaultdict
from itertools import pairwise
from random import Random

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from actors.memory.decider import memory_of
from schemas.event import encode_event
from schemas.vocabulary.drift import DriftScheduled, DriftSkipped, DriftStarted, DriftThought
from schemas.vocabulary.memory import MemoryWandered
from schemas.vocabulary.operator import ForgetOrdered
from tests.actors.drift.builders import MINUTE_MS, Idle, strategies
from tests.actors.scenario import MS, Address
from tests.each import each

HOUR_MS = 60 * MINUTE_MS
TAILS = ("ma", "ta", "nk", "ss", "rd")
few = settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])

words = st.sampled_from(["llama", "ada", "peru", "capital", "alpaca", "river", "bridge", "tunnel", "piano", "snow"])
lives = st.lists(st.tuples(st.lists(words, min_size=1, max_size=5), st.integers(0, 3)), min_size=1, max_size=6)


def lived(life: list[tuple[list[str], int]], hours: int) -> Idle:
    """Return an agent that was told these words, some hours apart, and then left alone."""
    idle = Idle()
    for number, (terms, wait) in enumerate(life):
        idle.talk(" ".join(terms), f"e{number}", session=f"session {number % 3}")
        idle.pipeline.advance(wait * HOUR_MS)
    idle.pipeline.advance(hours * HOUR_MS)
    return idle


def timed(idle: Idle, kind: type) -> list[tuple[int, object]]:
    return [(each.time_ns // MS, each.event) for each in idle.pipeline.stream if isinstance(each.event, kind)]


def test_an_idle_agent_has_a_thought_that_comes_to_mind_later_in_any_session():
    """mode-router: Drift Cycle, store as drift gist, surfaces in context."""
    idle = Idle()
    idle.talk("What is the capital of Peru?", "e1")
    idle.pipeline.advance(HOUR_MS)
    thoughts = idle.told(DriftThought)
    assert {each.concept for each in thoughts} == {"capital", "peru"}
    found = idle.recalled("Tell me about Peru", "e2", session="evening")
    gists = [each for each in found.recollections if each.id.startswith("drift:")]
    assert {each.text for each in gists} == {each.text for each in thoughts}


def no_concept_is_begun_with_twice_in_an_hour(idle: Idle) -> None:
    """mode-router: Drift Safeguards, per-concept cooldown, over any life."""
    begun: dict[str, list[int]] = defaultdict(list)
    for at, event in timed(idle, MemoryWandered):
        assert isinstance(event, MemoryWandered)
        if event.seed:
            begun[event.seed].append(at)
    for times in begun.values():
        assert all(later - earlier >= HOUR_MS for earlier, later in pairwise(times))


def who_has_spent_the_budget_of_half_an_hour_does_not_start_to_drift(idle: Idle) -> None:
    """mode-router: Drift Safeguards, fatigue budget (2.5 per 30min)."""
    thoughts = timed(idle, DriftThought)
    for at, event in timed(idle, DriftStarted):
        assert isinstance(event, DriftStarted)
        spent = sum(
            each.activation
            for then, each in thoughts
            if isinstance(each, DriftThought) and 0 <= at - then < 30 * MINUTE_MS and then < at
        )
        assert event.fatigue == round(spent, 6)
        assert spent < 2.5


def every_thought_is_strong_enough_and_its_seed_rests(idle: Idle) -> None:
    """mode-router: Drift Safeguards, activation energy threshold, over any life."""
    upon = {each.request: each for each in idle.told(MemoryWandered)}
    causes, by_id = idle.pipeline.causes, {each.id: each for each in idle.pipeline.stream}
    for message in idle.pipeline.stream:
        if isinstance(message.event, DriftThought):
            wandered = by_id[causes[message.id]].event
            assert isinstance(wandered, MemoryWandered)
            assert wandered is upon[wandered.request]
            assert message.event.activation == wandered.activation >= 0.4
    assert all(each.activation < 0.4 for each in idle.told(DriftSkipped) if each.reason != "repeated")


@given(life=lives)
@few
def test_the_agent_never_drifts_while_an_exchange_is_open(life: list[tuple[list[str], int]]):
    idle = lived(life, 1)
    idle.pipeline.ask("Are you there?", Address(session="open", exchange="open"))
    before = len(idle.told(DriftStarted))
    idle.pipeline.advance(24 * HOUR_MS)
    assert len(idle.told(DriftStarted)) == before


def one_thing_is_due_at_a_time_and_every_drift_ends_once(idle: Idle) -> None:
    clock = idle.pipeline.partitions["clock"].state
    assert sum(key.startswith("drift\n") for key in clock.wakes) == 1
    started = len(idle.told(DriftStarted))
    ended = sum(each.reason not in ("busy", "fatigued") for each in idle.told(DriftSkipped))
    assert started == ended + len(idle.told(DriftThought))


@given(life=lives)
@few
def test_a_life_lived_again_is_thought_again_to_the_byte(life: list[tuple[list[str], int]]):
    first, second = lived(life, 3), lived(life, 3)
    assert [encode_event(each.event) for each in first.pipeline.stream] == [
        encode_event(each.event) for each in second.pipeline.stream
    ]


def test_only_fading_concepts_are_strengthened_and_only_by_thoughts():
    """mode-router: Drift Safeguards, decaying reinforcement, only on success."""
    for settings_, strengthens in ((strategies("decaying"), True), (strategies("recent"), False)):
        idle = Idle(settings_)
        idle.talk("llama ada", "e1")
        idle.pipeline.advance(HOUR_MS)
        assert idle.told(DriftThought)
        mind = memory_of(idle.pipeline.partitions["memory"].state, "agent")
        assert {each.strengthens for each in mind.thoughts} == {strengthens}
    lonely = Idle(strategies("decaying"))
    lonely.talk("llama", "e1")
    lonely.pipeline.advance(HOUR_MS)
    assert set(lonely.reasons()) == {"weak", "no_seed"}
    assert memory_of(lonely.pipeline.partitions["memory"].state, "agent").thoughts == ()


def the_thoughts_that_strengthen_are_those_on_fading_concepts(idle: Idle) -> None:
    """mode-router: Drift Safeguards, decaying reinforcement, over any life."""
    kept = memory_of(idle.pipeline.partitions["memory"].state, "agent").thoughts
    said = idle.told(DriftThought)
    assert len(kept) == len(said)
    assert [(each.concept, each.strengthens) for each in kept] == [
        (each.concept, each.strategy == "decaying") for each in said
    ]


@given(life=lives)
@few
def test_in_every_life(life: list[tuple[list[str], int]]):
    """To live through one takes longer than any look at it."""
    idle = lived(life, 6)
    no_concept_is_begun_with_twice_in_an_hour(idle)
    who_has_spent_the_budget_of_half_an_hour_does_not_start_to_drift(idle)
    every_thought_is_strong_enough_and_its_seed_rests(idle)
    one_thing_is_due_at_a_time_and_every_drift_ends_once(idle)
    the_thoughts_that_strengthen_are_those_on_fading_concepts(idle)


def test_talking_goes_on_without_a_drift_being_put_off_or_doubled():
    idle = Idle()
    for number in range(20):
        idle.talk("llama ada", f"e{number}")
        idle.pipeline.advance(MINUTE_MS)
    between = idle.told(DriftStarted)
    assert 1 <= len(between) <= 20 * 60 // 210
    assert len(idle.told(DriftScheduled)) <= 1 + len(idle.told(DriftThought)) + len(idle.told(DriftSkipped))


VOCABULARY = [f"{head}{tail}o" for head in ("lla", "mon", "pia", "riv", "bri", "tun", "sno", "alp") for tail in TAILS]


def spoken(exchanges: int, seed: int) -> Idle:
    """Return an agent that was told five of forty words every twenty minutes, ever others together."""
    idle, draws = Idle(), Random(seed)
    for number in range(exchanges):
        idle.talk(" ".join(draws.sample(VOCABULARY, 5)), f"e{number}", session=f"session {number % 4}")
        idle.pipeline.advance(20 * MINUTE_MS)
    return idle


@each("seed", [4, 5])
def test_a_vocabulary_of_forty_words_does_not_end_drift(seed: int):
    """By shares of all meetings each word is linked to all others and to none enough: after a day nothing came."""
    idle = spoken(120, seed)
    begun = idle.pipeline.stream[0].time_ns // MS
    late = [at for at, _ in timed(idle, DriftThought) if at - begun > 20 * HOUR_MS]
    assert len(late) > 20


def test_an_agent_that_nobody_talks_to_for_a_week_falls_silent():
    idle = Idle()
    idle.talk("llama ada", "e1")
    idle.pipeline.advance(9 * 24 * HOUR_MS)
    assert idle.reasons()[-1] == "no_episode"
    said = len(idle.pipeline.stream)
    idle.pipeline.advance(7 * 24 * HOUR_MS)
    assert len(idle.pipeline.stream) == said


def test_a_week_after_one_input_costs_no_more_than_a_hundred_events():
    idle = Idle()
    idle.talk("What is the capital of Peru?", "e1")
    said = len(idle.pipeline.stream)
    idle.pipeline.advance(7 * 24 * HOUR_MS)
    assert {each.concept for each in idle.told(DriftThought)} == {"capital", "peru"}
    assert len(idle.pipeline.stream) - said <= 100


def test_a_week_after_an_input_with_nothing_to_think_about_costs_one_look():
    idle = Idle()
    idle.talk("hello", "e1")
    idle.pipeline.advance(7 * 24 * HOUR_MS)
    assert idle.reasons() == ["no_seed"]


@given(life=lives)
@few
def test_no_thought_is_had_twice_over_any_life(life: list[tuple[list[str], int]]):
    idle = lived(life, 48)
    had = [(each.seed, each.episode) for each in idle.told(DriftThought)]
    assert len(had) == len({*had})


def test_an_agent_whose_words_are_all_forgotten_falls_silent_and_its_thoughts_are_gone():
    idle = Idle()
    idle.talk("llama ada", "e1")
    idle.pipeline.advance(HOUR_MS)
    assert idle.told(DriftThought)
    order = ForgetOrdered(what="session", key="", by="ann", why="asked to")
    idle.pipeline.send(order, Address(session="morning", exchange=""))
    idle.pipeline.advance(HOUR_MS)
    assert idle.reasons()[-1] == "no_episode"
    assert memory_of(idle.pipeline.partitions["memory"].state, "agent").thoughts == ()
    assert idle.recalled("llama ada", "e2", session="evening").recollections == ()


def test_a_memory_that_is_stopped_is_asked_once_after_each_exchange():
    idle = Idle()
    idle.talk("llama ada", "e1")
    del idle.pipeline.partitions["memory"]
    idle.pipeline.advance(24 * HOUR_MS)
    assert idle.reasons() == ["unanswered"]
    idle.talk("llama ada", "e2")
    idle.pipeline.advance(24 * HOUR_MS)
    assert idle.reasons() == ["unanswered"] * 2
