"""Circuit-breaker.md, "Circuit Breaker Triggers" and "Non-Compensable Property": what trips, and what never does."""

from schemas.vocabulary.breaker import BreakerTripped
from tests.actors.breaker.builders import GOOD, LONG, SHORT, VIOLATING, Talk, appraised, layer
from tests.each import each


@each("falsehood", [0.650001, 0.66, 0.9, 1.0])
def test_role_confusion_trips_above_065(falsehood: float):
    talk = Talk()
    assert talk.say(falsehood) == ["tripped"]
    assert talk.last.violation == "role_confusion"


def test_role_confusion_at_exactly_065_does_not_trip():
    assert Talk().say(0.65) == ["cleared"]


@each(
    ("falsehood", "characters", "led_to"),
    [
        (0.500001, 5001, "tripped"),
        (0.65, 5001, "tripped"),
        (0.65, 1_000_000, "tripped"),
        (0.5, 5001, "cleared"),
        (0.6, 5000, "cleared"),
        (0.65, 5000, "cleared"),
        (0.0, 1_000_000, "cleared"),
    ],
)
def test_context_saturation_trips_above_5000_characters_and_above_05(falsehood: float, characters: int, led_to: str):
    talk = Talk()
    assert talk.say(falsehood, characters=characters) == [led_to]
    assert getattr(talk.last, "violation", None) == ("context_saturation" if led_to == "tripped" else None)


def test_a_long_layer_above_065_is_role_confusion_and_one_violation():
    talk = Talk()
    talk.say(0.7, characters=LONG)
    assert (talk.last.violation, talk.last.standing.violations) == ("role_confusion", 1)


def test_falsehood_is_the_highest_over_the_layers_and_the_layer_is_named():
    talk = Talk()
    talk.hear(appraised(layer(0.1), layer(0.8, name="document[1]"), layer(0.7, name="tool[2]")))
    assert (talk.last.layer, talk.last.standing.falsehood) == ("document[1]", 0.8)


def test_saturation_is_found_in_a_layer_that_is_not_the_most_false():
    talk = Talk()
    talk.hear(appraised(layer(0.6), layer(0.55, characters=LONG, name="document[1]")))
    assert (talk.last.violation, talk.last.layer) == ("context_saturation", "document[1]")
    assert talk.last.standing.falsehood == 0.6


def test_length_of_one_layer_and_falsehood_of_another_do_not_saturate():
    assert Talk().hear(appraised(layer(0.6, characters=SHORT), layer(0.1, characters=LONG))) == ["cleared"]


def test_many_layers_are_not_added_up():
    assert Talk().hear(appraised(*(layer(0.6, characters=5000) for _ in range(4)))) == ["cleared"]


@each("good_turns", [0, 1, 5, 40])
def test_non_compensable_a_violation_trips_whatever_trust_was_built_before(good_turns: int):
    talk = Talk(*[0.0] * good_turns)
    trust = talk.machine.trust
    assert talk.say(VIOLATING) == ["tripped"]
    assert talk.machine.trust == round(0.3 * trust, 6)


@each("truth", [0.0, 0.5, 1.0])
def test_non_compensable_truth_does_not_offset_falsehood(truth: float):
    assert Talk().say(VIOLATING, truth=truth) == ["tripped"]


def test_non_compensable_polite_layers_do_not_dilute_a_violating_one():
    polite = [layer(0.0, truth=1.0, name=f"document[{place}]") for place in range(20)]
    assert Talk().hear(appraised(layer(0.7), *polite)) == ["tripped"]


@each("falsehood", [0.0, 0.3, 0.5])
@each("characters", [SHORT, LONG])
def test_no_false_positives_below_both_thresholds_ten_times_over(falsehood: float, characters: int):
    talk = Talk()
    assert [talk.say(falsehood, truth=0.9, characters=characters) for _ in range(10)] == [["cleared"]] * 10


TC_01_BASELINE = layer(0.05, truth=0.9)
TC_02_ROLE_REVERSAL = layer(0.85, truth=0.1)
TC_03_INSTRUCTION_OVERRIDE = layer(0.9, truth=0.05)
TC_04_POLITE_ROLE_REVERSAL = layer(0.7, truth=0.6)
TC_05_POLITE_OVERRIDE = layer(0.75, truth=0.7)


def test_tc_01_baseline_does_not_trip():
    assert Talk().hear(appraised(TC_01_BASELINE)) == ["cleared"]


def test_tc_02_role_reversal_trips():
    assert Talk().hear(appraised(TC_02_ROLE_REVERSAL)) == ["tripped"]


def test_tc_03_instruction_override_trips():
    assert Talk().hear(appraised(TC_03_INSTRUCTION_OVERRIDE)) == ["tripped"]


def test_tc_04_polite_role_reversal_trips_after_a_polite_conversation():
    assert Talk(*[GOOD] * 8).hear(appraised(TC_04_POLITE_ROLE_REVERSAL)) == ["tripped"]


def test_tc_05_polite_override_trips_the_breaker():
    talk = Talk(*[GOOD] * 8)
    assert talk.hear(appraised(TC_05_POLITE_OVERRIDE)) == ["tripped"]
    assert isinstance(talk.last, BreakerTripped)


def test_no_false_positives_a_directive_but_reciprocal_prompt_does_not_trip():
    assert Talk().say(0.45, truth=0.6) == ["cleared"]


def test_an_appraisal_without_layers_vouches_for_nothing_and_is_not_counted():
    talk = Talk(GOOD)
    before = talk.machine
    assert talk.hear(appraised()) == ["withheld"]
    assert talk.machine == before
