"""Whether recorded effects answer recorded requests: no effect is ever run again, and no answer can be made again.

What an effector records names the request that it answers as its cause. That request must stand before it in the log,
be one that this effector serves, and have one answer: the events of one performance. Headers alone tell all of it.
"""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet

import msgspec

from events.log import Stored
from schemas.catalogue import CATALOGUE
from schemas.envelope import Envelope, decode_headers
from schemas.errors import UndecodableEvent
from schemas.identity import event_id

_MOST_KEPT = 20


class EffectFinding(msgspec.Struct, frozen=True):
    """An effect that answers no request as an effector would.

    ``problem`` is ``no_request`` (none of its cause's id stands before it), ``other_request`` (its cause is none that
    this effector serves), ``answered_twice``, or what differs from the answer of that request: ``id``, ``place``,
    ``exchange`` or ``unreadable`` headers.
    """

    effector: str
    seq: int
    topic: str
    exchange: str
    cause: str
    problem: str


class EffectCounts(msgspec.Struct):
    """What became of an effector's ``requests``: ``answered`` ones have their answer; ``wrong`` events answer none."""

    requests: int = 0
    answered: int = 0
    wrong: int = 0

    @property
    def open(self) -> int:
        """Requests without an answer where the log ends."""
        return self.requests - self.answered


class EffectReport(msgspec.Struct, frozen=True):
    """What was found, by effector, of those that recorded anything; and the first findings."""

    counts: dict[str, EffectCounts]
    findings: tuple[EffectFinding, ...]

    @property
    def wrong(self) -> int:
        """How many recorded events answer no request."""
        return sum(counts.wrong for counts in self.counts.values())


class _Request(msgspec.Struct):
    topic: str
    seq: int
    exchange: str
    answers: int = 0


class Effects:
    """Follows requests and answers through a log; feed it the messages of both, in order.

    Args:
        served: Effector -> the public subjects of the requests that it serves.
        of: The exchanges of which findings are kept; default: of all.
    """

    def __init__(self, served: Mapping[str, AbstractSet[str]], of: AbstractSet[str] = frozenset()) -> None:
        self._served = served
        self._of = of
        self._asked = frozenset[str]().union(*served.values())
        self._open: dict[str, _Request] = {}
        self._closed: set[str] = set()
        self._counts = {effector: EffectCounts() for effector in served}
        self._findings: list[EffectFinding] = []
        self._spoke: set[str] = set()

    def feed(self, stored: Stored) -> None:
        """Take the next message."""
        topic = stored.headers.get("ce-type", "")
        entry = CATALOGUE.get(topic)
        effector = entry.owner if entry is not None and entry.owner in self._served else ""
        if not effector and topic not in self._asked:
            return
        try:
            envelope = decode_headers(stored.headers)
        except UndecodableEvent:
            if effector:
                self._note(effector, stored.seq, topic, "", "", "unreadable")
            return
        if effector:
            self._spoke.add(effector)
            problem = self._problem(effector, envelope)
            if problem:
                self._note(effector, stored.seq, topic, envelope.exchange, envelope.cause, problem)
        if topic in self._asked:
            self._open[envelope.id] = _Request(topic, stored.seq, envelope.exchange)
            for name, subjects in self._served.items():
                self._counts[name].requests += topic in subjects

    def finish(self) -> EffectReport:
        """Return what was found."""
        return EffectReport({name: self._counts[name] for name in sorted(self._spoke)}, tuple(self._findings))

    def _problem(self, effector: str, envelope: Envelope) -> str:
        request = self._open.get(envelope.cause)
        if request is None:
            return "answered_twice" if envelope.cause in self._closed else "no_request"
        if request.topic not in self._served[effector]:
            return "other_request"
        if (envelope.cause_seq, envelope.index) != (request.seq, request.answers):
            return "place"
        if envelope.id != event_id(envelope.cause, effector, envelope.index):
            return "id"
        if envelope.exchange != request.exchange:
            return "exchange"
        request.answers += 1
        if request.answers == envelope.count:
            self._counts[effector].answered += 1
            self._closed.add(envelope.cause)
            del self._open[envelope.cause]
        return ""

    def _note(self, effector: str, seq: int, topic: str, exchange: str, cause: str, problem: str) -> None:
        self._spoke.add(effector)
        self._counts[effector].wrong += 1
        if len(self._findings) < _MOST_KEPT and (not self._of or exchange in self._of):
            self._findings.append(EffectFinding(effector, seq, topic, exchange, cause, problem))
