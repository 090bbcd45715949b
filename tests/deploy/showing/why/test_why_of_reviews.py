"""What ``why`` and ``feed`` say of self-review's events: every number on which a review rests, and no control codes."""

import re

from deploy.cli.rendering.why.details import LineContext, details
from schemas.event import Event, topic_of
from schemas.vocabulary.self_review import SelfReviewTriggered
from tests.actors.self_review.builders import BETTER, SHOCK, citizen, see, tick
from tests.each import each


def told(event: Event) -> str:
    from rich.console import Console

    console = Console(width=200, no_color=True)
    with console.capture() as captured:
        for line in details(event, LineContext()):
            console.print(line)
    return captured.get()


REVIEW = see(citizen(), **SHOCK, **BETTER)


@each("event", REVIEW, named=lambda event: topic_of(event).removeprefix("forged_id."))
def test_a_review_is_told(event: Event):
    assert told(event).strip()


def test_the_trigger_names_reasons_and_signals():
    line = told(REVIEW[0])
    assert "affect_record, regret_record" in line
    assert "affect 0.72" in line
    assert "tick 33 of felix" in line


def test_the_result_names_the_swap():
    assert re.search(r"better by 0\.\d+ with validator instead of worse", told(REVIEW[1]))


def test_the_measured_numbers_are_a_table_of_signals_and_parts():
    lines = told(REVIEW[2])
    assert all(name in lines for name in ("signal", "record", "guard", "wm_churn", "redundancy", "score"))
    assert "criticality 0.216" in lines


def test_a_seat_shows_its_sign():
    assert re.search(r"worse metacog_negative -0\.\d+", told(REVIEW[3]))
    assert re.search(r"validator metacog_positive \+0\.\d+", told(REVIEW[4]))


def test_a_resolution_names_its_scores():
    felix = citizen()
    see(felix, **SHOCK)
    disarmed, resolved = [each for _ in range(3) for each in see(felix)]
    assert "reviews may start again" in told(disarmed)
    assert re.search(r"tick 36 of felix: scores 0\.\d+, 0\.\d+, 0\.\d+, criticality 0\.\d+", told(resolved))


def test_a_tick_names_what_was_chosen_and_what_could_have_been():
    line = told(tick(**BETTER, modes={"guardian": 0.5}))
    assert "chosen: worse (0.5, 100 tokens), docs_sync" in line
    assert "candidates: validator" in line
    assert "guardian 0.5" in line


def test_names_from_outside_cannot_command_the_terminal():
    escape = "\x1b[2J"
    event = REVIEW[0]
    assert isinstance(event, SelfReviewTriggered)
    assert escape not in told(tick(modes={escape: 1.0}, chosen=()))
    assert escape not in told(SelfReviewTriggered(**{**event_fields(event), "citizen": escape}))


def event_fields(event: SelfReviewTriggered) -> dict[str, object]:
    return {name: getattr(event, name) for name in event.__struct_fields__}
