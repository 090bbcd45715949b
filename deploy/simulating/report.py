"""The report of a simulation: a table by day, and each change of a weight with its metric before and after."""

from collections import Counter
from collections.abc import Iterable, Iterator

import msgspec

from actors.router.settings import RouterSettings, effective_weights
from deploy.simulating.planted_faults import PLANTS
from deploy.simulating.simulation import DAY_NS, PROFILE, START_NS, Simulation
from schemas.actor import Message
from schemas.vocabulary.monitor import ModeInRange, ModeOutOfRange, ModeRedFlag
from schemas.vocabulary.regulator import BOUNDS, Adjusted, Confirmed, Reverted
from schemas.vocabulary.router import FeedbackObserved, Mode, ModeSelected

MODES: tuple[Mode, ...] = ("RESPOND", "CLARIFY", "ACT", "ACKNOWLEDGE", "IGNORE")
"""Every mode, in the order of the table."""


class Day(msgspec.Struct, frozen=True, kw_only=True):
    """A day: the number of its decisions, the shares of modes and misroutes among them, and the state at its end.

    All shares are of the day's decisions. ``ambiguous``: the scores of two modes were too close. ``misrouted``: a
    person's reaction showed a wrong mode; in ``missed_clarify`` and ``missed_act`` of these, CLARIFY or ACT would have
    been right.

    ``weights`` are the regulated weights in force that differ from their defaults. ``unhealthy`` are the modes that the
    monitor had reported as out of range, and not yet as back, with ``!`` for a red flag.
    """

    day: int
    decisions: int
    shares: dict[Mode, float]
    ambiguous: float
    misrouted: float
    missed_clarify: float
    missed_act: float
    weights: dict[str, float]
    unhealthy: tuple[str, ...]


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """A change of a weight by the regulator, or its confirmation of one; ``day`` counts from the beginning, in days.

    ``what`` says in words what happened, such as ``adjusted``, or ``faded`` for a step back to the weight's own value.
    ``pressure`` names the fault of the routing that led to it; ``metric_before`` and ``metric_after`` measure that
    fault, and are to fall. ``planted``: the simulation made it, not the regulator.
    """

    day: float
    what: str
    parameter: str
    before: float | None
    after: float | None
    pressure: str
    metric_before: float
    metric_after: float | None
    planted: bool = False


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """The report of a simulation. ``digest`` is a hash of all events' bytes; ``states`` are hashes of the last states.

    ``planted_on`` is the day on which the fault began, None without a fault, and ``gone_on`` the day on which it was
    removed again.
    """

    days: int
    seed: int
    exchanges_per_day: int
    plant: str
    meaning: str
    planted_on: int | None
    gone_on: int | None = None
    events: int
    digest: str
    states: dict[str, str]
    table: tuple[Day, ...]
    changes: tuple[Change, ...]


def report_of(simulation: Simulation) -> Report:
    """Return the report of a simulation."""
    plant = PLANTS[simulation.plant]
    planted_on = plant.planted_on
    planted_ns = START_NS + plant.wrong.day * DAY_NS if plant.wrong is not None else -1
    return Report(
        days=simulation.days,
        seed=simulation.seed,
        exchanges_per_day=simulation.exchanges_per_day,
        plant=simulation.plant,
        meaning=plant.meaning,
        planted_on=planted_on if planted_on is not None and planted_on < simulation.days else None,
        gone_on=simulation.gone_on
        if plant.weights and simulation.gone_on is not None and simulation.gone_on < simulation.days
        else None,
        events=simulation.events,
        digest=simulation.digest,
        states=simulation.states,
        table=tuple(_table(simulation.messages, simulation.days)),
        changes=tuple(_changes(simulation.messages, planted_ns)),
    )


def _table(messages: Iterable[Message], days: int) -> Iterator[Day]:
    default = effective_weights(RouterSettings(profile=PROFILE))
    in_force = dict(default)
    unhealthy: dict[Mode, str] = {}
    rest = iter(messages)
    message = next(rest, None)
    for day in range(days):
        counts: Counter[str] = Counter()
        while message is not None and message.time_ns < START_NS + (day + 1) * DAY_NS:
            match message.event:
                case ModeSelected(weights=weights):
                    in_force = weights
                    _count(counts, message.event)
                case FeedbackObserved(feedback=feedback):
                    counts[feedback] += 1
                case ModeOutOfRange(mode=mode):
                    unhealthy[mode] = mode
                case ModeRedFlag(mode=mode):
                    unhealthy[mode] = f"{mode}!"
                case ModeInRange(mode=mode):
                    unhealthy.pop(mode, None)
            message = next(rest, None)
        changed = {name: in_force[name] for name in BOUNDS if name in default and in_force[name] != default[name]}
        yield _day(day, counts, changed, unhealthy)


def _count(counts: Counter[str], selected: ModeSelected) -> None:
    if not selected.rerouted:
        counts["decisions"] += 1
        counts[selected.terminal_mode or "ACT"] += 1
        counts["ambiguous"] += bool(selected.tiebreaker_candidates)


def _day(day: int, counts: Counter[str], weights: dict[str, float], unhealthy: dict[Mode, str]) -> Day:
    def share(*names: str) -> float:
        return round(sum(counts[name] for name in names) / max(counts["decisions"], 1), 6)

    return Day(
        day=day,
        decisions=counts["decisions"],
        shares={mode: share(mode) for mode in MODES},
        ambiguous=share("ambiguous"),
        misrouted=share("missed_clarify", "missed_act", "under_engagement"),
        missed_clarify=share("missed_clarify"),
        missed_act=share("missed_act"),
        weights=weights,
        unhealthy=tuple(unhealthy[mode] for mode in MODES if mode in unhealthy),
    )


def _changes(messages: Iterable[Message], planted_ns: int) -> Iterator[Change]:
    for message in messages:
        day = round((message.time_ns - START_NS) / DAY_NS, 2)
        match message.event:
            case Adjusted() as event:
                yield Change(
                    day=day,
                    what="faded" if event.fading else "adjusted" if event.step == 1 else f"adjusted, step {event.step}",
                    parameter=event.parameter,
                    before=event.before,
                    after=event.after,
                    pressure=event.pressure,
                    metric_before=event.metric_before,
                    metric_after=None,
                    planted=message.time_ns == planted_ns,
                )
            case Reverted() as event:
                yield Change(
                    day=day,
                    what=f"reverted: {event.verdict.replace('_', ' ')}",
                    parameter=event.parameter,
                    before=event.before,
                    after=event.after,
                    pressure=event.pressure,
                    metric_before=event.metric_before,
                    metric_after=event.metric_after,
                )
            case Confirmed() as event:
                yield Change(
                    day=day,
                    what="confirmed fading" if event.fading else "confirmed",
                    parameter=event.parameter,
                    before=None,
                    after=None,
                    pressure=event.pressure,
                    metric_before=event.metric_before,
                    metric_after=event.metric_after,
                )
