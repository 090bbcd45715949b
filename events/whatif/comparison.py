"""Which exchanges end otherwise, and which decisions led there."""

from collections import Counter
from enum import StrEnum
from typing import Any

import msgspec

from schemas.event import Event, topic_of
from schemas.vocabulary.responder import ResponseEmitted

EFFECT_MISSING = "effect_missing"
"""A decision asked for an effect that was never made."""

OPEN = "open"
"""No end: the log stops before it."""

NOT_REDECIDED = "not_redecided"
"""No end: a decision on the new course cannot be made, such as one that needs sealed words."""

_KEPT = 20


class Tally(msgspec.Struct):
    """What became of an actor's events.

    ``decided`` counts the messages decided anew. ``identical`` and ``different`` events are on record too, ``gone``
    ones only there, ``new`` ones only in the second timeline. ``pending`` ones follow from the record, which ends
    before them. ``held`` counts, by reason, decisions taken from the record.
    """

    decided: int = 0
    identical: int = 0
    different: int = 0
    gone: int = 0
    new: int = 0
    pending: int = 0
    held: dict[str, int] = {}


class End(msgspec.Struct, frozen=True):
    """How an exchange ended, in one timeline; ``how`` is empty for a real end, else why there is none."""

    stage: str = ""
    action: str = ""
    reason: str = ""
    mode: str = ""
    response: str = ""
    how: str = ""

    @property
    def label(self) -> str:
        """Stage and action, or why there is no end."""
        return self.how or f"{self.stage}/{self.action}"

    @property
    def decision(self) -> tuple[str, str, str, str, str]:
        """All but the words."""
        return self.stage, self.action, self.reason, self.mode, self.how


class Change(msgspec.Struct, frozen=True):
    """The first event of an exchange that differs: its place, and its bodies; None: not in that timeline."""

    seq: int
    actor: str
    topic: str
    recorded: dict[str, Any] | None
    whatif: dict[str, Any] | None


class Fate(StrEnum):
    """What other settings make of an exchange: another end; the same in other words; the same.

    OPEN: it has no end on record. HELD: nothing in it could be decided anew. Neither can be compared.
    """

    CHANGED = "changed"
    REWORDED = "reworded"
    SAME = "same"
    OPEN = "open"
    HELD = "held"


class Outcome(msgspec.Struct, frozen=True):
    """An exchange in both timelines."""

    exchange: str
    seq: int
    recorded: End
    whatif: End
    first: Change | None

    @property
    def changed(self) -> bool:
        """Whether it ends otherwise, words apart; one that the log leaves open has no end to compare."""
        return self.recorded.how != OPEN and self.recorded.decision != self.whatif.decision


class Example(msgspec.Struct, frozen=True):
    """A changed exchange, and the fields in which its first differing event differs: path -> (recorded, what-if)."""

    outcome: Outcome
    fields: dict[str, tuple[Any, Any]]


class Report(msgspec.Struct, frozen=True):
    """What other settings would have changed.

    Attributes:
        events: Recorded events read.
        exchanges: Exchanges begun on record.
        open: Of them, those that the log leaves open, so that there is nothing to compare.
        held: Those that ended, and in which nothing could be decided anew.
        changed: Of the others, those that end otherwise; ``reworded`` those that differ in the answer's words alone.
        without_end: Those of the changed that have no end in the second timeline, by why.
        ends: Recorded stage and action -> that of the second timeline -> exchanges; ``modes`` likewise.
        tallies: By actor.
        effects: ``reused``, and those that are missing: ``never_asked``, ``asked_otherwise``.
        unreadable: Messages that this release cannot decode, by error code.
        unanswered: Actors that the changes concern, and of whose decisions none that says anything could be made anew.
        examples: The first changed exchanges.
        fates: What became of the exchanges that were asked about, as far as they are in the log.
    """

    events: int
    exchanges: int
    open: int
    held: int
    changed: int
    reworded: int
    without_end: dict[str, int]
    ends: dict[str, dict[str, int]]
    modes: dict[str, dict[str, int]]
    tallies: dict[str, Tally]
    effects: dict[str, int]
    unreadable: dict[str, int]
    unanswered: tuple[str, ...]
    examples: tuple[Example, ...]
    fates: dict[str, Fate]

    @property
    def share(self) -> float:
        """The share of compared exchanges that changed, in [0, 1]."""
        return self.changed / self.compared if self.compared else 0.0

    @property
    def compared(self) -> int:
        """How many exchanges ended on record and were decided anew, at least in part."""
        return self.exchanges - self.open - self.held

    @property
    def decided(self) -> int:
        """How many messages were decided anew."""
        return sum(tally.decided for tally in self.tallies.values())

    @property
    def taken(self) -> dict[str, int]:
        """How many decisions were taken from the record, by reason."""
        found: Counter[str] = Counter()
        for tally in self.tallies.values():
            found.update(tally.held)
        return dict(sorted(found.items()))


class _Track(msgspec.Struct):
    seq: int
    recorded: End | None = None
    whatif: End | None = None
    first: Change | None = None
    decided: bool = False
    unknown: bool = False


class Comparison:
    """Follows the exchanges of both timelines; keeps open ones only."""

    def __init__(self, examples: int = _KEPT, of: frozenset[str] = frozenset()) -> None:
        self._tracks: dict[str, _Track] = {}
        self._most = examples
        self._examples: list[Example] = []
        self._of = of
        self._fates: dict[str, Fate] = {}
        self._exchanges = 0
        self._counts: Counter[Fate] = Counter()
        self._without_end: Counter[str] = Counter()
        self._ends: dict[str, Counter[str]] = {}
        self._modes: dict[str, Counter[str]] = {}

    def begin(self, exchange: str, seq: int) -> None:
        """Note an input; one that is repeated begins nothing."""
        if exchange and exchange not in self._tracks:
            self._tracks[exchange] = _Track(seq)

    def is_open(self, exchange: str) -> bool:
        """Whether an exchange has begun, and not ended in both timelines."""
        return exchange in self._tracks

    def decided(self, exchange: str) -> None:
        """Note that a decision of an exchange was made anew."""
        track = self._tracks.get(exchange)
        if track is not None:
            track.decided = True

    def unknown(self, exchange: str) -> None:
        """Note that a decision on a new course cannot be made, so that the exchange may come to no end."""
        track = self._tracks.get(exchange)
        if track is not None:
            track.unknown = True

    def differs(self, exchange: str, change: Change) -> None:
        """Note an event that is otherwise; the first of an exchange is kept."""
        track = self._tracks.get(exchange)
        if track is not None and track.first is None:
            track.first = change

    def has_diverged(self, exchange: str) -> bool:
        """Whether an open exchange has taken another course, and still goes on."""
        track = self._tracks.get(exchange)
        return track is not None and track.first is not None and track.whatif is None

    def ended(self, exchange: str, event: Event, *, on_record: bool) -> None:
        """Note an end in one of the timelines."""
        if isinstance(event, ResponseEmitted):
            end = End(event.stage, event.action, event.reason, event.mode or "", event.response)
            self._end(exchange, end, on_record)

    def cut(self, exchange: str) -> None:
        """Note that the second timeline's branch ends for want of an effect."""
        self._end(exchange, End(how=EFFECT_MISSING), False)

    def _end(self, exchange: str, end: End, on_record: bool) -> None:
        track = self._tracks.get(exchange)
        if track is None:
            return
        if on_record:
            track.recorded = track.recorded or end
        else:
            track.whatif = track.whatif or end
        if track.recorded is not None and track.whatif is not None:
            self._close(exchange, track)

    def close_all(self) -> None:
        """Count what the record's end left open."""
        for exchange, track in list(self._tracks.items()):
            self._close(exchange, track)

    def _close(self, exchange: str, track: _Track) -> None:
        del self._tracks[exchange]
        recorded = track.recorded or End(how=OPEN)
        whatif = track.whatif or End(how=NOT_REDECIDED if track.unknown else OPEN)
        outcome = Outcome(exchange, track.seq, recorded, whatif, track.first)
        fate = _fate(track, outcome)
        self._exchanges += 1
        self._counts[fate] += 1
        if exchange in self._of:
            self._fates[exchange] = fate
        if outcome.whatif.how and outcome.changed:
            self._without_end[outcome.whatif.how] += 1
        self._ends.setdefault(outcome.recorded.label, Counter())[outcome.whatif.label] += 1
        if outcome.recorded.mode or outcome.whatif.mode:
            was, now = (end.mode or end.label for end in (outcome.recorded, outcome.whatif))
            self._modes.setdefault(was, Counter())[now] += 1
        if outcome.changed and len(self._examples) < self._most and (not self._of or exchange in self._of):
            self._examples.append(Example(outcome, _fields(outcome.first)))

    def report(
        self,
        events: int,
        tallies: dict[str, Tally],
        effects: Counter[str],
        unreadable: Counter[str],
        unanswered: tuple[str, ...],
    ) -> Report:
        """Return what was found; to be called once, behind :meth:`close_all`."""
        return Report(
            events=events,
            exchanges=self._exchanges,
            open=self._counts[Fate.OPEN],
            held=self._counts[Fate.HELD],
            changed=self._counts[Fate.CHANGED],
            reworded=self._counts[Fate.REWORDED],
            without_end=dict(self._without_end),
            ends={was: dict(now) for was, now in sorted(self._ends.items())},
            modes={was: dict(now) for was, now in sorted(self._modes.items())},
            tallies=tallies,
            effects=dict(effects),
            unreadable=dict(unreadable),
            unanswered=unanswered,
            examples=tuple(self._examples),
            fates=self._fates,
        )


def _fate(track: _Track, outcome: Outcome) -> Fate:
    if outcome.changed:
        return Fate.CHANGED
    if track.recorded is None:
        return Fate.OPEN
    if not track.decided:
        return Fate.HELD
    return Fate.SAME if outcome.recorded.response == outcome.whatif.response else Fate.REWORDED


def change_of(seq: int, actor: str, recorded: Event | None, whatif: Event | None) -> Change:
    """Return an event's two bodies as a change; one of them may be missing."""
    event = recorded if recorded is not None else whatif
    assert event is not None
    bodies = [msgspec.to_builtins(each) if each is not None else None for each in (recorded, whatif)]
    return Change(seq, actor, topic_of(event), *bodies)


def _fields(change: Change | None) -> dict[str, tuple[Any, Any]]:
    if change is None or change.recorded is None or change.whatif is None:
        return {}
    was, now = dict(_leaves("", change.recorded)), dict(_leaves("", change.whatif))
    paths = [path for path in (*was, *(path for path in now if path not in was)) if was.get(path) != now.get(path)]
    return {path: (was.get(path), now.get(path)) for path in paths}


def _leaves(path: str, value: Any) -> list[tuple[str, Any]]:
    if isinstance(value, dict) and value:
        return [leaf for name, inner in value.items() for leaf in _leaves(f"{path}.{name}".lstrip("."), inner)]
    return [(path, value)]
