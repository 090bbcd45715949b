"""Decisions, days and cycles that state only what matters to a test."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from actors.regulator import ACTOR
from actors.regulator.agent_record import AgentRecord
from actors.regulator.decider import State, record_of
from actors.router.settings import RouterSettings, effective_weights
from schemas.event import Event, topic_of
from schemas.vocabulary.clock import ClockFired
from schemas.vocabulary.reflection import Dimension, ReflectionConcluded, Span
from schemas.vocabulary.regulator import CycleCompleted
from schemas.vocabulary.router import SAMPLE_SIGNALS, Feedback, FeedbackObserved, Mode, ModeSelected
from tests.actors.scenario import Address, Partition

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS

WEIGHTS = effective_weights(RouterSettings(profile="calibrated"))
"""Those of the source, which do not read what a text is."""

READING_WEIGHTS = effective_weights(RouterSettings())

HEALTHY: Mapping[Mode, int] = {"RESPOND": 62, "CLARIFY": 14, "ACT": 12, "ACKNOWLEDGE": 11, "IGNORE": 1}
"""Decisions by mode under which nothing presses."""


def decision(mode: Mode = "RESPOND", *, ambiguous: bool = False, **changes: Any) -> ModeSelected:
    """Return a decision for a mode; ``weights`` replace single ones."""
    weights = {**WEIGHTS, **changes.pop("weights", {})}
    selected = ModeSelected(
        conversation_topic="travel",
        selected_mode=mode,
        terminal_mode=None if mode == "ACT" else mode,
        router_confidence=0.5,
        scores={"RESPOND": 0.5, "CLARIFY": 0.25},
        tiebreaker_used=False,
        tiebreaker_candidates=("RESPOND", "CLARIFY") if ambiguous else (),
        tiebreaker_outcome="higher_score" if ambiguous else "",
        margin=0.5,
        effective_margin=0.16,
        signals=SAMPLE_SIGNALS,
        weights=weights,
        previous_mode=None,
        reason="highest_score",
    )
    return msgspec.structs.replace(selected, **changes)


def feedback(kind: Feedback) -> FeedbackObserved:
    """Return what a later input says of a decision."""
    return FeedbackObserved(of_exchange="earlier", mode="RESPOND", feedback=kind, signal="repeated")


def concluded(
    disagreement: float, dominant: Dimension | None, share: float = 0.5, *, pressure: bool = True
) -> ReflectionConcluded:
    """Return a conclusion of reflection."""
    return ReflectionConcluded(
        insights=(),
        counted=20,
        disagreement=disagreement,
        dominant=dominant,
        dominant_share=share,
        pressure=pressure,
        wake_after_ms=0,
    )


def span(start_ns: int, disagreement: float, dimension: Dimension = "intent_clarity", *, counted: int = 20) -> Span:
    """Return what so many opinions on decisions from a time on come to, all the disagreeing ones of one dimension."""
    disagreeing = round(disagreement * counted)
    return Span(start_ns=start_ns, counted=counted, disagree={dimension: disagreeing} if disagreeing else {})


class Regulated:
    """One agent under the regulator, whose router takes up every offset at once."""

    def __init__(self, settings: msgspec.Struct | None = None, agent: str = "agent") -> None:
        self.partition = Partition(ACTOR)
        self.here = Address(agent=agent)
        self.events: list[tuple[int, Event]] = []
        if settings is not None:
            self.partition.configure(settings)

    @property
    def record(self) -> AgentRecord:
        """What the regulator knows of the agent."""
        state = self.partition.state
        assert isinstance(state, State)
        return record_of(state, self.here.agent)

    def decide(
        self,
        modes: Mapping[Mode, int] = HEALTHY,
        *,
        ambiguous: int = 0,
        feedbacks: Iterable[Feedback] = (),
        weights: Mapping[str, float] | None = None,
    ) -> list[Event]:
        """Let decisions be made now, the first ``ambiguous`` of them close ones; return what they led to."""
        in_force = dict(WEIGHTS if weights is None else weights)
        for name, offset in self.record.offsets.items():
            if name in in_force:  # else it waits for the profile that has it
                in_force[name] = round(in_force[name] + offset, 6)
        led_to: list[Event] = []
        kinds: list[Mode] = [mode for mode, count in modes.items() for _ in range(count)]
        for place, mode in enumerate(kinds):
            led_to += self.hear(decision(mode, ambiguous=place < ambiguous, weights=in_force))
        for kind in feedbacks:
            led_to += self.hear(feedback(kind))
        return led_to

    def hear(self, event: Event, *, after_ms: int = 0) -> list[Event]:
        """Deliver an event; return what it led to."""
        led_to = self.partition.when(event, self.here, after_ms=after_ms)
        self.events += [(self.partition.now_ns, each) for each in led_to]
        return led_to

    def cycle(self, *, after_ms: int = DAY_MS // 2) -> list[Event]:
        """Let the clock fire after a while; return what the cycle came to."""
        return self.hear(ClockFired(set_by=topic_of(CycleCompleted), due_ns=0), after_ms=after_ms)

    def day(self, modes: Mapping[Mode, int] = HEALTHY, **others: Any) -> list[Event]:
        """Let half a day pass, decisions be made, and another half until the cycle."""
        self.partition.now_ns += DAY_MS // 2 * 1_000_000
        self.decide(modes, **others)
        return self.cycle()


def only(kind: type[Any], events: Iterable[Event]) -> Any:
    """Return the one event of a kind."""
    [found] = [event for event in events if isinstance(event, kind)]
    return found
