"""The read model ``changes``: what lasts longer than an exchange (breakers, regulated parameters, self-reviews)."""

from collections.abc import Mapping

import msgspec

from events.ledger.bulk_insert import Fold, Insert, Parameters
from events.ledger.rows import Row, Text, event_of, json_of, timestamp
from schemas.catalogue import CATALOGUE
from schemas.event import topic_of
from schemas.vocabulary.breaker import BreakerCleared
from schemas.vocabulary.regulator import Adjusted, Confirmed, Reverted
from schemas.vocabulary.self_review import SelfReviewTriggered

_BREAKER_STATE_EVENTS = tuple(
    entry.event
    for entry in CATALOGUE.values()
    if entry.owner == "breaker"
    and "standing" in entry.event.__struct_fields__
    and entry.event is not BreakerCleared  # it changes nothing, and there is one for every answered input
)
"""The events that say which state a session's breaker is in."""

_CHANGES = Insert("changes", ("seq", "owner", "topic", "agent", "session", "state", "figures", "created_at"))


def _breaker_change(row: Row, _headers: Mapping[str, str]) -> Parameters:
    # An operator's name and reason are people's words: only the resulting state is kept.
    standing = msgspec.structs.asdict(event_of(row))["standing"]
    return _change(row, "breaker", standing.state, standing)


def _regulator_change(row: Row, _headers: Mapping[str, str]) -> Parameters:
    return _change(row, "regulator", "", event_of(row))


def _self_review(row: Row, _headers: Mapping[str, str]) -> Parameters:
    return _change(row, "self_review", "", event_of(row))


def _change(row: Row, owner: str, state: str, figures: msgspec.Struct) -> Parameters:
    seq, _, topic, _, agent, session, _, _, _, time_ns, _, _ = row
    return seq, owner, topic, agent, session, state, json_of(figures), timestamp(time_ns)


CHANGES: Mapping[Text, Fold] = {
    **{topic_of(kind): Fold(_CHANGES, _breaker_change, of_exchange=False) for kind in _BREAKER_STATE_EVENTS},
    **{
        topic_of(kind): Fold(_CHANGES, _regulator_change, of_exchange=False) for kind in (Adjusted, Confirmed, Reverted)
    },
    topic_of(SelfReviewTriggered): Fold(_CHANGES, _self_review, of_exchange=False),
}
"""Public subject -> how its events change the table ``changes``."""
