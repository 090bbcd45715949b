"""The default profile: what a text is decides, what is known of it counts, and warmth only modulates."""

import msgspec

from actors.act.loop import new_loop
from actors.act.settings import ActSettings
from actors.router.selection import Context, reroute, select_mode, signals_of
from actors.router.settings import RouterSettings
from bench.quality.turns import BY_WARMTH
from schemas.catalogue import entry_of
from schemas.vocabulary.act import ActFinished
from schemas.vocabulary.appraisal import AppraisalCompleted, TurnReading
from schemas.vocabulary.memory import COLD, Familiarity, Recollection
from schemas.vocabulary.regulator import Adjusted
from schemas.vocabulary.router import Mode, ModeSelected
from tests.actors.router.builders import STANDARD, ground, hear, partition, recalled
from tests.actors.scenario import Address
from tests.each import each

NOTHING = {"answerable": 0.0, "underspecified": 0.0, "social": 0.0, "recall": 0.0, "task": 0.0}


def reading(**kinds: float) -> TurnReading:
    """Return a reading that is sure of what is named, and gives the rest to what can be answered."""
    return TurnReading(**{**NOTHING, "answerable": round(1.0 - sum(kinds.values()), 6), **kinds})


def routed(turn: TurnReading | None, familiarity: Familiarity = COLD, text: str = "the text") -> ModeSelected:
    return select_mode(signals_of(text, familiarity, turn), Context(), STANDARD)


def memories(count: int, energy: float = 0.5) -> tuple[Recollection, ...]:
    return tuple(
        Recollection(id=f"fact:{number}", layer="fact", text="name: Ada", energy=energy, tokens=3)
        for number in range(count)
    )


@each("warmth", sorted(BY_WARMTH))
@each(
    ("turn", "mode"),
    [
        (reading(), "RESPOND"),
        (reading(task=0.9), "RESPOND"),
        (reading(underspecified=0.9), "CLARIFY"),
        (reading(social=0.9), "ACKNOWLEDGE"),
        (reading(recall=0.9), "ACT"),
    ],
    named=["answerable", "task", "underspecified", "social", "recall"],
)
def test_what_a_text_is_decides_however_warm_the_context(turn: TurnReading, mode: Mode, warmth: str):
    assert routed(turn, BY_WARMTH[warmth]).selected_mode == mode


def test_warmth_tips_the_scales_where_a_text_may_be_either():
    either = reading(underspecified=0.36)
    assert [routed(either, BY_WARMTH[name]).selected_mode for name in ("cold", "warm")] == ["CLARIFY", "RESPOND"]


@each(("underspecified", "mode"), [(0.5, "RESPOND"), (0.95, "CLARIFY")])
def test_what_a_fact_bears_on_lacks_less(underspecified: float, mode: Mode):
    """Told of an allergy, an agent does not ask back at "Which foods must I avoid?"; it does at "fix it"."""
    told = msgspec.structs.replace(COLD, bearing=0.5, fact_count=1, fact_keys=("allergy",))
    turn = reading(underspecified=underspecified, recall=0.3 * (1 - underspecified))
    assert routed(turn).selected_mode == "CLARIFY"
    assert routed(turn, told).selected_mode == mode
    assert routed(turn, msgspec.structs.replace(told, fact_count=0, fact_keys=())).selected_mode == "CLARIFY"


@each("warmth", sorted(BY_WARMTH))
def test_a_text_of_which_nothing_is_known_is_answered_and_not_asked_about(warmth: str):
    assert routed(None, BY_WARMTH[warmth]).selected_mode == "RESPOND"


def test_the_reading_is_among_the_recorded_signals():
    signals = routed(reading(social=0.2, task=0.1)).signals
    assert (signals.answerable, signals.social, signals.task) == (0.7, 0.2, 0.1)


def test_a_router_decides_by_appraisal_s_reading():
    router = partition(STANDARD)
    here = Address(exchange="e1")
    hear(router, "the text", "e1")
    completed = entry_of(AppraisalCompleted).sample
    router.hear(msgspec.structs.replace(completed, turn=reading(underspecified=0.9)), here)
    (selected,) = router.when(recalled(), here)
    assert isinstance(selected, ModeSelected)
    assert (selected.selected_mode, selected.signals.underspecified) == ("CLARIFY", 0.9)


def test_an_answer_to_our_question_is_not_asked_about_again():
    turn = reading(underspecified=0.4)
    signals = signals_of("Friday", ground(turns=1), turn)
    assert select_mode(signals, Context(), STANDARD).selected_mode == "CLARIFY"
    assert select_mode(signals, Context(previous_mode="CLARIFY"), STANDARD).selected_mode == "RESPOND"


@each("found", [1, 2, 12])
@each("underspecified", [0.0, 0.3, 0.5])
def test_a_loop_that_found_something_does_not_end_in_a_question(found: int, underspecified: float):
    first = routed(reading(recall=0.5, underspecified=underspecified, answerable=0.5 - underspecified))
    again = reroute(first, STANDARD, findings=memories(found))
    assert again.selected_mode == "RESPOND"
    assert (again.signals.findings, again.signals.bearing) == (found, 0.5)


def test_what_act_found_reaches_the_decision_through_a_router():
    router = partition(STANDARD)
    here = Address(exchange="e1")
    hear(router, "What did I say of the lease?", "e1")
    completed = entry_of(AppraisalCompleted).sample
    router.hear(msgspec.structs.replace(completed, turn=reading(recall=0.6, underspecified=0.35)), here)
    (first,) = router.when(recalled(), here)
    assert isinstance(first, ModeSelected)
    assert first.terminal_mode is None
    finished = ActFinished(termination="plan_empty", iterations=2, productive=True, elapsed_ms=9, findings=memories(12))
    (again,) = router.when(finished, here)
    assert isinstance(again, ModeSelected)
    assert (again.terminal_mode, again.signals.findings, again.scores["RESPOND"]) == (
        "RESPOND",
        12,
        max(again.scores.values()),
    )


def test_the_source_s_profiles_do_not_look_at_what_a_text_is():
    for profile in ("calibrated", "seed"):
        settings = RouterSettings(profile=profile)
        decisions = {
            select_mode(signals_of("the text", COLD, turn), Context(), settings).selected_mode
            for turn in (None, reading(), reading(social=0.9), reading(recall=0.9))
        }
        assert decisions == {"CLARIFY"}


def test_a_correction_of_a_weight_that_the_profile_lacks_changes_nothing():
    router = partition(RouterSettings(profile="seed"))
    adjusted = entry_of(Adjusted).sample
    router.hear(msgspec.structs.replace(adjusted, parameter="act.recall"), Address(session="", exchange=""))
    hear(router, "What is the capital of Peru?", "e1")
    (selected,) = router.when(recalled(), Address(exchange="e1"))
    assert isinstance(selected, ModeSelected)
    assert "act.recall" not in selected.weights


@each(("left_ms", "loop_ms"), [(5_000, 3_000), (30_000, 18_000), (60_000, 45_000), (75_000, 60_000), (600_000, 60_000)])
def test_a_loop_has_the_source_s_minute_where_the_deadline_leaves_time_to_answer(left_ms: int, loop_ms: int):
    loop = new_loop(0, left_ms * 1_000_000, ActSettings())
    assert loop.due_ns == loop_ms * 1_000_000
