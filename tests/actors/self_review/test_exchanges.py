"""Exchanges of ours as ticks: from recorded events only, gathered until the end."""

from typing import Any

import msgspec

from actors.self_review import ACTOR
from actors.self_review.agent_state import AgentState
from actors.self_review.decider import agent_state_of
from actors.self_review.settings import SelfReviewSettings
from actors.self_review.tick import hash_names
from schemas.event import Event
from schemas.persistent import state_builtins
from schemas.vocabulary.act import ActFinished
from schemas.vocabulary.appraisal import AppraisalCompleted, LayerTrust, Risks
from schemas.vocabulary.breaker import BreakerCleared
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.guardrails import GuardrailsFinalized, GuardrailsRerunOrdered
from schemas.vocabulary.memory import COLD, MemoryRecalled, Recollection
from schemas.vocabulary.operator import ForgetOrdered
from schemas.vocabulary.responder import Entity, IdentityUse, ResponseEmitted
from schemas.vocabulary.self_review import SelfReviewResult
from tests.actors.scenario import HERE, Address, Partition
from tests.each import each

FERRY = "When does the ferry to Capri leave?"
AT_NINE = Recollection(id="fact:1", layer="fact", text="The ferry to Capri leaves at nine", energy=0.8, tokens=10)
BOAT = Recollection(id="episode:2", layer="episode", text="Capri by ferry was sunny", energy=0.6, tokens=8)
TICKET = Recollection(id="episode:3", layer="episode", text="A canoe is cheap", energy=0.4, tokens=8)


def appraisal(**changes: Any) -> AppraisalCompleted:
    return AppraisalCompleted(
        **{
            "models": "m",
            "conversation_topic": "t",
            "topic_confidence": 0.5,
            "similar_topic": "t",
            "is_new_topic": False,
            "layers": (LayerTrust(layer="text", characters=9, truth=0.9, indeterminacy=0.1, falsehood=0.2),),
            "valence": -0.5,
            "arousal": 0.4,
            "novelty": 0.6,
            "uncertainty": 0.5,
            "risks": Risks(),
            "proposed_action": "answer",
            "affects_swarm": False,
            **changes,
        }
    )


def answer(*chosen: Recollection, **changes: Any) -> ResponseEmitted:
    entities = tuple(Entity(id=e.id, layer=e.layer, energy=e.energy, tokens=e.tokens, share=0.5) for e in chosen)
    return ResponseEmitted(
        **{
            "stage": "DELIBERATIVE",
            "action": "EXECUTED",
            "reason": "RESPOND",
            "mode": "RESPOND",
            "first_mode": "RESPOND",
            "response": "At nine.",
            "backend": "composer",
            "entities": entities,
            **changes,
        }
    )


def recalled(*found: Recollection) -> MemoryRecalled:
    return MemoryRecalled(familiarity=COLD, recollections=found)


def talked(*events: Event, text: str = FERRY, address: Address = HERE) -> Partition:
    partition = Partition(ACTOR)
    for event in (InputReceived(text=text), *events):
        partition.hear(event, address)
    return partition


def seen(partition: Partition) -> AgentState:
    return agent_state_of(partition.state, HERE.agent)


def held(partition: Partition) -> set[int]:
    return {number for number, _ in seen(partition).memory or ()}


def again(partition: Partition, exchange: str, end: Event, *, text: str = FERRY) -> None:
    """Have one more exchange, in which a memory comes to mind."""
    for event in (InputReceived(text=text), recalled(AT_NINE), end):
        partition.hear(event, Address(exchange=exchange))


def signals(partition: Partition) -> dict[str, float]:
    names = ("affect", "mode_conflict", "wm_churn", "novel_uncertain", "identity_drift", "regret")
    return dict(zip(names, seen(partition).past[-1].signals, strict=True))


def test_an_exchange_that_reached_deliberation_is_a_tick_when_it_ends():
    partition = talked(appraisal(), recalled(AT_NINE, BOAT, TICKET), answer(AT_NINE, BOAT))
    assert seen(partition).ticks == 1
    assert seen(partition).past[-1].session == HERE.session
    found = signals(partition)
    assert (found["affect"], found["novel_uncertain"]) == (0.2, 0.3)
    assert held(partition) >= set(hash_names(("episode:2", "episode:3", "fact:1")))


@each("stage", ["REFLEX", "COHERENCE", "ARBITER"])
def test_an_exchange_that_ended_before_deliberation_is_none(stage: str):
    partition = talked(appraisal(), answer(stage=stage, action="BLOCKED"))
    assert seen(partition).ticks == 0
    assert not partition.state.pending


def test_an_exchange_is_one_tick_however_often_its_events_are_repeated():
    partition = talked(recalled(AT_NINE), answer(AT_NINE), answer(AT_NINE), InputReceived(text=FERRY), answer(AT_NINE))
    assert seen(partition).ticks == 1
    assert not partition.state.pending


def test_a_context_to_the_point_scores_well_and_one_beside_it_badly():
    good = talked(recalled(AT_NINE, BOAT, TICKET), answer(AT_NINE, BOAT))
    bad = talked(recalled(AT_NINE, BOAT, TICKET), answer(TICKET))
    assert seen(good).past[-1].parts[-1] > 0.7 > 0.6 > seen(bad).past[-1].parts[-1]
    assert signals(bad)["regret"] > 0.2 > signals(good)["regret"]


@each(
    ("text", "events"),
    [
        (FERRY, (recalled(AT_NINE), answer())),
        ("Yes, and it is!", (recalled(AT_NINE), answer(AT_NINE))),
        (FERRY, (recalled(), answer(AT_NINE))),
    ],
    named=["nothing chosen", "no telling word", "nothing known of what was chosen"],
)
def test_a_tick_without_a_prompt_that_can_be_judged_has_signals_but_no_score(text: str, events: tuple[Event, ...]):
    partition = talked(appraisal(), *events, text=text)
    assert seen(partition).past[-1].parts == ()
    assert signals(partition)["affect"] == 0.2


def test_what_an_act_loop_found_is_among_the_entities_too():
    finished = ActFinished(termination="empty_plan", iterations=1, productive=True, elapsed_ms=3, findings=(AT_NINE,))
    partition = talked(recalled(TICKET), finished, answer(TICKET))
    assert held(partition) >= set(hash_names(("episode:3", "fact:1")))
    assert signals(partition)["regret"] > 0.2


def test_a_model_s_use_of_its_identity_is_drift_and_redundancy():
    use = IdentityUse(stable=("a", "b"), current=("b",), overlap=0.25)
    partition = talked(recalled(AT_NINE), answer(AT_NINE, identity=use))
    # Of two parts one was not taken up, for the first time: .3 of the average of half of the soul, and no other mode.
    assert signals(partition)["identity_drift"] == 0.075
    for number in range(12):
        again(partition, f"again {number}", answer(AT_NINE, identity=use))
    assert 0.24 < signals(partition)["identity_drift"] < 0.25
    partition = talked(recalled(AT_NINE), answer(AT_NINE, identity=use))
    assert seen(partition).past[-1].parts[2] == 0.25
    composed = talked(recalled(AT_NINE), answer(AT_NINE))
    assert signals(composed)["identity_drift"] == seen(composed).past[-1].parts[2] == 0.0


def modes_of(*events: Event, **ending: Any) -> set[str]:
    partition = talked(*events, recalled(AT_NINE), answer(AT_NINE, **ending))
    return set(seen(partition).decisions)


STANDING = msgspec.convert(
    {
        "state_before": "NORMAL", "state": "NORMAL", "trust_before": 0.3, "trust": 0.3, "falsehood": 0.1,
        "violations": 0, "attempts": 0, "attempt_turns": 0, "stance": "guarded",
    },
    BreakerCleared.__annotations__["standing"],
)  # fmt: skip


def test_each_mode_is_read_from_what_was_recorded():
    calm = appraisal(novelty=0.1, layers=())
    assert modes_of(calm) == set()
    assert modes_of(appraisal(novelty=0.9, layers=())) == {"explorer"}
    assert modes_of(appraisal(novelty=0.1, risks=Risks(harm=True))) == {"guardian"}
    assert modes_of(calm, BreakerCleared(standing=STANDING)) == {"guardian"}
    assert modes_of(calm, mode="CLARIFY") == {"translator"}
    assert modes_of(calm, first_mode="ACT") == {"architect"}
    rerun = next(entry.sample for entry in entries() if isinstance(entry.sample, GuardrailsRerunOrdered))
    assert modes_of(calm, rerun) == {"validator"}


def entries() -> tuple[Any, ...]:
    from schemas.vocabulary.guardrails import ENTRIES

    return ENTRIES


def test_fatigue_is_the_mean_of_the_loop_families_judged_since_the_last_tick():
    (finalized,) = [entry.sample for entry in entries() if isinstance(entry.sample, GuardrailsFinalized)]
    trace = finalized.trace
    tired = [
        msgspec.structs.replace(
            finalized, trace=msgspec.structs.replace(trace, family=family, reflection_fatigue=fatigue)
        )
        for family, fatigue in (("one", 0.2), ("one", 0.8), ("two", 0.4))
    ]
    partition = talked(*tired, recalled(AT_NINE), answer(AT_NINE))
    assert seen(partition).criticality == round(0.3 * 0.6, 6)
    partition.hear(InputReceived(text=FERRY), Address(exchange="next"))
    partition.hear(recalled(AT_NINE), Address(exchange="next"))
    partition.hear(answer(AT_NINE), Address(exchange="next"))
    assert seen(partition).criticality == round(0.7 * 0.18, 6), "what was judged before the last tick is past"


def test_what_was_decided_under_a_mode_is_counted():
    partition = talked(appraisal(novelty=0.9), recalled(AT_NINE), answer(AT_NINE, first_mode="ACT"))
    assert {mode: dict(counts) for mode, counts in seen(partition).decisions.items()} == {
        "explorer": {"ACT": 1},
        "architect": {"ACT": 1},
    }


def test_the_agent_s_sessions_share_one_mind_and_another_agent_has_its_own():
    partition = talked(recalled(AT_NINE), answer(AT_NINE))
    for address in (Address(session="evening", exchange="2"), Address(agent="bob", exchange="3")):
        for event in (InputReceived(text=FERRY), recalled(BOAT), answer(BOAT)):
            partition.hear(event, address)
    assert (seen(partition).ticks, agent_state_of(partition.state, "bob").ticks) == (2, 1)
    assert 0.3 < signals(partition)["wm_churn"] < 1.0


# --- forgetting


def test_the_words_are_gone_once_memory_has_spoken_and_with_the_end_the_terms_too():
    partition = talked(appraisal())
    assert "Capri" in str(state_builtins(partition.state))
    partition.hear(recalled(AT_NINE, TICKET))
    assert FERRY not in str(state_builtins(partition.state))
    assert "capri" in str(state_builtins(partition.state))
    partition.hear(answer(AT_NINE))
    assert "capri" not in str(state_builtins(partition.state))


@each("what", ["session", "fact"])
@each("spoken", [(), (recalled(AT_NINE),)], named=["before memory spoke", "after"])
def test_an_order_to_forget_takes_the_words_of_open_exchanges(what: Any, spoken: tuple[Event, ...]):
    partition = talked(*spoken, ForgetOrdered(what=what, key="k", by="ann", why="asked"))
    assert "apri" not in str(state_builtins(partition.state))
    partition.hear(recalled(AT_NINE))
    assert "apri" not in str(state_builtins(partition.state))
    partition.hear(answer(AT_NINE))
    assert seen(partition).past[-1].parts == ()


def test_a_forgotten_session_leaves_no_tick_in_the_statistics():
    def after(text: str) -> Partition:
        partition = talked(recalled(AT_NINE), answer(AT_NINE), address=Address(session="kept", exchange="1"))
        for event in (InputReceived(text=text), recalled(AT_NINE), answer(AT_NINE)):
            partition.hear(event, Address(session="gone", exchange="2"))
        partition.hear(ForgetOrdered(what="session", by="ann", why="asked"), Address(session="gone", exchange=""))
        return partition

    assert after(FERRY).state_hash() == after("Other words altogether").state_hash()
    assert {each.session for each in seen(after(FERRY)).past} == {"kept"}


def test_the_state_of_a_citizen_is_bounded():
    partition = Partition(ACTOR)
    partition.configure(SelfReviewSettings(seats=8))
    for number in range(300):
        address = Address(exchange=f"{number}")
        memory = msgspec.structs.replace(AT_NINE, id=f"fact:{number}", energy=(number % 7) / 7)
        for event in (
            InputReceived(text=FERRY),
            appraisal(arousal=0.0 if number % 40 else number / 300),
            recalled(memory),
            answer(memory),
        ):
            partition.hear(event, address)
    mind = seen(partition)
    assert len(mind.past) == len(mind.ordered[0]) == 128
    assert len(mind.seats) <= 8
    assert any(isinstance(message.event, SelfReviewResult) for message in partition.emitted)


# --- graded signals


def test_the_same_matter_again_churns_less_than_another_one_and_neither_is_a_wall():
    partition = talked(recalled(AT_NINE, BOAT), answer(AT_NINE))
    for number in range(4):
        again(partition, f"same {number}", answer(AT_NINE))
    same = signals(partition)["wm_churn"]
    events = (InputReceived(text="Knead sourdough bread overnight"), recalled(TICKET), answer(TICKET))
    for event in events:
        partition.hear(event, Address(exchange="other"))
    other = signals(partition)["wm_churn"]
    assert 0.0 <= same < 0.1 < 0.4 < other < 1.0


def test_a_larger_turn_than_any_before_sets_a_record_of_churn():
    """With sets of ids every turn was 1.0, and nothing could be more: the detector could not fire."""
    partition = talked(recalled(AT_NINE), answer(AT_NINE))
    topics = ("ferry leaves harbour noon", "ferry leaves harbour late", "ferry boat harbour noon")
    for number in range(60):
        again(partition, f"mild {number}", answer(AT_NINE), text=topics[number % 3])
    assert not seen(partition).armed
    far = " ".join(f"quasar{letter}nebula" for letter in "abcdefghijklmnopqrst")
    [*_, triggered] = [InputReceived(text=far), recalled(TICKET, BOAT), answer(TICKET)]
    partition.hear(InputReceived(text=far), Address(exchange="far"))
    partition.hear(recalled(TICKET, BOAT), Address(exchange="far"))
    led_to = partition.when(triggered, Address(exchange="far"))
    assert any("wm_churn_record" in getattr(event, "reasons", ()) for event in led_to)


def test_an_agent_that_leaves_its_usual_modes_drifts_from_its_identity_without_any_model():
    partition = talked(recalled(AT_NINE), answer(AT_NINE))
    for number in range(40):
        again(partition, f"usual {number}", answer(AT_NINE, mode="RESPOND"))
    usual = signals(partition)["identity_drift"]
    drifted = []
    for number in range(4):
        again(partition, f"unusual {number}", answer(AT_NINE, mode="CLARIFY"))
        drifted.append(signals(partition)["identity_drift"])
    assert usual < drifted[0] < drifted[1] < drifted[2] <= 1.0


def test_a_forgotten_session_takes_what_is_held_in_mind_with_it():
    partition = talked(recalled(AT_NINE), answer(AT_NINE))
    assert held(partition)
    partition.hear(ForgetOrdered(what="session", by="ann", why="asked"), Address(exchange=""))
    assert not held(partition)
