"""The text of an alert: what its codes and numbers mean, made when the alert is shown. Pure.

The wording changes from release to release, so events do not hold it. Otherwise a replay could not make a decision
again as it was recorded, and differences in wording would hide differences in numbers.
"""

from schemas.catalogue import CATALOGUE
from schemas.errors import UNREADABLE
from schemas.vocabulary.alerts import Alert

_UNREADABLE = "A stored message cannot be read: all whom it is for pass it over, and nothing comes of it."


def alert_summary(alert: Alert) -> str:
    """Return the text of an alert: its subject's meaning by the catalogue, and the latest event's numbers and codes."""
    entry = CATALOGUE.get(alert.event)
    if alert.figures.get("reason") in UNREADABLE:
        meaning = _UNREADABLE
    else:
        # A newer release may have written it: then this one knows no meaning for it.
        meaning = entry.meaning if entry is not None else f"{alert.event}."
    return " ".join((meaning, *(f"{name}={value}" for name, value in alert.figures.items())))
