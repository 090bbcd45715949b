"""What-if: recorded inputs and recorded effects, decided anew with other settings. No effect is ever run.

A second timeline is folded beside the recorded one. What comes from outside (inputs, orders, completed loops) is taken
from the record, at its place and time. Every actor's decisions are made anew by its decider, under the changed
settings, and their events reach the other actors as they would have live. An event that the record holds too (by its
id, a hash of cause, actor and index) takes its recorded place and time, whatever it now says; one that it does not hold
stands right behind its cause, at its cause's time. So under unchanged settings both timelines are one. Where a decision
leads to an event more or less, its other events keep the ids of the recorded ones of their kind.

Effects (a model's answers, deliveries of alerts) are taken by the id of their request, and only where the request is
the recorded one in all that was recorded of it. A decision that asks for another ends its branch there: the exchange
is counted as *ended for want of an effect*.

A deadline that fired on record fires where it is still pending. Another one fires only in an exchange that has taken
another course, at the first recorded message past its time.

Each stretch of the log is decided under the behaviour that was in force there, or all of it under today's.

Decisions that cannot be made anew (a behaviour that this release does not have, a model that is not here, sealed words,
an event that the broker refused) are taken from the record where their message still arrives, and counted with the
reason. Where they may have been otherwise, nothing is told of an exchange that ends the same.
"""

from events.replay.whatif.changes import Changes
from events.replay.whatif.comparison import fields_of
from events.replay.whatif.past import Past, PastReader
from events.replay.whatif.report import (
    LATEST,
    MOST_EXAMPLES,
    RECORDED,
    Change,
    Example,
    Fate,
    Outcome,
    Report,
    Tally,
    Traced,
)
from events.replay.whatif.timeline import Timeline

__all__ = [
    "LATEST",
    "MOST_EXAMPLES",
    "RECORDED",
    "Change",
    "Changes",
    "Example",
    "Fate",
    "Outcome",
    "Past",
    "PastReader",
    "Report",
    "Tally",
    "Timeline",
    "Traced",
    "fields_of",
]
