"""Running a simulation: day after day of conversations with one agent, and the events that they lead to."""

from collections.abc import Callable
from random import Random

import msgspec

from actors.registry import ACTORS
from actors.regulator.control_loop import counts_in_window
from actors.regulator.decider import record_of
from actors.regulator.pressures import metric_of
from actors.router.settings import Profile, RouterSettings
from deploy.simulating.planted_faults import PLANTS, WrongAdjustment
from deploy.simulating.simulated_people import Population, Utterance, reaction, session_of, utterance_of
from deploy.simulating.world import Address, World
from schemas.actor import Message
from schemas.catalogue import owned_by
from schemas.event import Event
from schemas.identity import content_hash, event_id
from schemas.persistent import state_hash
from schemas.vocabulary.act import ActActionsRequested
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.memory import ActionResult, MemoryActionsAnswered, MemoryRecalled, Recollection
from schemas.vocabulary.regulator import Adjusted
from schemas.vocabulary.responder import ResponseEmitted
from schemas.vocabulary.router import FeedbackObserved, Mode, ModeSelected, RouterConfigured

AGENT = "agent"
"""The name of the one agent that people talk to."""

DAY_NS = 24 * 3600 * 1_000_000_000
START_NS = 1_704_067_200 * 1_000_000_000
"""Midnight of 1 January 2024, UTC: when simulations begin."""

PROFILE: Profile = "calibrated"
"""The router's profile of weights, which planted faults change. The default one would need appraisal to take part."""

DECIDERS = ("act", "clock", "monitor", "regulator", "responder", "router")
"""The actors that take part. Guards let everything pass here, memory is scripted, and no model is attached."""

ROUTING_EVENTS: tuple[type[Event], ...] = (
    ModeSelected,
    FeedbackObserved,
    *(entry.event for actor in ("monitor", "regulator") for entry in owned_by(actor)),
)
"""The events about an agent's routing, which a simulation keeps for its report."""

_FIRST_HOUR = 7
_HOURS = 15
"""The hour of the day at which people begin to talk, and for how many hours they do."""

_PAUSE_S = (20, 90)
"""The least and most seconds between an answer and the next utterance."""

_NS_PER_S = 1_000_000_000
_RECOLLECTION = Recollection(id="gist:1", layer="gist", text="what was said of it before", energy=0.8, tokens=6)


class Simulation(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of a simulation.

    ``plant`` names the planted fault; from day ``gone_on`` on it is removed again (None: never). ``messages`` are those
    about routing, in order, of ``events`` messages in all. ``digest`` is a hash of the bytes of all messages;
    ``states`` has the hash of each actor's last state.
    """

    days: int
    seed: int
    exchanges_per_day: int
    plant: str
    gone_on: int | None = None
    messages: list[Message]
    events: int
    digest: str
    states: dict[str, str]


class _SimulatedTalk:
    """One simulated world with its people."""

    def __init__(self, population: Population, seed: int) -> None:
        self.world = World([ACTORS[name] for name in DECIDERS], START_NS)
        self.world.on_message = self._on_message
        self.random = Random(seed)
        self.population = population
        self.routing_messages: list[Message] = []
        self.latest_end: ResponseEmitted | None = None
        self.open_request: Message | None = None
        self.exchanges = 0
        self.set_weights({})

    def _on_message(self, message: Message) -> None:
        if isinstance(message.event, ResponseEmitted):
            self.latest_end = message.event
        if isinstance(message.event, ActActionsRequested):
            self.open_request = message
        if isinstance(message.event, ROUTING_EVENTS):
            self.routing_messages.append(message)

    def ask(self, utterance: Utterance, session: str) -> tuple[Mode | None, Mode | None]:
        """Send an utterance; return the mode of the answer, and the router's first choice."""
        self.exchanges += 1
        exchange = event_id(session, "people", self.exchanges)
        address = Address(AGENT, session, exchange)
        self.latest_end = None
        self.world.send(InputReceived(text=utterance.text), address)
        self.world.send(MemoryRecalled(familiarity=utterance.familiarity, recollections=()), address)
        while self.open_request is not None:
            request, self.open_request = self.open_request, None
            self.world.send(_answer(request), address)
        self.world.advance(self.world.now_ns + self.random.randint(*_PAUSE_S) * _NS_PER_S)
        return (None, None) if self.latest_end is None else (self.latest_end.mode, self.latest_end.first_mode)

    def hold_session(self, name: str) -> None:
        """Hold a session: one need after another, and between them people's reactions to the answers."""
        before: Utterance | None = None
        answered: tuple[Mode | None, Mode | None] = (None, None)
        for need in session_of(self.population, self.random):
            if before is not None:
                reply = reaction(before, *answered, self.population, self.random)
                if reply is not None:
                    self.ask(reply, name)
            before = utterance_of(need, self.random)
            answered = self.ask(before, name)

    def run_day(self, number: int, exchanges: int) -> None:
        """Run a day of sessions at random hours; one that would overlap with another begins when that one ends."""
        midnight_ns = START_NS + number * DAY_NS
        sessions = max(1, round(exchanges / self.population.mean_length))
        for index, start in enumerate(sorted(self.random.random() for _ in range(sessions))):
            begins_ns = midnight_ns + int((_FIRST_HOUR + _HOURS * start) * 3600) * _NS_PER_S
            self.world.advance(max(begins_ns, self.world.now_ns))
            self.hold_session(f"day {number}, session {index}")
        self.world.advance(midnight_ns + DAY_NS)

    def set_weights(self, weights: dict[str, float]) -> None:
        """Configure the router with other weights, as an operator might."""
        document = msgspec.to_builtins(RouterSettings(profile=PROFILE, weights=weights))
        configured = RouterConfigured(
            settings=document, settings_hash=content_hash(document), behaviour=ACTORS["router"].behaviour
        )
        self.world.store_as("router", configured, Address(""))

    def adjust_wrongly(self, wrong: WrongAdjustment) -> None:
        """Record the wrong adjustment, as if the regulator had made it."""
        state = self.world.states["regulator"]
        record, settings = record_of(state, AGENT), state.settings
        metric = metric_of(wrong.pressure, counts_in_window(record, self.world.now_ns, settings), settings)
        before = record.weights[wrong.parameter]
        adjusted = Adjusted(
            parameter=wrong.parameter,
            before=before,
            after=round(before + wrong.delta, 6),
            delta=wrong.delta,
            requested=wrong.delta,
            offset=round(record.offsets.get(wrong.parameter, 0.0) + wrong.delta, 6),
            pressure=wrong.pressure,
            metric_before=0.0 if metric is None else metric,
        )
        self.world.store_as("regulator", adjusted, Address(AGENT))


def _answer(request: Message) -> MemoryActionsAnswered:
    """Return memory's answer to the actions of an ACT iteration: it finds something."""
    requested = request.event
    assert isinstance(requested, ActActionsRequested)
    results = tuple(
        ActionResult(index=index, skill=action.skill, ok=True, recollections=(_RECOLLECTION,))
        for index, action in enumerate(requested.actions)
    )
    return MemoryActionsAnswered(request=request.id, iteration=requested.iteration, results=results)


def simulate_days(
    *,
    days: int,
    seed: int,
    exchanges_per_day: int,
    plant: str,
    gone_on: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> Simulation:
    """Simulate days of about ``exchanges_per_day`` exchanges each, with a planted fault or none.

    On the day ``gone_on``, the wrong weights are removed again. ``progress`` is called at the end of each day with the
    number of days simulated so far.

    Raises:
        KeyError: there is no such planted fault.
    """
    fault = PLANTS[plant]
    talk = _SimulatedTalk(Population(), seed)
    for number in range(days):
        if fault.weights and number == fault.day:
            talk.set_weights(fault.weights)
        if fault.weights and number == gone_on:
            talk.set_weights({})
        if fault.wrong is not None and number == fault.wrong.day:
            talk.adjust_wrongly(fault.wrong)
        talk.run_day(number, exchanges_per_day)
        if progress is not None:
            progress(number + 1)
    return Simulation(
        days=days,
        seed=seed,
        exchanges_per_day=exchanges_per_day,
        plant=plant,
        gone_on=gone_on,
        messages=talk.routing_messages,
        events=talk.world.seq,
        digest=talk.world.digest,
        states={name: state_hash(state) for name, state in talk.world.states.items()},
    )
