"""Compares the exchanges of both timelines: which end differently, and which decisions led there."""

from collections import Counter
from typing import Any

import msgspec

from events.replay.whatif.report import (
    EFFECT_MISSING,
    MOST_CHANGES,
    MOST_EXAMPLES,
    NOT_REDECIDED,
    OPEN,
    Change,
    End,
    Example,
    Fate,
    Outcome,
    Report,
    Tally,
    Traced,
)
from schemas.event import Event, topic_of
from schemas.settings.nested_values import leaves
from schemas.vocabulary.responder import ResponseEmitted

MAX_TEXT_CHARACTERS = 120
"""Characters of an input's text that are kept to show which exchange it is."""


class _Track(msgspec.Struct):
    """What is known of an open exchange.

    ``seq`` and ``text`` are its input's, ``recorded`` and ``whatif`` its ends in both timelines. ``first`` is the first
    changed event, ``changes`` all of a traced exchange. ``decided``: some decision was made again. ``held``: some
    decision was taken from the record, and might have changed. ``unknown``: actors whose decisions on a changed event
    cannot be made. ``unreadable``: the record has an event of it that this release cannot read.
    """

    seq: int
    text: str = ""
    recorded: End | None = None
    whatif: End | None = None
    first: Change | None = None
    decided: bool = False
    held: bool = False
    unknown: set[str] = set()
    unreadable: bool = False
    changes: list[Change] = []


class Comparison:
    """Follows exchanges through both timelines; only open ones are kept in memory."""

    def __init__(self, examples: int = MOST_EXAMPLES, chosen: frozenset[str] = frozenset()) -> None:
        self._tracks: dict[str, _Track] = {}
        self._max_examples = examples
        self._examples: list[Example] = []
        self._chosen = chosen
        self._fates: dict[str, Fate] = {}
        self._traced: dict[str, Traced] = {}
        self._exchanges = 0
        self._counts: Counter[Fate] = Counter()
        self._without_end: Counter[str] = Counter()
        self._ends: dict[str, Counter[str]] = {}
        self._modes: dict[str, Counter[str]] = {}

    def begin(self, exchange: str, seq: int, text: str = "") -> None:
        """Note an input and the beginning of its text; a repeated one is ignored."""
        if exchange and exchange not in self._tracks:
            self._tracks[exchange] = _Track(seq, text[:MAX_TEXT_CHARACTERS])

    def is_open(self, exchange: str) -> bool:
        """Whether an exchange has begun, and not ended in both timelines."""
        return exchange in self._tracks

    def decided(self, exchange: str) -> None:
        """Note that a decision of an exchange was made anew."""
        if track := self._tracks.get(exchange):
            track.decided = True

    def held(self, exchange: str) -> None:
        """Note that a decision that might have changed was taken from the record."""
        if track := self._tracks.get(exchange):
            track.held = True

    def unknown(self, exchange: str, actor: str) -> None:
        """Note that an actor's decision on a changed event cannot be made: the exchange may have no end."""
        if track := self._tracks.get(exchange):
            track.unknown.add(actor)

    def unreadable(self, exchange: str) -> None:
        """Note that an event of an exchange cannot be read: what then differs may differ for its lack alone."""
        if track := self._tracks.get(exchange):
            track.unreadable = True

    def from_record(self, exchange: str, actor: str) -> None:
        """Note that an actor's recorded event is used although its decision on a changed event is unknown."""
        if (track := self._tracks.get(exchange)) and actor in track.unknown:
            track.held = True

    def differs(self, exchange: str, change: Change) -> None:
        """Note a changed event; the first of an exchange is kept, and all of an exchange that is traced."""
        track = self._tracks.get(exchange)
        if track is None:
            return
        track.first = track.first or change
        if exchange in self._chosen and len(track.changes) < MOST_CHANGES:
            track.changes.append(change)

    def has_diverged(self, exchange: str) -> bool:
        """Whether an exchange is open and some event of it has changed."""
        track = self._tracks.get(exchange)
        return track is not None and track.first is not None and track.whatif is None

    def ended(self, exchange: str, event: Event, *, on_record: bool) -> None:
        """Note an end in one of the timelines."""
        if isinstance(event, ResponseEmitted):
            end = End(event.stage, event.action, event.reason, event.mode or "", event.response)
            self._end(exchange, end, on_record)

    def cut(self, exchange: str) -> None:
        """Note that the exchange cannot go on in the second timeline, because an effect is missing."""
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
        """Count the exchanges that are still open at the record's end."""
        for exchange, track in list(self._tracks.items()):
            self._close(exchange, track)

    def _close(self, exchange: str, track: _Track) -> None:
        del self._tracks[exchange]
        recorded = track.recorded or End(how=OPEN)
        whatif = track.whatif or End(how=NOT_REDECIDED if track.unknown else OPEN)
        outcome = Outcome(exchange, track.seq, recorded, whatif, track.first, track.text)
        fate = _fate(track, outcome)
        self._exchanges += 1
        self._counts[fate] += 1
        if exchange in self._chosen:
            self._fates[exchange] = fate
            self._traced[exchange] = Traced(outcome, tuple(track.changes))
        if track.unreadable:
            return
        if outcome.whatif.how and outcome.changed:
            self._without_end[outcome.whatif.how] += 1
        self._ends.setdefault(outcome.recorded.label, Counter())[outcome.whatif.label] += 1
        if outcome.recorded.mode or outcome.whatif.mode:
            was, now = (end.mode or end.label for end in (outcome.recorded, outcome.whatif))
            self._modes.setdefault(was, Counter())[now] += 1
        if (
            outcome.changed
            and len(self._examples) < self._max_examples
            and (not self._chosen or exchange in self._chosen)
        ):
            self._examples.append(Example(outcome, fields_of(outcome.first)))

    def report(
        self,
        events: int,
        tallies: dict[str, Tally],
        effects: Counter[str],
        unreadable: Counter[str],
        unanswered: tuple[str, ...],
    ) -> Report:
        """Return the report; to be called once, after :meth:`close_all`."""
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
            traced=self._traced,
        )


def _fate(track: _Track, outcome: Outcome) -> Fate:
    if track.unreadable:
        return Fate.HELD
    if outcome.changed:
        return Fate.CHANGED
    if track.recorded is None:
        return Fate.OPEN
    if track.held or not track.decided:
        return Fate.HELD
    return Fate.SAME if outcome.recorded.response == outcome.whatif.response else Fate.REWORDED


def change_of(seq: int, actor: str, recorded: Event | None, whatif: Event | None) -> Change:
    """Return an event's two bodies as a change; one of them may be missing."""
    event = recorded if recorded is not None else whatif
    assert event is not None
    bodies = [msgspec.to_builtins(each) if each is not None else None for each in (recorded, whatif)]
    return Change(seq, actor, topic_of(event), *bodies)


def fields_of(change: Change | None) -> dict[str, tuple[Any, Any]]:
    """Return the fields in which the two bodies of a change differ: path -> (recorded, what-if)."""
    if change is None or change.recorded is None or change.whatif is None:
        return {}
    was, now = dict(leaves(change.recorded)), dict(leaves(change.whatif))
    paths = [path for path in (*was, *(path for path in now if path not in was)) if was.get(path) != now.get(path)]
    return {path: (was.get(path), now.get(path)) for path in paths}
