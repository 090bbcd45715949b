"""``neuraxis regulator``."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from deploy.cli import state_output
from deploy.cli.command_types import Commands
from deploy.cli.options import Target, examples, json_option, last_option, target_options
from deploy.cli.rendering.layout.counted_nouns import counted
from deploy.cli.replaying.source_opening import log_option, open_source
from schemas.intake.timestamps import rfc3339

if TYPE_CHECKING:
    from actors.regulator.decider import State
    from events.decoding import Recorded
    from events.replay.sources import Source

_NS_PER_MS = 1_000_000


class WeightShown(msgspec.Struct, frozen=True, kw_only=True):
    """A weight that the regulator has changed.

    ``value`` is the weight in force, between ``least`` and ``most``; ``offset`` sums up all changes, and ``trial`` is
    the part of it that is not judged yet. The weight is not changed again before ``next_change``, and that change is
    multiplied by ``factor``.
    """

    weight: str
    value: float | None
    least: float
    most: float
    offset: float
    trial: float
    next_change: str
    factor: float


class EventShown(msgspec.Struct, frozen=True, kw_only=True):
    """One of the regulator's or the monitor's events about the agent; ``what`` says in a line what happened."""

    seq: int
    time: str
    event: str
    what: str


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """The state of an agent's regulation after the last event; events are oldest first.

    ``decisions`` counts the latest decisions, in which ``pressures`` (faults of the routing, in words) are found.
    ``cycle_due``: a time is set at which the regulator looks at decisions next.
    """

    agent: str
    as_of: str
    decisions: int
    cycle_due: bool
    pressures: tuple[str, ...]
    weights: tuple[WeightShown, ...]
    events: tuple[EventShown, ...]


@click.group(
    cls=Commands,
    epilog=examples("neuraxis regulator show felix", "neuraxis regulator show felix --json | jq '.weights[]'"),
)
def regulator() -> None:
    """Look at how an agent's routing is corrected."""


@regulator.command(
    epilog=examples(
        "neuraxis regulator show felix",
        "neuraxis regulator show felix --last 100",
        "neuraxis regulator show felix --log backup/ledger.db --json | jq '.weights[]'",
    )
)
@click.argument("agent")
@target_options
@log_option
@last_option("events", 20)
@json_option
async def show(target: Target, agent: str, log_file: Path | None, last: int, as_json: bool) -> None:
    """Print an agent's regulated weights, their cooldowns, what presses now, and what was done so far.

    Folded from the log, as the regulator itself does it.
    """
    from events.replay.presence_checks import NothingFound

    async with open_source(target, log_file) as source:
        upto, partition = (await source.info()).last_seq, source.partitions.agent_token(agent)
        view = (await state_output.fold_partition(source, partition, "regulator")).get("regulator")
        if view is None or agent not in view.state.loops:
            raise NothingFound(
                f"no mode was ever selected for agent {agent!r} in the {source.name}: check the name; regulation "
                "begins with an agent's first routing decision"
            )
        events = await _latest_events(source, agent, upto, last)
    shown = _shown(agent, view.state, view.time_ns, events)
    state_output.print_state(shown, _head, as_json=as_json)


def _head(shown: Shown) -> Iterator[str]:
    cycle = "a cycle is due" if shown.cycle_due else "no cycle is due"
    yield f"agent {shown.agent}: {counted(shown.decisions, 'decision')} in the window, {cycle}"
    yield from (click.style(f"presses: {pressure}", fg="yellow") for pressure in shown.pressures)


async def _latest_events(source: "Source", agent: str, upto: int, max_count: int) -> list["Recorded"]:
    """Return the latest events about the agent, ``max_count`` at most, oldest first."""
    from deploy.operating.agent_events import latest_events_of_agent
    from schemas.event import Configured, Failed
    from schemas.subjects import NO_PARTITION

    tokens = source.partitions.agent_tokens(agent)
    filters = [f"log.{token}.{NO_PARTITION}.{actor}.>" for token in tokens for actor in ("monitor", "regulator")]
    return await latest_events_of_agent(
        source, agent, filters, upto, max_count, lambda each: not isinstance(each.message.event, Configured | Failed)
    )


def _shown(agent: str, state: "State", now_ns: int, events: list["Recorded"]) -> Shown:
    from actors.regulator.control_loop import counts_in_window, fresh_opinion
    from actors.regulator.decider import record_of
    from actors.regulator.pressures import pressures_of
    from deploy.cli.rendering.why.regulation import pressure_line

    record, settings = record_of(state, agent), state.settings
    counts = counts_in_window(record, now_ns, settings)
    has_enough = counts.decisions >= settings.decisions_needed
    opinion = fresh_opinion(record, now_ns, settings)  # the sum of a model's second opinions on how inputs were routed
    pressures = pressures_of(counts, opinion, settings, record.weights) if has_enough else ()
    return Shown(
        agent=agent,
        as_of=rfc3339(now_ns),
        decisions=counts.decisions,
        cycle_due=record.scheduled,
        pressures=tuple(pressure_line(pressure) for pressure in pressures),
        weights=tuple(_weights(state, agent)),
        events=tuple(_event_row(recorded) for recorded in events),
    )


def _weights(state: "State", agent: str) -> Iterator[WeightShown]:
    from actors.regulator.agent_record import limits
    from actors.regulator.decider import record_of

    record = record_of(state, agent)
    for name in sorted(record.changed_ns):
        least, most = limits(name, record.weights)
        yield WeightShown(
            weight=name,
            value=record.weights.get(name),
            least=least,
            most=most,
            offset=record.offsets.get(name, 0.0),
            trial=next((trial.delta for trial in record.trials if trial.parameter == name), 0.0),
            next_change=rfc3339(record.changed_ns[name] + state.settings.cooldown_ms * _NS_PER_MS),
            factor=record.factors.get(name, 1.0),
        )


def _event_row(recorded: "Recorded") -> EventShown:
    from deploy.cli.rendering.why.details import LineContext, details

    event = recorded.message.event
    first, *_ = details(event, LineContext())
    return EventShown(
        seq=recorded.message.seq,
        time=rfc3339(recorded.message.time_ns),
        event=recorded.envelope.topic.split(".", 1)[1],
        what=str(first),
    )
