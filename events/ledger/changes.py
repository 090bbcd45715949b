"""The read model ``changes``: what lasts longer than an exchange (breakers, regulated parameters, self-reviews)."""

from collections.abc import Mapping

from events.ledger.bulk_insert import Fold, Insert, Parameters
from events.ledger.rows import Row, Text, event_of, json_of, timestamp
from events.ledger.tables import columns_of
from schemas.catalogue import CATALOGUE, entry_of
from schemas.event import Event, topic_of
from schemas.vocabulary.breaker import BreakerCleared
from schemas.vocabulary.regulator import Adjusted, Confirmed, Reverted
from schemas.vocabulary.self_review import SelfReviewTriggered

_RECORDED: tuple[type[Event], ...] = (
    Adjusted,
    Confirmed,
    Reverted,
    SelfReviewTriggered,
    *(
        entry.event
        for entry in CATALOGUE.values()
        if entry.owner == "breaker"
        and "standing" in entry.event.__struct_fields__
        and entry.event is not BreakerCleared  # it changes nothing, and there is one for every answered input
    ),
)
"""The events that are recorded; of the breaker, those that say in which state a session's breaker is."""

_CHANGES = Insert("changes", columns_of("changes"))


def _change(row: Row, _headers: Mapping[str, str]) -> Parameters:
    seq, _, topic, _, agent, session, _, _, _, time_ns, _, _ = row
    event = event_of(row)
    # An operator's name and reason are people's words: of a breaker's event only the resulting state is kept.
    standing = getattr(event, "standing", None)
    state, figures = ("", event) if standing is None else (standing.state, standing)
    return seq, entry_of(event).owner, topic, agent, session, state, json_of(figures), timestamp(time_ns)


CHANGES: Mapping[Text, Fold] = {topic_of(kind): Fold(_CHANGES, _change, of_exchange=False) for kind in _RECORDED}
"""Public subject -> how its events change the table ``changes``."""
