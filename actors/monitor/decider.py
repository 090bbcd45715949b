"""The monitor's state machine: an agent's latest routing decisions, and what was reported of them.

A decision chooses a mode of answering, such as RESPOND or CLARIFY; a misroute is one that the next input shows to be
wrong.

router.mode_selected      one more decision  } -> monitor.mode_out_of_range, .mode_red_flag, .mode_in_range,
router.feedback_observed  perhaps a misroute }    .rate_exceeded and .rate_recovered, each on a change
monitor.*                 what has been reported as unhealthy
monitor.configured        the settings from here on
"""

import msgspec

from actors.monitor.decision_window import Misroute, Window, decision_of, with_decision, with_misroute
from actors.monitor.hysteresis import Condition, judge_modes, judge_rates, with_event
from actors.monitor.settings import MonitorSettings
from schemas.actor import Emission, Message
from schemas.event import Event
from schemas.persistent import Map, with_entry
from schemas.vocabulary.monitor import ModeInRange, ModeOutOfRange, ModeRedFlag, Rate, RateExceeded, RateRecovered
from schemas.vocabulary.router import FeedbackObserved, Mode, ModeSelected

_NS_PER_MS = 1_000_000


class AgentWindow(msgspec.Struct, frozen=True):
    """What is kept of an agent: its latest decisions, its unhealthy modes, and its exceeded rates."""

    window: Window = Window()
    conditions: Map[Mode, Condition] = Map()
    exceeded: Map[Rate, bool] = Map()


class State(msgspec.Struct, frozen=True):
    """A partition: the settings, and what is known of each agent."""

    settings: MonitorSettings = MonitorSettings()
    watches: Map[str, AgentWindow] = Map()


def decide(state: State, message: Message) -> tuple[Emission, ...]:
    """Return the reports that a decision, or feedback on one, leads to."""
    kept, settings = kept_of(state, message.agent), state.settings
    window = _windowed(kept.window, message, settings)
    if window is kept.window or len(window.decisions) < settings.decisions_needed:
        return ()
    events: tuple[Event, ...] = (
        *judge_modes(window, kept.conditions, settings),
        *judge_rates(window, kept.exceeded, settings),
    )
    # These events are about the agent: they have no session, and are not part of the exchange that caused them.
    return tuple(Emission(event, session="", exchange="") for event in events)


def evolve(state: State, message: Message) -> State:
    """Fold a message into the state; never raises."""
    event = message.event
    kept = kept_of(state, message.agent)
    match event:
        case ModeSelected() | FeedbackObserved():
            window = _windowed(kept.window, message, state.settings)
            after = kept if window is kept.window else AgentWindow(window, kept.conditions, kept.exceeded)
        case ModeOutOfRange() | ModeRedFlag() | ModeInRange():
            after = AgentWindow(kept.window, with_event(kept.conditions, event), kept.exceeded)
        case RateExceeded(rate=rate):
            after = AgentWindow(kept.window, kept.conditions, kept.exceeded.set(rate, True))
        case RateRecovered(rate=rate) if rate in kept.exceeded:
            after = AgentWindow(kept.window, kept.conditions, kept.exceeded.delete(rate))
        case _:
            return state
    if after is kept:
        return state
    return State(state.settings, with_entry(state.watches, message.agent, after, state.settings.agents, _keep_rank))


def kept_of(state: State, agent: str) -> AgentWindow:
    """Return what is kept of an agent; an empty value for one without decisions."""
    return state.watches.get(agent) or AgentWindow()


def _keep_rank(kept: AgentWindow) -> tuple[bool, int]:
    """Return how long an agent is kept when there are too many: the lowest are dropped first."""
    # Unhealthy agents are dropped last: nobody would report the recovery of one that is dropped.
    decided_ns = kept.window.decisions[-1].at_ns if kept.window.decisions else 0
    return bool(kept.conditions or kept.exceeded), decided_ns


def _windowed(window: Window, message: Message, settings: MonitorSettings) -> Window:
    match message.event:
        case ModeSelected() as selected:
            decision = decision_of(selected, message.time_ns)
            if decision is not None:
                return with_decision(window, decision, settings.decisions, settings.window_ms * _NS_PER_MS)
        case FeedbackObserved(feedback=feedback) if feedback != "correct_route" and window.decisions:
            return with_misroute(window, Misroute(message.time_ns, feedback), len(window.decisions))
    return window
