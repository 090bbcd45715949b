"""The regulator's state machine: when cycles are due, and what is counted between them.

In a cycle it looks at an agent's latest routing decisions and changes a weight of the router a little, or undoes a
change.

router.mode_selected      the decision is counted, and its weights are those in force; -> regulator.scheduled if no
                          cycle is scheduled, with the offsets, since a router may have dropped an agent that was idle
                          for long
router.feedback_observed  a misroute (a decision that feedback has shown to be wrong) is counted
reflection.concluded      kept as the latest second opinion (a model's, on how past inputs were routed)
clock.fired (a timer)     -> the agent's cycle: regulator.confirmed, .reverted or .adjusted, and .cycle_completed
regulator.*               changes, judgements and schedules are applied to the state
regulator.configured      the new settings apply

Each cycle schedules the next one. So after a long standstill of the system one cycle is due, not many. A cycle without
any decision in its window schedules none; the agent's next decision does.
"""

import msgspec

from actors.regulator.agent_record import AgentRecord
from actors.regulator.control_loop import (
    cycle_events,
    slice_width_ns,
    with_adjustment,
    with_confirmation,
    with_cycle,
    with_reversion,
)
from actors.regulator.decision_window import MISROUTES, Slices, mode_of, with_decision, with_misroute, within
from actors.regulator.pressures import Opinion
from actors.regulator.settings import RegulatorSettings
from schemas.actor import Emission, Message
from schemas.event import Event, topic_of
from schemas.persistent import Map, with_entry
from schemas.vocabulary.clock import ClockFired
from schemas.vocabulary.reflection import ReflectionConcluded
from schemas.vocabulary.regulator import (
    BOUNDS,
    FLOORS,
    Adjusted,
    Confirmed,
    CycleCompleted,
    RegulatorScheduled,
    Reverted,
)
from schemas.vocabulary.router import FeedbackObserved, ModeSelected

_TIMER_EVENTS = frozenset((topic_of(RegulatorScheduled), topic_of(CycleCompleted)))
_KEPT_WEIGHTS = (*BOUNDS, *FLOORS.values())
"""The weights that regulation may change, and those that limit them."""

_NS_PER_MS = 1_000_000


class State(msgspec.Struct, frozen=True):
    """A partition: the settings, and in ``loops`` the record of each agent."""

    settings: RegulatorSettings = RegulatorSettings()
    loops: Map[str, AgentRecord] = Map()


def decide(state: State, message: Message) -> tuple[Emission, ...]:
    """Return the first schedule of an agent, or its cycle when the clock has fired."""
    record, settings = record_of(state, message.agent), state.settings
    match message.event:
        case ModeSelected() as selected if not record.scheduled and mode_of(selected) is not None:
            offsets = dict(sorted(record.offsets.items()))
            return _without_session((RegulatorScheduled(wake_after_ms=settings.period_ms, offsets=offsets),))
        case ClockFired(set_by=set_by) if set_by in _TIMER_EVENTS and record.scheduled:
            return _without_session(cycle_events(record, message.time_ns, settings))
    return ()


def evolve(state: State, message: Message) -> State:
    """Fold a message into the state; never raises."""
    record = record_of(state, message.agent)
    after = _evolved(record, message, state.settings)
    if after is record:
        return state
    seen = msgspec.structs.replace(after, seen_ns=message.time_ns)
    loops = with_entry(state.loops, message.agent, seen, state.settings.agents, _keep_rank)
    return msgspec.structs.replace(state, loops=loops)


def record_of(state: State, agent: str) -> AgentRecord:
    """Return what is known of an agent; an empty record for one without decisions."""
    return state.loops.get(agent) or AgentRecord()


def _keep_rank(record: AgentRecord) -> tuple[bool, int]:
    """Return how long an agent is kept when there are too many: the lowest are dropped first."""
    # When there are too many agents, those with changed weights are dropped last: what was tried would be lost.
    return bool(record.offsets or record.trials), record.seen_ns


def _evolved(record: AgentRecord, message: Message, settings: RegulatorSettings) -> AgentRecord:
    now_ns = message.time_ns
    match message.event:
        case ModeSelected() as selected:
            return _with_decision(record, selected, now_ns, settings)
        case FeedbackObserved(feedback=feedback):
            kind = next((each for each in MISROUTES if each == feedback), None)
            if kind is None:
                return record
            slices = with_misroute(record.slices, kind, now_ns, slice_width_ns(settings))
            return msgspec.structs.replace(record, slices=_in_window(slices, now_ns, settings))
        case ReflectionConcluded() as concluded:
            return msgspec.structs.replace(record, opinion=_opinion(concluded, now_ns))
        case RegulatorScheduled():
            return msgspec.structs.replace(record, scheduled=True)
        case CycleCompleted() as event:
            record = msgspec.structs.replace(record, slices=_in_window(record.slices, now_ns, settings))
            return with_cycle(record, event, now_ns)
        case Adjusted() as event:
            return with_adjustment(record, event, now_ns, settings)
        case Reverted() as event:
            return with_reversion(record, event, now_ns, settings)
        case Confirmed() as event:
            return with_confirmation(record, event)
    return record


def _with_decision(
    record: AgentRecord, selected: ModeSelected, now_ns: int, settings: RegulatorSettings
) -> AgentRecord:
    mode = mode_of(selected)
    if mode is None:
        return record
    slices = with_decision(record.slices, mode, selected, now_ns, slice_width_ns(settings))
    weights = Map({name: selected.weights[name] for name in _KEPT_WEIGHTS if name in selected.weights})
    return msgspec.structs.replace(
        record,
        slices=_in_window(slices, now_ns, settings),
        weights=record.weights if weights == record.weights else weights,
        in_force=None if selected.regulated is None else Map(selected.regulated),
    )


def _in_window(slices: Slices, now_ns: int, settings: RegulatorSettings) -> Slices:
    return within(slices, now_ns, settings.window_ms * _NS_PER_MS, slice_width_ns(settings))


def _opinion(concluded: ReflectionConcluded, now_ns: int) -> Opinion:
    return Opinion(
        now_ns,
        concluded.disagreement,
        concluded.dominant,
        concluded.dominant_share,
        concluded.pressure,
        concluded.spans,
    )


def _without_session(events: tuple[Event, ...]) -> tuple[Emission, ...]:
    # These events are about the agent: they have no session, and are not part of the exchange that caused them.
    return tuple(Emission(event, session="", exchange="") for event in events)
