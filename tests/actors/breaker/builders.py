"""A session in talk with the breaker, stating only the numbers that matter to a test."""

from typing import Any

import msgspec

from actors.breaker import ACTOR
from actors.breaker.decider import machine_of
from actors.breaker.machine import Machine
from actors.breaker.settings import BreakerSettings
from schemas.actor import Message
from schemas.catalogue import CATALOGUE
from schemas.event import Event, topic_of
from schemas.vocabulary.appraisal import AppraisalCompleted, LayerTrust
from schemas.vocabulary.clock import ClockFired
from schemas.vocabulary.operator import BreakerRecoveryOrdered, BreakerResetOrdered
from schemas.vocabulary.responder import Action, ResponseEmitted, Stage
from tests.actors.scenario import START_NS, Address, Partition

SHORT, LONG = 28, 5001
HOUR_MS = 3_600_000
WARNINGS = ("warned", "calmed")
"""What is told beside what became of an input; tests of warnings look at ``Talk.warnings``."""

GOOD, VIOLATING = 0.05, 0.75

_APPRAISED: Any = CATALOGUE[topic_of(AppraisalCompleted)].sample
_ENDED: Any = CATALOGUE[topic_of(ResponseEmitted)].sample


def layer(falsehood: float, truth: float | None = None, characters: int = SHORT, name: str = "text") -> LayerTrust:
    """Return a layer's appraisal; without ``truth`` its balance is even."""
    truth = falsehood if truth is None else truth
    return LayerTrust(layer=name, characters=characters, truth=truth, indeterminacy=0.1, falsehood=falsehood)


def appraised(*layers: LayerTrust) -> AppraisalCompleted:
    event: AppraisalCompleted = msgspec.structs.replace(_APPRAISED, layers=layers)
    return event


def ended(stage: Stage = "REFLEX", action: Action = "BLOCKED") -> ResponseEmitted:
    event: ResponseEmitted = msgspec.structs.replace(_ENDED, stage=stage, action=action, reason="jailbreak")
    return event


class Talk:
    """One session of one partition; every input is an exchange of its own."""

    def __init__(self, *falsehoods: float, settings: BreakerSettings | None = None, session: str = "session") -> None:
        self.partition = Partition(ACTOR)
        if settings is not None:
            self.partition.configure(settings)
        self.session = session
        self.exchanges = 0
        self.said: list[Event] = []
        for falsehood in falsehoods:
            self.say(falsehood)

    def address(self, exchange: str | None = None) -> Address:
        """Return the address of an exchange; by default of the latest."""
        return Address("agent", self.session, f"exchange-{self.exchanges}" if exchange is None else exchange)

    def say(
        self, falsehood: float, truth: float | None = None, characters: int = SHORT, after_ms: int = 0
    ) -> list[str]:
        """Have an input of one layer appraised; return the names of the events it led to."""
        return self.hear(appraised(layer(falsehood, truth, characters)), after_ms=after_ms)

    def hear(self, appraisal: AppraisalCompleted, after_ms: int = 0) -> list[str]:
        """Have an input appraised."""
        self.exchanges += 1
        return self._take(self.partition.when(appraisal, self.address(), after_ms=after_ms))

    def end(self, end: ResponseEmitted | None = None, exchange: str | None = None) -> list[str]:
        """End an exchange, by default the latest, by default as refused by reflex."""
        return self._take(self.partition.when(end or ended(), self.address(exchange)))

    def wake(self, set_by: str = "forged_id.breaker.tripped", after_ms: int = 15 * 60_000) -> list[str]:
        """Let a timer go off."""
        fired = ClockFired(set_by=set_by, due_ns=START_NS)
        return self._take(self.partition.when(fired, self.address(""), after_ms=after_ms))

    def calm(self, after_ms: int = 24 * HOUR_MS, early_ns: int = 0) -> list[str]:
        """Let the timer of the latest attempt go off, or one that was due a little earlier."""
        fired = ClockFired(set_by="forged_id.breaker.recovery_started", due_ns=self.machine.calm_ns - early_ns)
        return self._take(self.partition.when(fired, self.address(""), after_ms=after_ms))

    def reset(self, by: str = "ann", why: str = "false alarm") -> list[str]:
        """Have an operator reset the session."""
        return self._take(self.partition.when(BreakerResetOrdered(by=by, why=why), self.address("")))

    def order_recovery(self) -> list[str]:
        """Have an operator order a recovery attempt."""
        return self._take(self.partition.when(BreakerRecoveryOrdered(by="ann", why="reviewed"), self.address("")))

    @property
    def machine(self) -> Machine:
        """Where the session stands."""
        here = Message(_ENDED, 0, "", self.partition.now_ns, "agent", self.session)
        return machine_of(self.partition.state, here)

    @property
    def last(self) -> Any:
        """The latest event."""
        return self.said[-1]

    @property
    def warnings(self) -> list[str]:
        """What was told of dangers, oldest first: ``calmed``, or what was warned of."""
        return [getattr(event, "danger", "calmed") for event in self.said if name_of(event) in WARNINGS]

    def _take(self, events: list[Event]) -> list[str]:
        self.said += events
        return [name_of(event) for event in events if name_of(event) not in WARNINGS]


def name_of(event: Event) -> str:
    """Return the last token of an event's subject."""
    return topic_of(event).rpartition(".")[2]


def terminated(session: str = "session") -> Talk:
    """Return a session that three violations have ended."""
    talk = Talk(VIOLATING, VIOLATING, VIOLATING, session=session)
    assert talk.machine.state == "TERMINATED"
    return talk
