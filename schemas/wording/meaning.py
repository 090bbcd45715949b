"""What events mean, in words for people, put to their codes and numbers where they are shown. Pure.

Words are reworded from release to release. So no event holds any of ours: a decision that did could not be made again
as it was recorded, and one that differs in its numbers would be hard to tell from one that differs in its words.
"""

from schemas.catalogue import CATALOGUE
from schemas.errors import UNREADABLE
from schemas.vocabulary.alerts import Alert

_UNREADABLE = "A stored message cannot be read: all whom it is for pass it over, and nothing comes of it."


def alert_summary(alert: Alert) -> str:
    """Return what an alert tells of, in the catalogue's words, and the latest event's numbers and codes."""
    entry = CATALOGUE.get(alert.event)
    if alert.figures.get("reason") in UNREADABLE:
        meaning = _UNREADABLE
    else:
        # A newer release may have written it; its codes say what there is to say.
        meaning = entry.meaning if entry is not None else f"{alert.event}."
    return " ".join((meaning, *(f"{name}={value}" for name, value in alert.figures.items())))
