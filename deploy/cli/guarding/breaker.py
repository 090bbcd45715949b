"""``neuraxis breaker``."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from deploy.cli import state_output
from deploy.cli.command_types import Commands
from deploy.cli.connect import open_log, run_within
from deploy.cli.options import (
    Target,
    agent_option,
    examples,
    json_option,
    last_option,
    required_by_option,
    several,
    target_options,
    timeout_option,
    why_option,
)
from deploy.cli.output import latest, print_json
from deploy.cli.rendering.layout.counted_nouns import number_list
from deploy.cli.replaying.source_opening import log_option, open_source
from deploy.cli.wrapped_lines import say, say_note
from deploy.operating.deadline import Deadline

if TYPE_CHECKING:
    from deploy.operating.guarding.breaker_orders import OrderDone
    from events.decoding import Recorded
    from events.replay.sources import Source
    from schemas.vocabulary.breaker import Standing

_TIMEOUT_S = 15.0


class EventShown(msgspec.Struct, frozen=True, kw_only=True):
    """One of the breaker's events: its topic, the session's state after it, and the reason, if it has one.

    ``trust`` and ``falsehood`` are in [0, 1]; see :class:`Shown`.
    """

    seq: int
    time: str
    event: str
    exchange: str
    state: str
    trust: float
    falsehood: float
    why: str


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a session's breaker, and its latest events, falsehoods and balances, all oldest first.

    ``trust``, in [0, 1], is the trust that the session has left; ``stance`` says how careful its answers are.
    ``attempts`` counts the attempts to recover since the last recovery, and ``attempt_turns`` the inputs of the running
    one; ``violations`` counts, by kind, the inputs that broke its trust, ``interactions`` all inputs, and ``refusals``
    those that were refused. A falsehood says how far an input gives orders to the model itself (the highest of its
    layers), in [0, 1]; a balance is truth minus falsehood (the mean of its layers), in [-1, 1]. ``upto`` is the last
    sequence of the log that was read.
    """

    agent: str
    session: str
    state: str
    trust: float
    stance: str
    attempts: int
    attempt_turns: int
    violations: dict[str, int]
    interactions: int
    refusals: int
    falsehoods: tuple[float, ...]
    balances: tuple[float, ...]
    upto: int
    events: tuple[EventShown, ...]


@click.group(
    cls=Commands,
    epilog=examples("neuraxis breaker show travel", 'neuraxis breaker reset travel --by ann --why "reviewed"'),
)
def breaker() -> None:
    """Look at a session's circuit breaker, reset it, or have it begin to recover."""


_order_options = several(
    json_option,
    timeout_option(_TIMEOUT_S, "How long this may take, until the order is carried out."),
    why_option(),
    required_by_option,
)


@breaker.command(
    epilog=examples(
        "neuraxis breaker show travel",
        "neuraxis breaker show travel --agent concierge --last 50",
        "neuraxis breaker show travel --log backup/ledger.db --json | jq .state",
    )
)
@click.argument("session")
@target_options
@log_option
@agent_option("of the session")
@last_option("events")
@json_option
async def show(target: Target, session: str, log_file: Path | None, agent: str, last: int, as_json: bool) -> None:
    """Print where a session's breaker stands: state, trust, counts, stance, and its latest events.

    Folded from the log, as the breaker itself does it.
    """
    async with open_source(target, log_file) as source:
        shown = await _breaker_state(source, agent, session, last)
    state_output.print_state(shown, _head, as_json=as_json)


def _head(shown: Shown) -> Iterator[str]:
    colour = "green" if shown.state == "NORMAL" else "red"
    state = f"{click.style(shown.state, fg=colour, bold=True)} · trust {shown.trust:g} · stance {shown.stance}"
    yield f"session {shown.session} of agent {shown.agent}: {state}"
    kinds = ", ".join(f"{kind} {count}" for kind, count in shown.violations.items())
    # These counts are not kept for a terminated session.
    refused = f" · refused {shown.refusals} of {shown.interactions}" if shown.state != "TERMINATED" else ""
    yield f"violations {sum(shown.violations.values())} ({kinds}){refused}"
    yield f"recovery attempts {shown.attempts} · turns of the running one {shown.attempt_turns}"
    yield f"latest falsehoods {number_list(shown.falsehoods)} · balances {number_list(shown.balances)}"


@breaker.command(
    epilog=examples(
        'neuraxis breaker reset travel --by ann --why "false alarm, reviewed"',
        'neuraxis breaker reset travel --agent concierge --by ann --why "new customer" --json',
    )
)
@click.argument("session")
@target_options
@agent_option("of the session")
@_order_options
def reset(target: Target, session: str, agent: str, by: str, why: str, timeout: float, as_json: bool) -> None:
    """Reset a session's breaker to the state of a new session, whatever it was; the log keeps who did it and why."""
    from deploy.operating.guarding.breaker_orders import reset_breaker
    from schemas.vocabulary.operator import BreakerResetOrdered

    async def work(within: Deadline) -> "OrderDone":
        async with open_log(target, deadline=within) as log:
            return await reset_breaker(log, agent, session, BreakerResetOrdered(by=by, why=why), deadline=within)

    _print_done(run_within(target, timeout, work), "is reset", as_json)


@breaker.command(
    epilog=examples('neuraxis breaker recover travel --by ann --why "spoke with the customer"'),
)
@click.argument("session")
@target_options
@agent_option("of the session")
@_order_options
def recover(target: Target, session: str, agent: str, by: str, why: str, timeout: float, as_json: bool) -> None:
    """Have a violated session begin a recovery attempt now, instead of with its next input or the timer.

    Trust stays where it is, and has to be rebuilt by good inputs. A session in another state is left alone.
    """
    from deploy.operating.guarding.breaker_orders import NotCarriedOut, give_breaker_order
    from events.replay.sources import StreamSource
    from schemas.vocabulary.breaker import BreakerRecoveryStarted
    from schemas.vocabulary.operator import BreakerRecoveryOrdered

    async def work(within: Deadline) -> "OrderDone":
        async with open_log(target, deadline=within) as log:
            current = await _breaker_state(StreamSource(log), agent, session, 0)
            if current.state != "VIOLATED":
                raise NotCarriedOut(
                    f"session {session!r} is in {current.state}: a recovery attempt begins from VIOLATED only"
                )
            order = BreakerRecoveryOrdered(by=by, why=why)
            return await give_breaker_order(
                log, agent, session, order, BreakerRecoveryStarted, deadline=within, violated_at=current.upto
            )

    _print_done(run_within(target, timeout, work), "recovers", as_json)


def _print_done(done: "OrderDone", what: str, as_json: bool) -> None:
    if as_json:
        print_json(done)
        return
    was = f"it was {done.state_before} with trust {done.trust_before:g}"
    say(f"session {done.session} of agent {done.agent} {what}: {was} (sequence {done.answered_seq})")
    if done.state_before == "NORMAL":
        note = "no breaker of that session was open: if that is unexpected, check the names of session and agent"
        say_note(note)


async def _breaker_state(source: "Source", agent: str, session: str, last: int) -> Shown:
    from actors.breaker.decider import machine_of
    from actors.breaker.machine import stance_of
    from deploy.operating.guarding.breaker_orders import latest_breaker_events, no_judged_input

    upto = (await source.info()).last_seq
    views = await state_output.fold_partition(source, source.partitions.session_token(session), "breaker")
    recorded = await latest_breaker_events(source, agent, session, upto, max(last, 1))
    if not recorded:
        raise no_judged_input(source, agent, session)
    state = views["breaker"].state
    machine = machine_of(state, recorded[-1].message)
    return Shown(
        agent=agent,
        session=session,
        state=machine.state,
        trust=machine.trust,
        stance=stance_of(machine, state.settings),
        attempts=machine.attempts,
        attempt_turns=machine.attempt_turns,
        violations=msgspec.structs.asdict(machine.breakers),
        interactions=machine.interactions,
        refusals=machine.refusals,
        falsehoods=machine.falsehoods,
        balances=machine.balances,
        upto=upto,
        events=tuple(map(_event_row, latest(recorded, last))),
    )


def _event_row(recorded: "Recorded") -> EventShown:
    """Return a breaker's event as a row; its standing is the state of the session's breaker after it."""
    event = recorded.message.event
    standing: Standing = event.standing  # type: ignore[attr-defined]  # only events with one are looked up
    causes = (getattr(event, name, None) for name in ("reason", "danger", "violation", "layer", "by", "why"))
    return EventShown(
        seq=recorded.stored.seq,
        time=recorded.envelope.time,
        event=recorded.envelope.topic.rpartition(".")[2],
        exchange=recorded.message.exchange,
        state=standing.state,
        trust=standing.trust,
        falsehood=standing.falsehood,
        why=", ".join(cause for cause in causes if cause),
    )
