"""What an input is as a turn of talk: five probabilities, by trained weights (``actors.contract.text.turn.model``).

Of a word or two, a list of courtesies has the last word (``courtesies``).
"""

from functools import cache

from actors.appraisal.courtesies import as_courtesy_or_topic
from actors.contract.text.judge.weights import turn_weights_of
from actors.contract.text.turn.model import TurnModel, probabilities
from schemas.vocabulary.appraisal import TurnReading


@cache
def turn_model() -> TurnModel:
    """Return the reader of turns: the one that ships, or one's own (``actors.contract.text.judge.weights``)."""
    return turn_weights_of("actors.appraisal")


def turn_reading_of(text: str, model: TurnModel | None = None) -> TurnReading:
    """Return what a text is as a turn of talk; ``model`` is another one than this release's."""
    return as_courtesy_or_topic(text, TurnReading(**probabilities(model or turn_model(), text)))
