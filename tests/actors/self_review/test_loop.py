"""The loop closes: a better memory that was passed over gets its seat, and is before later answers (real deciders)."""

from actors.registry import ACTORS
from schemas.vocabulary.responder import ResponseEmitted
from schemas.vocabulary.self_review import SeatAdded, SelfReviewResult, SelfReviewTriggered
from tests.actors.pipeline import Pipeline
from tests.actors.scenario import Address

SMALL_TALK = """My violin needs new strings before the concert.
Which paint is best for a wooden fence?
The tomatoes in the garden are ripe.
How many bones does a horse have?
I am reading a novel about Vikings.
Where can I learn to weld?
Our cellar smells of apples.
Who invented the zip fastener?
The kettle whistles in two notes.
What is the tallest tree on earth?
My sister paints portraits of dogs.
How thick is the ice in Antarctica?
The library closes early on Fridays.
Which planets have rings?
I baked bread with rye flour.
How do bees find their hive?
The orchestra rehearses in the old mill.
What makes glass transparent?
My neighbour builds model trains.
How long do elephants sleep?
The roof was covered with slate.
Which rivers cross Hungary?
I planted tulips along the path.
How is vinegar made?""".splitlines()
PLANTED = "In Capri a ferry ticket costs twelve euros for adults and six for children."
MUCH_THE_SAME = (
    "The ferry to Capri leaves at nine.",
    "The ferry to Capri leaves at nine today.",
    "The ferry to Capri will leave at nine.",
    "So the ferry leaves to Capri at nine.",
    "The ferry to Capri leaves at nine tomorrow.",
    "The Capri ferry leaves at nine.",
    "The first ferry to Capri leaves at nine.",
)
REVIEWED = "When does the ferry to Capri leave, and what does a ticket cost?"
LATER = (
    "And when does the ferry to Capri leave, with a ticket?",
    "Tell me when the ferry to Capri leaves, and the ticket.",
    "For a ticket: when does the ferry to Capri leave?",
)
"""Asked each in a conversation of its own, so that none is helped by the one before it."""


def ask(pipeline: Pipeline, text: str, number: int) -> tuple[str, ...]:
    """Ask in a session of its own; return the memories that the answer had before it."""
    exchange = f"exchange-{number}"
    pipeline.ask(text, Address("ann", f"session-{number}", exchange))
    pipeline.advance(60_000)
    (end,) = [message.event for message in pipeline.ends() if message.exchange == exchange]
    assert isinstance(end, ResponseEmitted)
    return tuple(entity.id for entity in end.entities)


def conversation(*, reviewed: bool, later: str) -> tuple[Pipeline, list[tuple[str, ...]]]:
    """Return what was recorded of it, and the memories before the last two answers."""
    pipeline = Pipeline(ACTORS, stopped=() if reviewed else ("self_review",))
    texts = (*SMALL_TALK, PLANTED, *MUCH_THE_SAME, REVIEWED, later)
    return pipeline, [ask(pipeline, text, number) for number, text in enumerate(texts)][-2:]


PLANTED_ID = f"episode:{len(SMALL_TALK) + 1}"


def test_a_planted_better_entity_is_found_receives_its_seat_and_is_chosen_more_in_later_contexts():
    chosen = {True: 0, False: 0}
    for later in LATER:
        for reviewed in (True, False):
            pipeline, (before, after) = conversation(reviewed=reviewed, later=later)
            assert PLANTED_ID not in before
            chosen[reviewed] += PLANTED_ID in after
            events = [message.event for message in pipeline.stream]
            seats = [each for each in events if isinstance(each, SeatAdded) and each.entity == PLANTED_ID]
            if reviewed:
                (triggered,) = [event for event in events if isinstance(event, SelfReviewTriggered)]
                (result,) = [event for event in events if isinstance(event, SelfReviewResult)]
                assert triggered.reasons == ("regret_record",)
                assert result.seats_applied.positive == (PLANTED_ID,)
                assert result.score < 0.7
                assert [(each.seat_type, each.value) for each in seats] == [("metacog_positive", result.regret)]
    assert chosen[False] == 0
    assert chosen[True] == len(LATER)
