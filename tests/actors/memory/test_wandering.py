"""What a drifting mind comes upon, and what stays of the thoughts about it."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from actors.memory.layers.concepts import links_of
from actors.memory.settings import MemorySettings
from actors.memory.wandering import strength_in
from schemas.persistent import encode_state
from schemas.vocabulary.drift import DriftStarted, DriftThought, Strategy
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.memory import MemoryWandered
from schemas.vocabulary.self_review import SeatAdded
from tests.actors.memory.builders import (
    EVERYTHING,
    HOUR_MS,
    appraisal,
    ask,
    forget,
    ids,
    mind,
    partition,
    response,
    talk,
)
from tests.actors.scenario import Address, Partition

AGENT = Address(session="", exchange="")
DAY_MS = 24 * HOUR_MS


def wander(
    memory: Partition, *strategies: Strategy, pick: float = 0.0, resting: tuple[str, ...] = (), after_ms: int = 0
) -> MemoryWandered:
    """Let the agent's mind wander; return what it comes upon."""
    event = DriftStarted(
        strategies=strategies, pick=pick, kind="question", resting=resting, fatigue=0.0, draws=(), wake_after_ms=1
    )
    (found,) = memory.when(event, AGENT, after_ms=after_ms)
    assert isinstance(found, MemoryWandered)
    return found


def think(memory: Partition, upon: MemoryWandered, text: str = "", *, session: str = "session") -> None:
    """Let a thought come about what the mind came upon."""
    assert upon.strategy is not None
    thought = DriftThought(
        kind="question",
        text=text or f"What more is there to {upon.concept}?",
        concept=upon.concept,
        seed=upon.seed,
        strategy=upon.strategy,
        activation=upon.activation,
        episode=upon.episode,
        by="composer",
    )
    memory.hear(thought, Address(session=session, exchange=""))


def salient(memory: Partition, text: str, exchange: str, salience: float) -> None:
    """Let an exchange of this salience be executed."""
    here = Address(exchange=exchange)
    memory.hear(InputReceived(text=text), here)
    memory.hear(appraisal(arousal=salience, novelty=salience), here)
    memory.hear(response(), here)


def strength(memory: Partition, term: str) -> float:
    return strength_in(mind(memory), term, memory.now_ns, memory.state.settings)


def holds(memory: Partition, word: str) -> bool:
    return word.encode() in encode_state(memory.state).lower()


def test_an_agent_without_an_episode_of_seven_days_comes_upon_nothing():
    """mode-router: Drift Cycle, recent episodes, within 7 days."""
    memory = partition()
    assert wander(memory, "random").reason == "no_episode"
    talk(memory, "The llama met Ada", "e1")
    assert wander(memory, "recent", after_ms=7 * DAY_MS).reason == ""
    assert wander(memory, "recent", after_ms=1).reason == "no_episode"


def test_decaying_begins_with_the_weakest_that_is_still_there():
    """mode-router: Seed Selection Strategies, Decaying, weakest first."""
    memory = partition()
    talk(memory, "llama ada", "e1")
    memory.now_ns += 3 * DAY_MS * 1_000_000
    talk(memory, "ada alpaca", "e2")
    found = wander(memory, "decaying")
    assert (found.strategy, found.concept) == ("decaying", "llama")
    assert 0.2 < found.strength < 1.0
    assert wander(memory, "decaying", resting=(found.seed,)).concept == "alpaca"


def test_decaying_leaves_alone_what_is_strong_or_gone():
    """mode-router: Seed Selection Strategies, Decaying, 0.2 < strength < 2.0."""
    memory = partition(MemorySettings(wander_back_ms=30 * DAY_MS))
    talk(memory, "llama", "e1")
    # A single meeting is below 0.2 after more than 2.32 half-lives of seven days.
    memory.now_ns += 17 * DAY_MS * 1_000_000
    for number in range(3):
        talk(memory, "ada", f"a{number}")
    assert strength(memory, "llama") < 0.2
    assert strength(memory, "ada") > 2.0
    assert wander(memory, "decaying").reason == "no_seed"


def test_recent_begins_with_a_concept_of_the_latest_episode():
    """mode-router: Seed Selection Strategies, Recent."""
    memory = partition()
    talk(memory, "llama ada", "e1")
    talk(memory, "peru capital", "e2")
    assert {wander(memory, "recent", pick=pick).concept for pick in (0.0, 0.5, 0.999, 1.0)} == {"peru", "capital"}


def test_salient_begins_with_a_concept_of_the_most_salient_episode_of_seven_days():
    """mode-router: Seed Selection Strategies, Salient."""
    memory = partition()
    salient(memory, "old fire", "e1", 1.0)
    memory.now_ns += 8 * DAY_MS * 1_000_000
    salient(memory, "llama ada", "e2", 0.9)
    salient(memory, "peru capital", "e3", 0.1)
    assert wander(memory, "salient").concept == "llama"


def test_random_begins_with_any_concept_of_enough_confidence():
    """mode-router: Seed Selection Strategies, Random, confidence >= 0.4."""
    memory = partition()
    talk(memory, "llama ada", "e1")
    assert wander(memory, "random").reason == "no_seed", "met once, confidence is a third"
    talk(memory, "llama peru", "e2")
    assert {wander(memory, "random", pick=pick).concept for pick in (0.0, 0.5, 0.999)} == {"llama"}


def test_where_a_strategy_has_no_concept_the_next_is_asked():
    memory = partition()
    talk(memory, "llama ada", "e1")
    found = wander(memory, "random", "recent", "decaying")
    assert (found.strategy, found.concept) == ("recent", "llama")
    resting = tuple(f"concept:{each.number}" for each in mind(memory).concepts.values())
    assert wander(memory, "random", "recent", "decaying", "salient", resting=resting).reason == "no_seed"


def test_the_seed_is_no_part_of_what_it_brings_up():
    memory = partition()
    talk(memory, "llama", "e1")
    found = wander(memory, "recent")
    assert (found.activations, found.activation) == ((), 0.0), "with it, every activation would be 1"
    assert (found.episode, found.text) == ("episode:1", "Said: llama")


def test_a_hop_leaves_seven_tenths_times_the_strength_of_the_link():
    """mode-router: Drift Cycle, spreading activation (depth 2)."""
    memory = partition()
    talk(memory, "llama ada", "e1")
    talk(memory, "ada peru", "e2")
    found = wander(memory, "decaying")
    assert found.concept == "llama"
    # llama -> ada with all its meetings, ada -> peru with the latest of its own, which counts for .6
    energies = {each.concept: each.energy for each in found.activations}
    known = mind(memory).concepts
    assert energies == {f"concept:{known['ada'].number}": 0.7, f"concept:{known['peru'].number}": 0.294}
    assert found.activation == 0.7


def test_the_thought_will_rest_on_the_latest_episode_of_both():
    """mode-router: Drift Cycle, retrieve grounding episode."""
    memory = partition()
    talk(memory, "llama ada", "e1")
    talk(memory, "llama ada again", "e2")
    talk(memory, "llama", "e3")
    found = wander(memory, "recent")
    assert (found.concept, found.episode) == ("llama", "episode:2")


def test_what_it_came_upon_has_words_of_one_session_and_is_addressed_to_that():
    memory = partition()
    talk(memory, "llama swordfish", "e1", session="secret")
    talk(memory, "llama ada", "e2", session="open")
    found = wander(memory, "recent")
    message = memory.emitted[-1]
    assert (message.agent, message.session, message.exchange) == ("agent", "open", "")
    assert found.concept == "llama"
    assert len(found.activations) == 2
    assert b"swordfish" not in msgspec.json.encode(found)


words = st.sampled_from(["llama", "ada", "peru", "capital", "alpaca", "river"])


@given(
    said=st.lists(st.tuples(st.lists(words, min_size=1, max_size=4), st.sampled_from("abc")), min_size=1, max_size=8)
)
def test_the_strongest_association_is_always_one_of_the_episode_s_own(said: list[tuple[list[str], str]]):
    memory = partition()
    for number, (terms, session) in enumerate(said):
        talk(memory, " ".join(terms), f"e{number}", session=session)
    known = mind(memory)
    for pick in (0.0, 0.4, 0.9):
        found = wander(memory, "recent", pick=pick)
        episode = known.episodes.kept[int(found.episode.removeprefix("episode:"))]
        assert found.concept in episode.concepts
        assert memory.emitted[-1].session == episode.session
        assert {each.term for each in found.activations if each.term} <= {*episode.concepts}
        if found.activations:
            strongest = found.activations[0]
            assert strongest.term in links_of(found.concept, known.concepts, known.episodes.kept)
            assert strongest.energy == found.activation


def test_a_thought_comes_to_mind_in_any_session_of_the_agent_and_in_no_other_s():
    memory = partition(EVERYTHING)
    talk(memory, "peru capital", "e1")
    think(memory, wander(memory, "recent"), "Does peru have a second capital?")
    found = ask(memory, "peru", "q1", session="evening")
    (gist,) = [each for each in found.recollections if each.id == "drift:1"]
    assert (gist.layer, gist.text) == ("gist", "Does peru have a second capital?")
    assert gist.energy > 0.25
    assert "drift:1" not in ids(ask(memory, "peru", "q2", agent="other"))


def test_of_many_thoughts_two_come_to_mind_the_latest_of_their_concepts():
    memory = partition(EVERYTHING)
    talk(memory, "peru capital river", "e1")
    for pick in (0.0, 0.0, 0.4, 0.9, 0.9):
        upon = wander(memory, "recent", pick=pick)
        think(memory, upon, f"What has {upon.concept} to do with peru?")
    recalled = ids(ask(memory, "peru capital river", "q1", session="other"))
    assert [each for each in recalled if each.startswith("drift:")] == ["drift:5", "drift:3"]


def test_a_thought_comes_to_mind_for_a_week():
    memory = partition(EVERYTHING)
    talk(memory, "peru capital", "e1")
    think(memory, wander(memory, "recent"))
    assert "drift:1" in ids(ask(memory, "peru", "q1", session="other", after_ms=7 * DAY_MS))
    assert "drift:1" not in ids(ask(memory, "peru", "q2", session="other", after_ms=1))


def test_a_thought_about_a_fading_concept_strengthens_it_by_a_tenth():
    """mode-router: Drift Safeguards, decaying reinforcement +0.1."""
    memory = partition()
    talk(memory, "llama ada", "e1")
    think(memory, wander(memory, "decaying"))
    assert (strength(memory, "llama"), strength(memory, "ada")) == (1.1, 1.0)
    memory.now_ns += 7 * DAY_MS * 1_000_000
    assert strength(memory, "llama") == 0.55


def test_a_thought_about_any_other_strengthens_nothing():
    """mode-router: Drift Safeguards, only decaying seeds."""
    for strategy in ("recent", "salient"):
        memory = partition()
        talk(memory, "llama ada", "e1")
        think(memory, wander(memory, strategy))  # type: ignore[arg-type]
        assert (strength(memory, "llama"), strength(memory, "ada")) == (1.0, 1.0)


def test_wandering_alone_strengthens_nothing():
    memory = partition()
    talk(memory, "llama ada", "e1")
    before = encode_state(memory.state)
    wander(memory, "decaying")
    assert encode_state(memory.state) == before


def test_a_thought_about_a_forgotten_session_is_forgotten_with_it_and_what_it_strengthened_too():
    memory = partition(EVERYTHING)
    talk(memory, "llama swordfish", "e1", session="secret")
    think(memory, wander(memory, "decaying"), "Is the llama a swordfish?", session="secret")
    talk(memory, "llama ada", "e2", session="open")
    # the turn, gist and episode of the exchange, the thought, and one of its two concepts
    assert forget(memory, session="secret").count == 5
    assert not holds(memory, "swordfish")
    assert strength(memory, "llama") == 1.0
    assert "drift:1" not in ids(ask(memory, "llama", "q1", session="open"))


def test_a_thought_that_quotes_a_forgotten_fact_goes_with_it():
    memory = partition(EVERYTHING)
    talk(memory, "My password is swordfish", "e1")
    think(memory, wander(memory, "recent"), "Why a swordfish?")
    forget(memory, key="password")
    assert not holds(memory, "swordfish")


def test_a_thought_that_comes_after_its_session_is_forgotten_is_not_kept():
    memory = partition(EVERYTHING)
    talk(memory, "llama swordfish", "e1", session="secret")
    upon = wander(memory, "recent")
    forget(memory, session="secret")
    think(memory, upon, "Is the llama a swordfish?", session="secret")
    assert not holds(memory, "swordfish")


def test_an_agent_whose_words_are_all_forgotten_comes_upon_nothing():
    memory = partition()
    talk(memory, "llama ada", "e1")
    forget(memory)
    assert wander(memory, "decaying", "recent", "salient", "random").reason == "no_episode"


def test_forgetting_leaves_what_other_words_would_have_left():
    def left(word: str) -> bytes:
        memory = partition(EVERYTHING)
        talk(memory, f"llama {word}", "e1", session="secret")
        think(memory, wander(memory, "decaying"), f"Is the llama a {word}?", session="secret")
        talk(memory, "llama ada", "e2", session="open")
        forget(memory, session="secret")
        return encode_state(memory.state)

    assert left("swordfish") == left("mackerel")


def test_a_thought_goes_with_the_oldest_episode_and_as_the_oldest_thought():
    memory = partition(MemorySettings(episodes=1, thoughts=2))
    talk(memory, "llama ada", "e1")
    for _ in range(3):
        think(memory, wander(memory, "recent"))
    assert [each.number for each in mind(memory).thoughts] == [2, 3]
    talk(memory, "peru capital", "e2")
    assert mind(memory).thoughts == ()
    assert mind(memory).thought == 3


def test_a_review_s_seat_on_a_thought_makes_it_come_sooner():
    memory = partition(EVERYTHING)
    talk(memory, "peru capital river alpaca", "e1")
    think(memory, wander(memory, "recent"), "peru llama ada stone")
    (before,) = [each.energy for each in ask(memory, "peru", "q1", session="x").recollections if each.id == "drift:1"]
    seat = SeatAdded(citizen="agent", tick=1, entity="drift:1", seat_type="metacog_quality", value=1.0)
    memory.hear(seat, AGENT)
    (after,) = [each.energy for each in ask(memory, "peru", "q2", session="x").recollections if each.id == "drift:1"]
    assert after > before
