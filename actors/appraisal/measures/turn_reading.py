"""What kind of turn an input is: five probabilities, by trained weights (``actors.contract.text.dialogue_act.model``).

The kinds: it can be answered as it stands (``answerable``); something is missing that only the person knows
(``underspecified``); a courtesy (``social``); it asks for what was said before (``recall``); it orders a ``task``. For
one or two words, a list of courtesies decides instead (``courtesies``).
"""

from functools import cache

from actors.appraisal.measures.courtesies import as_courtesy_or_topic
from actors.contract.text.dialogue_act.model import TurnModel, probabilities
from actors.contract.text.judge.weights import turn_weights_of
from schemas.vocabulary.appraisal import TurnReading


@cache
def turn_model() -> TurnModel:
    """Return the turn model: the one in the package, or the configured one (``actors.contract.text.judge.weights``)."""
    return turn_weights_of("actors.appraisal")


def turn_reading_of(text: str, model: TurnModel | None = None) -> TurnReading:
    """Return the probabilities of a text; ``model`` replaces this release's own."""
    return as_courtesy_or_topic(text, TurnReading(**probabilities(model or turn_model(), text)))
