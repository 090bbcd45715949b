"""The simulated broker and the network before it."""

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from events.errors import Conflict, LogError, Unavailable, UnknownOutcome
from events.log import Append, Record
from schemas.subjects import Partitions
from tests.simulated.faults import CALM, Faults, Incident, Span
from tests.simulated.store import DEDUPE_WINDOW_NS, StreamStore

REQUEST_DEADLINE_S = 5.0
"""Seconds after which a client gives a request up."""

EXPIRY_S = 3.0
"""Seconds without a heartbeat after which a worker is no member any more."""


class Call:
    """A request on its way: what the broker is to do, and where the answer goes."""

    __slots__ = ("answer", "in_doubt", "operation", "sender_lives")

    def __init__(
        self,
        operation: Callable[[], Any],
        answer: asyncio.Future[Any],
        in_doubt: type[LogError],
        sender_lives: Callable[[], bool],
    ) -> None:
        self.operation = operation
        self.answer = answer
        self.in_doubt = in_doubt
        self.sender_lives = sender_lives


class SimulatedStream:
    """The broker of a simulated world: the stored log, snapshots and memberships, and all that chance decides.

    It outlives its clients. ``clock`` returns the server's Unix time in nanoseconds; delays are taken from the running
    event loop.

    Attributes:
        store: The log itself, for checks from outside the world: no fault touches it.
        incidents: How often each ``Incident`` happened.
        faults: In force now; may be replaced at any time, by ``CALM`` to let a world come to rest.
        up: Whether the broker runs.
    """

    def __init__(
        self,
        *,
        clock: Callable[[], int],
        seed: int = 0,
        faults: Faults = CALM,
        partitions: Partitions | None = None,
        dedupe_window_ns: int = DEDUPE_WINDOW_NS,
    ) -> None:
        self.store = StreamStore(dedupe_window_ns)
        self.incidents: Counter[Incident] = Counter()
        self.faults = faults
        self.partitions = partitions or Partitions()
        self.up = True
        self.snapshots: dict[str, list[bytes]] = {}
        self.snapshot_revisions: dict[str, int] = {}
        self.members: dict[str, tuple[bytes, int]] = {}
        self.clock = clock
        self._random = random.Random(f"faults {seed}")
        self._set_back_ns = 0
        self._run = 0
        self._calls: dict[Call, None] = {}
        self._held: list[Call] = []
        self._sleepers: dict[asyncio.Future[None], tuple[list[int], int]] = {}

    def stop(self) -> None:
        """Kill the broker: answers under way are lost, requests under way are lost or wait for its return."""
        if not self.up:
            return
        self.up = False
        self._run += 1
        self.incidents[Incident.OUTAGE] += 1
        for call in tuple(self._calls):
            # Some connections break at once, others are found dead at the deadline.
            if self.chance(0.5):
                self.give_up(call)

    def start(self) -> None:
        """Start the broker on what it had stored; the dedupe window is rebuilt from it."""
        if self.up:
            return
        self.up = True
        held, self._held = self._held, []
        self._random.shuffle(held)
        for call in held:
            self._later(self.drawn((0.0, 1.0)), self._arrive, call)
        self._wake(everybody=True)

    def chance(self, probability: float) -> bool:
        """Draw whether something of this probability happens; draws nothing when it cannot."""
        return probability > 0.0 and self._random.random() < probability

    def drawn(self, span: Span) -> float:
        """Draw seconds from a range."""
        low, high = span
        return low + (high - low) * self._random.random() if high > low else low

    def page(self) -> int:
        """Draw how many messages the next step of a reading yields at most."""
        low, high = self.faults.pages
        return self._random.randint(low, high) if high > low else low

    def pick(self, count: int) -> int:
        """Draw an index below ``count``."""
        return self._random.randrange(count)

    def delivery_delay(self) -> float:
        """Draw the seconds that the next messages take to a tail."""
        if self.chance(self.faults.slow_delivery):
            self.incidents[Incident.SLOW_DELIVERY] += 1
            return self.drawn(self.faults.slow_delivery_s)
        return self.drawn(self.faults.delivery_delay_s)

    def send(self, call: Call) -> None:
        """Put a request on the network."""
        self._calls[call] = None
        if not self.up and self.chance(0.5):
            self.incidents[Incident.UNREACHABLE] += 1
            fail(call.answer, Unavailable("the simulated broker is not connected"))
        elif self.chance(self.faults.lost_request):
            self.incidents[Incident.REQUEST_LOST] += 1
        elif self.chance(self.faults.late_request):
            self.incidents[Incident.REQUEST_LATE] += 1
            self._later(REQUEST_DEADLINE_S + self.drawn(self.faults.late_by_s), self._arrive, call)
        else:
            self._later(self.drawn(self.faults.request_delay_s), self._arrive, call)

    def forget(self, call: Call) -> None:
        """Stop minding a call whose caller waits no more; the request itself may still be on its way."""
        self._calls.pop(call, None)

    def give_up(self, call: Call) -> None:
        """End a caller's waiting in doubt."""
        if not call.answer.done():
            self.incidents[Incident.UNKNOWN_OUTCOME] += call.in_doubt is UnknownOutcome
            fail(call.answer, call.in_doubt("no answer of the simulated broker"))

    def append(self, appends: Sequence[Append], records: Sequence[Record]) -> int:
        """Serve an append at the broker: the operation of a call."""
        if self.chance(self.faults.clock_set_back):
            self.incidents[Incident.CLOCK_SET_BACK] += 1
            self._set_back_ns += round(self.drawn(self.faults.clock_set_back_s) * 1e9)
        known = self.store.duplicates
        try:
            seq = self.store.append(appends, records, self.clock() - self._set_back_ns)
        except Conflict:
            self.incidents[Incident.CONFLICT] += 1
            raise
        self.incidents[Incident.STORED if known == self.store.duplicates else Incident.DUPLICATE] += 1
        self._wake(everybody=False)
        return seq

    def sleep_until_more(self, filters: tuple[str, ...], after: int) -> asyncio.Future[None]:
        """Return a future that is done when a message after ``after`` may match, or the broker comes back."""
        sleeper: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._sleepers[sleeper] = (self.store.sequences(filters), after)
        return sleeper

    def _wake(self, everybody: bool) -> None:
        woken = [
            sleeper
            for sleeper, (found, after) in self._sleepers.items()
            if everybody or sleeper.done() or (found and found[-1] > after)
        ]
        for sleeper in woken:
            del self._sleepers[sleeper]
            if not sleeper.done():
                sleeper.set_result(None)

    def _arrive(self, call: Call) -> None:
        if self.up and self.chance(self.faults.outage):
            self.stop()
            self._later(self.drawn(self.faults.outage_s), self.start)
        if not self.up:
            self._hold(call)
            return
        if self.chance(self.faults.busy):
            self.incidents[Incident.BUSY] += 1
            self._answer(call, None, Unavailable("the simulated broker cannot serve now"))
            return
        before = len(self.store.messages)
        try:
            result, wrong = call.operation(), None
        except LogError as refusal:
            result, wrong = None, refusal
        if len(self.store.messages) > before and call.answer.done():
            in_time = Incident.STORED_IN_DOUBT if call.sender_lives() else Incident.STORED_AFTER_DEATH
            self.incidents[in_time] += 1
        self._answer(call, result, wrong)

    def _hold(self, call: Call) -> None:
        if self.chance(0.5):
            self.incidents[Incident.REQUEST_HELD] += 1
            self._held.append(call)
        else:
            self.incidents[Incident.REQUEST_LOST] += 1

    def _answer(self, call: Call, result: Any, wrong: LogError | None) -> None:
        if self.chance(self.faults.lost_reply):
            self.incidents[Incident.REPLY_LOST] += 1
            return
        delay = self.drawn(self.faults.reply_delay_s)
        if delay > 0.0:
            self._later(delay, self._deliver, call, self._run, result, wrong)
        else:
            self._deliver(call, self._run, result, wrong)

    def _deliver(self, call: Call, run: int, result: Any, wrong: LogError | None) -> None:
        if run != self._run:
            self.incidents[Incident.REPLY_LOST] += 1
        elif wrong is not None:
            fail(call.answer, wrong)
        elif not call.answer.done():
            call.answer.set_result(result)

    @staticmethod
    def _later(delay: float, callback: Callable[..., None], *args: Any) -> None:
        loop = asyncio.get_running_loop()
        if delay > 0.0:
            loop.call_later(delay, callback, *args)
        else:
            loop.call_soon(callback, *args)


def fail(answer: asyncio.Future[Any], wrong: BaseException) -> None:
    """End a future with an exception, unless it is done; that nobody looks is no error (a caller may have gone)."""
    if not answer.done():
        answer.set_exception(wrong)
        answer.exception()
