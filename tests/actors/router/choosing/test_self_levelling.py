"""As memory warms, the same kind of question moves from asking back to answering: by signals, without a rule for it."""

from actors.clock import ACTOR as CLOCK
from actors.registry import ACTORS
from actors.router import ACTOR as ROUTER
from actors.router.settings import RouterSettings
from schemas.vocabulary.memory import Familiarity
from schemas.vocabulary.router import ModeSelected
from tests.actors.pipeline import Pipeline
from tests.actors.router.builders import WITHOUT_ACT, answered, ground, recalled
from tests.actors.scenario import Address
from tests.each import each

CONVERSATION: list[tuple[str, Familiarity]] = [
    ("How should I plan the move?", ground(is_new_topic=True)),
    ("Which boxes do we need for it?", ground(turns=1, gists=1)),
    ("How many people should help?", ground(turns=2, gists=2, facts=1)),
    ("When should the van come?", ground(turns=3, gists=3, facts=2)),
    ("Which room should we pack first?", ground(turns=4, gists=4, facts=4)),
    ("How long will it take us?", ground(turns=4, gists=5, facts=6)),
]
"""A talk about one topic, and what memory knows of it at each turn."""


def decisions(settings: RouterSettings) -> list[ModeSelected]:
    pipeline = Pipeline({"router": ROUTER, "clock": CLOCK})
    pipeline.partitions["router"].configure(settings)
    for number, (text, familiarity) in enumerate(CONVERSATION):
        here = Address(exchange=f"e{number}")
        pipeline.ask(text, here)
        pipeline.send(recalled(familiarity), here)
        selected = pipeline.stream[-1].event
        assert isinstance(selected, ModeSelected)
        pipeline.send(answered(selected.terminal_mode or "RESPOND"), here)
    return [each.event for each in pipeline.stream if isinstance(each.event, ModeSelected)]


def test_warmth_rises_over_the_conversation():
    warmth = [each.signals.context_warmth for each in decisions(WITHOUT_ACT)]
    assert warmth == [0.0, 0.155, 0.37, 0.585, 0.86, 1.0]


@each("profile", ["seed", "calibrated"])
def test_cold_ground_is_clarified_and_warm_ground_answered(profile: str):
    """mode-router: Core Principles, 3 cold context favours CLARIFY, warm context RESPOND."""
    modes = [each.terminal_mode for each in decisions(RouterSettings(profile=profile, act=False))]  # type: ignore[arg-type]
    assert (modes[0], modes[-1]) == ("CLARIFY", "RESPOND")
    first_answer = modes.index("RESPOND")
    assert set(modes[:first_answer]) == {"CLARIFY"}
    assert set(modes[first_answer:]) == {"RESPOND"}


def test_calibrated_the_talk_goes_from_asking_back_to_answering():
    modes = [each.selected_mode for each in decisions(RouterSettings(profile="calibrated"))]
    assert modes == ["CLARIFY", "CLARIFY", "RESPOND", "RESPOND", "RESPOND", "RESPOND"]


def test_the_lead_of_answering_over_asking_back_grows_with_every_turn():
    """mode-router: Core Principles, 3 through signal-weighted scoring, not explicit rules."""
    leads = [each.scores["RESPOND"] - each.scores["CLARIFY"] for each in decisions(WITHOUT_ACT)]
    assert leads == sorted(leads)
    assert leads[0] < 0 < leads[-1]


WITH_MEMORY = (
    "How should I plan the move to the new office?",
    "My new office is in Lisbon and the move is in May.",
    "Which boxes do we need for the move to the new office?",
    "The move to the office has a budget of 3000 euros.",
    "How many people should help with the move to the office?",
    "Which room of the office should we move first?",
)


def test_it_levels_itself_over_what_memory_really_gathers():
    """mode-router: Core Principles, 3 the router shifts as memory accumulates."""
    pipeline = Pipeline(ACTORS)
    pipeline.partitions["router"].configure(RouterSettings(profile="calibrated"))
    for number, text in enumerate(WITH_MEMORY):
        pipeline.ask(text, Address(exchange=f"e{number}"))
        pipeline.advance(1_000)
    selections = [each.event for each in pipeline.stream if isinstance(each.event, ModeSelected)]
    warmth = [each.signals.context_warmth for each in selections]
    modes = [each.terminal_mode for each in selections]
    assert warmth == sorted(warmth)
    assert modes == ["CLARIFY", "CLARIFY", "RESPOND", "RESPOND", "RESPOND", "RESPOND"]
