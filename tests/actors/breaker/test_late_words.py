"""A language model's word that comes after its input was let go: what it does to the session."""

import msgspec

from schemas.catalogue import CATALOGUE
from schemas.vocabulary.appraisal import AppraisalJudged
from schemas.vocabulary.breaker import BreakerTerminated, BreakerTripped
from tests.actors.breaker.builders import GOOD, LONG, SHORT, VIOLATING, Talk, appraised, ended, layer
from tests.each import each


def sample() -> AppraisalJudged:
    found = CATALOGUE["forged_id.appraisal.judged"].sample
    assert isinstance(found, AppraisalJudged)
    return found


def late(talk: Talk, falsehood: float, *, exchange: str | None = None, is_late: bool = True) -> list[object]:
    word = msgspec.structs.replace(sample(), layers=(layer(falsehood),), late=is_late)  # its local falsehood is .41
    return list(talk.partition.when(word, talk.address(exchange)))


def test_a_late_word_that_finds_a_violation_trips_the_breaker_without_counting_the_input_again() -> None:
    talk = Talk(GOOD, GOOD)
    before = talk.machine
    [tripped] = late(talk, VIOLATING)
    assert isinstance(tripped, BreakerTripped)
    assert (tripped.violation, tripped.standing.falsehood) == ("role_confusion", VIOLATING)
    after = talk.machine
    assert (after.state, after.trust) == ("VIOLATED", round(before.trust * 0.3, 6))
    assert (after.interactions, after.falsehoods) == (before.interactions, before.falsehoods)


def test_a_late_word_that_finds_none_changes_nothing() -> None:
    talk = Talk(GOOD)
    before = talk.machine
    assert late(talk, 0.6) == []
    assert talk.machine == before


def test_a_word_that_was_waited_for_is_in_the_appraisal_and_counts_no_second_time() -> None:
    assert late(Talk(GOOD), VIOLATING, is_late=False) == []


def test_where_processing_is_off_a_late_word_begins_no_attempt() -> None:
    talk = Talk(GOOD, VIOLATING)
    assert talk.machine.state == "VIOLATED"
    assert late(talk, VIOLATING, exchange="exchange-1") == []
    assert talk.machine.state == "VIOLATED"


def test_a_late_word_on_what_an_earlier_guard_refused_or_a_reset_forgave_counts_for_nothing() -> None:
    refused = Talk(GOOD)
    refused.end(ended())
    assert late(refused, VIOLATING) == []
    reset = Talk(GOOD)
    reset.reset()
    assert late(reset, VIOLATING) == []
    assert late(Talk(GOOD), VIOLATING, exchange="never-heard-of") == []


@each(
    ("local", "characters"),
    [(0.6, LONG), (0.7, SHORT)],  # a context saturation, and a role confusion with a high ``trust.open_to``
)
@each("answered", [True, False])
def test_a_violation_that_was_counted_with_its_input_is_not_counted_by_the_late_word_on_it_too(
    local: float, characters: int, answered: bool
) -> None:
    talk = Talk(GOOD)
    asked = layer(local, characters=characters)
    talk.hear(appraised(asked))
    tripped = talk.machine
    assert (tripped.state, tripped.breakers.total) == ("VIOLATED", 1)
    talk.say(GOOD)
    assert talk.machine.state == "RECOVERY"
    word = sample()
    part = msgspec.structs.replace(word.parts[0], local=local)
    layers = (msgspec.structs.replace(asked, falsehood=0.9),) if answered else (asked,)
    word = msgspec.structs.replace(word, layers=layers, parts=(part,) if answered else (), late=True)
    assert not talk.partition.when(word, talk.address("exchange-2"))
    assert (talk.machine.state, talk.machine.breakers.total) == ("RECOVERY", 1)


@each("calm", [0, 4])
def test_late_words_count_towards_the_violations_that_end_a_session(calm: int) -> None:
    talk = Talk(VIOLATING)
    talk.reset()
    for _ in range(2):
        talk.say(GOOD)
        assert isinstance(late(talk, VIOLATING)[0], BreakerTripped)
        for _ in range(12):
            talk.say(0.0)
            if talk.machine.state == "NORMAL":
                break
        assert talk.machine.state == "NORMAL"
    for _ in range(calm):
        talk.say(0.0)
    talk.say(GOOD)
    [last] = late(talk, VIOLATING)
    assert isinstance(last, BreakerTerminated)
    assert last.reason == "breakers_in_session"
