"""Every event on the way of an exchange, and of an idle mind, is told in words of its own."""

from deploy.cli.rendering.why.details import WITH_CONTEXT, LineContext, details
from deploy.cli.rendering.why.lines import lines_on
from schemas.catalogue import CATALOGUE
from schemas.event import Configured, Event, Failed, topic_of
from schemas.input_path import STAGE_OF

BY_THEIR_FIELDS = {"alert", "webhook"}
"""First tokens of events that say by their fields what they are, but for a few."""

RARE = {"intuition.motif_learned", "intuition.motif_retired", "reflex.library_changed"}


def has_words(kind: type[Event]) -> bool:
    return lines_on.dispatch(kind) is not lines_on.dispatch(Event)


def owner_of(topic: str) -> str:
    return topic.partition(".")[0]


def test_an_actor_that_tells_of_itself_in_words_does_so_in_all_its_events_and_each_on_the_path_does() -> None:
    worded = {
        entry.topic.removeprefix("forged_id."): has_words(entry.event) or entry.event in WITH_CONTEXT
        for entry in CATALOGUE.values()
        if not issubclass(entry.event, Configured | Failed)
    }
    telling = {owner_of(topic) for topic, told in worded.items() if told}
    without = {topic for topic, told in worded.items() if not told and owner_of(topic) in telling - BY_THEIR_FIELDS}

    assert without == RARE
    assert telling.issuperset(STAGE_OF)


def test_every_event_says_something() -> None:
    for entry in CATALOGUE.values():
        assert details(entry.sample, LineContext()), topic_of(entry.event)
