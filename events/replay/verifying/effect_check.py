"""Checks that recorded effects answer recorded requests. Effects are never run again, so answers cannot be compared.

An effector's event names the request that it answers as its cause. That request must come before it in the log, be one
that this effector serves, and have one answer only. The headers show all of this. What the body repeats of the request
must match it, too.

A log is read twice: first the effects, to collect the ids of the requests they name; then requests and effects, in
order. So memory holds 9 bytes for each answered request, and the requests whose answer is still to come. A request that
was never answered, such as an alert that no receiver wants, is only counted.
"""

from array import array
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from hashlib import blake2b

import msgspec
import numpy as np
import numpy.typing as npt

from events.log import Stored
from events.replay.verifying.effect_content import EffectContent, contradicting_field, expected_content
from schemas.catalogue import CATALOGUE, upcast_body
from schemas.envelope import Envelope, decode_headers
from schemas.errors import UndecodableEvent, VocabularyError
from schemas.identity import event_id

_MOST_FINDINGS = 20  # that a report lists; all are counted


class EffectFinding(msgspec.Struct, frozen=True):
    """A recorded effect that no effector would have recorded at its position.

    ``problem`` is one of these. ``no_request``: no event with its cause's id comes before it. ``other_request``: its
    cause is not a request that this effector serves. ``answered_twice``: its request has that answer already.
    ``unreadable``: its headers cannot be read. Or it names what differs from the answer that the request requires:
    ``id``, ``place`` (its cause's sequence, or its index), ``exchange``, or ``body`` (``field`` of it differs from the
    request).
    """

    effector: str
    seq: int
    topic: str
    exchange: str
    cause: str
    problem: str
    field: str = ""


class EffectCounts(msgspec.Struct):
    """An effector's ``requests``; ``answered`` counts those with a complete answer.

    ``wrong`` counts its recorded events that are not the expected next event of an answer; see ``EffectFinding``.
    ``unread`` counts those that answer an event which this release does not know, so that nothing can be checked.
    """

    requests: int = 0
    answered: int = 0
    wrong: int = 0
    unread: int = 0

    @property
    def open(self) -> int:
        """Requests without a complete answer at the log's end."""
        return self.requests - self.answered


class EffectReport(msgspec.Struct, frozen=True):
    """The counts of each effector that recorded anything, and the first findings."""

    counts: dict[str, EffectCounts]
    findings: tuple[EffectFinding, ...]

    @property
    def wrong(self) -> int:
        """How many recorded events are not what an effector would have recorded."""
        return sum(counts.wrong for counts in self.counts.values())


Causes = npt.NDArray[np.uint64]
"""64 bits of the ids of the requests that effects name, sorted."""


class RequestIdReader:
    """Reads which requests the effects of a log name; feed it every message of these effectors."""

    def __init__(self, effectors: AbstractSet[str]) -> None:
        self._effectors = effectors
        self._ids = array("Q")

    def feed(self, stored: Stored) -> None:
        """Take the next message."""
        if _effector_of(stored, self._effectors):
            self._ids.append(_short_id(stored.headers.get("ce-cause", "")))

    def finish(self) -> Causes:
        """Return the request ids that were named."""
        return np.unique(np.array(self._ids, np.uint64))


class _Request(msgspec.Struct):
    topic: str
    seq: int
    exchange: str
    expected: EffectContent
    answers: int = 0


class EffectCheck:
    """Follows requests and answers through a log; feed it the messages of both, in order.

    A newer release may have requests of its own. Feed it the messages of unknown subjects, too, where
    ``lacks_requests`` tells that there are effects without a request.

    Args:
        served: Effector -> the public subjects of the requests that it serves.
        causes: The short ids of the requests that effects name; see :class:`RequestIdReader`.
        chosen: The exchanges whose findings are kept; default: all.
    """

    def __init__(
        self, served: Mapping[str, AbstractSet[str]], causes: Causes, chosen: AbstractSet[str] = frozenset()
    ) -> None:
        self._served = served
        self._chosen = chosen
        self._request_topics = frozenset[str]().union(*served.values())
        self._causes = causes
        self._answered = np.zeros(len(causes), np.bool_)
        self._open: dict[str, _Request] = {}
        self._counts = {effector: EffectCounts() for effector in served}
        self._findings: list[EffectFinding] = []
        self._effectors_seen: set[str] = set()
        # Short ids of events of unknown subjects that effects name as their requests.
        self._unknown_requests: set[int] = set()
        self.lacks_requests = False

    def feed(self, stored: Stored) -> None:
        """Take the next message."""
        topic = stored.headers.get("ce-type", "")
        if topic not in CATALOGUE:
            if self._index_of(id := stored.headers.get("ce-id", "")) is not None:
                self._unknown_requests.add(_short_id(id))
            return
        effector = _effector_of(stored, self._served)
        if not effector and topic not in self._request_topics:
            return
        try:
            envelope = decode_headers(stored.headers)
        except UndecodableEvent:
            if effector:
                self._note(effector, stored, "", "", "unreadable")
            return
        if effector:
            self._effectors_seen.add(effector)
            problem, field = self._problem(effector, envelope, stored.data)
            if problem == "no_request" and _short_id(envelope.cause) in self._unknown_requests:
                self._counts[effector].unread += 1
            elif problem:
                self._note(effector, stored, envelope.exchange, envelope.cause, problem, field)
        if topic in self._request_topics:
            if self._index_of(envelope.id) is not None:
                expected = expected_content(topic, envelope.id, _upcast_body(envelope, stored.data))
                self._open[envelope.id] = _Request(topic, stored.seq, envelope.exchange, expected)
            for name, subjects in self._served.items():
                self._counts[name].requests += topic in subjects

    def finish(self) -> EffectReport:
        """Return the report."""
        return EffectReport({name: self._counts[name] for name in sorted(self._effectors_seen)}, tuple(self._findings))

    def _problem(self, effector: str, envelope: Envelope, data: bytes) -> tuple[str, str]:
        request = self._open.get(envelope.cause)
        if request is None:
            index = self._index_of(envelope.cause)
            return ("answered_twice" if index is not None and self._answered[index] else "no_request"), ""
        if request.topic not in self._served[effector]:
            return "other_request", ""
        if envelope.cause_seq == request.seq and envelope.index < request.answers:
            return "answered_twice", ""
        if (envelope.cause_seq, envelope.index) != (request.seq, request.answers):
            return "place", ""
        if envelope.id != event_id(envelope.cause, effector, envelope.index):
            return "id", ""
        if envelope.exchange != request.exchange:
            return "exchange", ""
        if field := contradicting_field(request.expected, envelope.topic, _upcast_body(envelope, data)):
            return "body", field
        self._note_answer(effector, request, envelope)
        return "", ""

    def _note_answer(self, effector: str, request: _Request, answer: Envelope) -> None:
        request.answers += 1
        if request.answers == answer.count:
            self._counts[effector].answered += 1
            index = self._index_of(answer.cause)
            if index is not None:
                self._answered[index] = True
            del self._open[answer.cause]

    def _index_of(self, id: str) -> int | None:
        short_id = _short_id(id)
        index = int(np.searchsorted(self._causes, np.uint64(short_id)))
        return index if index < len(self._causes) and int(self._causes[index]) == short_id else None

    def _note(self, effector: str, stored: Stored, exchange: str, cause: str, problem: str, field: str = "") -> None:
        self._effectors_seen.add(effector)
        self.lacks_requests = self.lacks_requests or problem == "no_request"
        self._counts[effector].wrong += 1
        if len(self._findings) < _MOST_FINDINGS and (not self._chosen or exchange in self._chosen):
            topic = stored.headers.get("ce-type", "")
            self._findings.append(EffectFinding(effector, stored.seq, topic, exchange, cause, problem, field))


def _effector_of(stored: Stored, effectors: Iterable[str]) -> str:
    entry = CATALOGUE.get(stored.headers.get("ce-type", ""))
    return entry.owner if entry is not None and entry.owner in effectors else ""


def _short_id(id: str) -> int:
    return int.from_bytes(blake2b(id.encode(), digest_size=8).digest())


def _upcast_body(envelope: Envelope, data: bytes) -> bytes:
    """Return a body upcast to today's version; unchanged, if that is not possible."""
    try:
        return upcast_body(envelope.topic, data, envelope.version)
    except VocabularyError:
        return data
