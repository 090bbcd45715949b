"""Every event on the way of an exchange, and of an idle mind, is told in words of its own."""

from deploy.cli.rendering.why.details import WITH_CASE, Case, details
from deploy.cli.rendering.why.lines import lines_on
from schemas.catalogue import CATALOGUE
from schemas.event import Event, topic_of

BY_THEIR_FIELDS = {"access", "alert", "feedback", "ledger", "operator", "precedent", "webhook"}
"""First tokens of the events that are no decision on an exchange: their fields say what they are."""
RARE = {"intuition.motif_learned", "intuition.motif_retired", "reflex.library_changed"}


def has_words(kind: type[Event]) -> bool:
    return lines_on.dispatch(kind) is not lines_on.dispatch(Event)


def test_every_event_is_told_in_words_of_its_own_or_by_its_fields_on_purpose() -> None:
    without = {
        entry.topic.removeprefix("forged_id.")
        for entry in CATALOGUE.values()
        if not has_words(entry.event) and entry.event not in WITH_CASE
    }
    assert {topic for topic in without if topic.split(".")[0] not in BY_THEIR_FIELDS} == RARE


def test_every_event_says_something() -> None:
    for entry in CATALOGUE.values():
        assert details(entry.sample, Case()), topic_of(entry.event)
