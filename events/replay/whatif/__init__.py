"""What-if: recorded inputs are decided again with other settings, using recorded effects. No effect is ever run.

A second timeline is folded beside the recorded one.

- External events (inputs, orders, completed loops) are taken from the record, at their recorded position and time.
- Decisions of all actors are made again by their deciders, under the changed settings. Their events reach the other
  actors as they would have live.
- An event that the record holds too (by its id, a hash of cause, actor and index) gets its recorded position and time,
  whatever its new content. An event that the record does not hold comes directly after its cause, at its cause's time.
  So with unchanged settings both timelines are equal. If a decision leads to more or fewer events, its other events
  keep the ids of the recorded events of their kind.
- Effects (a model's answers, deliveries of alerts) are taken by the id of their request, and only if the request equals
  the recorded one. A decision that makes another request ends its branch: the exchange counts as *ended because an
  effect is missing*.
- A deadline that fired in the record fires if it is still pending. Any other fires only in an exchange that has
  diverged (some event of it differs), at the first recorded message after its time.
- Each part of the log is decided under the behaviour that was in force there, or all of it under today's.
- Decisions that cannot be made again (a behaviour or a model that is not here, sealed words, an event that the broker
  refused) are *held*: taken from the record, if their message still arrives, and counted with the reason. An exchange
  that such a decision may have changed, and that ends the same, is reported as neither equal nor changed.
"""

from events.replay.whatif.changes import Changes, UnfitChanges
from events.replay.whatif.comparison import fields_of
from events.replay.whatif.record_index import RecordIndex, RecordIndexer
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
    "LATEST", "MOST_EXAMPLES", "RECORDED", "Change", "Changes", "Example", "Fate", "Outcome", "RecordIndex",
    "RecordIndexer", "Report", "Tally", "Timeline", "Traced", "UnfitChanges", "fields_of",
]  # fmt: skip
