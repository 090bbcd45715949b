"""``neuraxis guardrails``."""

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
    required_by_option,
    target_options,
    timeout_option,
    why_option,
)
from deploy.cli.outcomes import WrongUse
from deploy.cli.output import print_result
from deploy.cli.replaying.source_opening import log_option, open_source
from deploy.operating.deadline import Deadline
from schemas.intake.blank import is_blank
from schemas.intake.timestamps import rfc3339
from schemas.vocabulary.guardrails import LoopTrace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deploy.operating.guarding.loop_overrides import OverrideDone
    from events.decoding import Recorded
    from schemas.event import Event
    from schemas.vocabulary.loops import LoopOverridden

_TIMEOUT_S = 15.0

loop_agent_option = agent_option("of the loop")


class LoopShown(msgspec.Struct, frozen=True, kw_only=True):
    """A judgement of a loop (an answer, as one pass of a deliberation): what was decided and why, and its numbers.

    The numbers are in [0, 1]: ``alignment`` is how well the answer addresses the question, ``drift`` how far it strays
    from it (both None where nobody scored it), and ``fatigue`` grows with reruns that improve nothing.
    """

    seq: int
    time: str
    loop_id: str
    decision: str
    reason: str
    alignment: float | None
    drift: float | None
    fatigue: float
    overridden_by: str


class OverrideShown(msgspec.Struct, frozen=True, kw_only=True):
    """An override for the loop's family (the loop and its reruns): by whom, why, of which limits, and until when."""

    seq: int
    time: str
    until: str
    by: str
    fatigue: bool
    max_reruns: bool
    why: str


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """A loop, and the judgements and overrides of its family, oldest first.

    ``trace`` is what was known of the loop when it was judged; ``best`` is the loop of the family whose alignment
    exceeds its drift by most.
    """

    agent: str
    loop_id: str
    decision: str
    new_loop_id: str | None
    best: str
    trace: LoopTrace
    family: tuple[LoopShown, ...]
    overrides: tuple[OverrideShown, ...]


@click.group(
    cls=Commands,
    epilog=examples(
        "neuraxis guardrails show loop_001",
        'neuraxis guardrails override loop_001 --max-reruns --by ann --why "close to an answer"',
    ),
)
def guardrails() -> None:
    """Look at how guardrails judged a loop, or let its family run on past a limit."""


@guardrails.command(
    epilog=examples(
        "neuraxis guardrails show loop_001",
        "neuraxis guardrails show loop_001_r2 --agent concierge",
        "neuraxis guardrails show loop_001 --log backup/ledger.db --json | jq .trace",
    )
)
@click.argument("loop")
@target_options
@log_option
@loop_agent_option
@json_option
async def show(target: Target, loop: str, log_file: Path | None, agent: str, as_json: bool) -> None:
    """Print how a loop was judged, with its numbers, and the judgements and overrides of its family.

    A loop around an answer that this system gave has the name of its exchange.
    """
    from actors.guardrails.loop_family import split_loop_id
    from deploy.operating.agent_events import events_of_agent
    from events.replay.presence_checks import NothingFound
    from schemas.vocabulary.guardrails import GuardrailsRerunOrdered

    name_of_family, _ = split_loop_id(loop)
    async with open_source(target, log_file) as source:
        upto = (await source.info()).last_seq
        subjects = [f"log.{token}.*.guardrails.>" for token in source.partitions.agent_tokens(agent)]
        about = events_of_agent(source, agent, subjects, upto, unread=source.unread)
        family = [recorded async for recorded in about if _is_of_family(recorded, name_of_family)]
        judgements = [recorded for recorded in family if hasattr(recorded.message.event, "trace")]
        latest = next((each for each in reversed(judgements) if _trace(each.message.event).loop_id == loop), None)
        if latest is None:
            raise NothingFound(
                f"guardrails have judged no loop {loop!r} of agent {agent!r} in the {source.name}: "
                "check the name, or name another --agent"
            )
    event = latest.message.event
    shown = Shown(
        agent=agent,
        loop_id=loop,
        decision=_decision_name(latest),
        new_loop_id=event.new_loop_id if isinstance(event, GuardrailsRerunOrdered) else None,
        best=judgements[-1].message.event.best,  # type: ignore[attr-defined]  # every judgement has one
        trace=_trace(event),
        family=tuple(map(_loop_row, judgements)),
        overrides=_override_rows(family),
    )
    state_output.print_state(shown, _head, as_json=as_json)


@guardrails.command(
    epilog=examples(
        'neuraxis guardrails override loop_001 --fatigue --by ann --why "close to an answer"',
        'neuraxis guardrails override loop_001 --fatigue --max-reruns --by ann --why "one more" --json',
    )
)
@click.argument("loop")
@target_options
@loop_agent_option
@click.option("--fatigue", is_flag=True, help="Lift the end by fatigue.")
@click.option("--max-reruns", is_flag=True, help="Lift the limit of reruns.")
@required_by_option
@why_option()
@timeout_option(_TIMEOUT_S, "How long this may take, until the override is in force.")
@json_option
def override(
    target: Target,
    loop: str,
    agent: str,
    fatigue: bool,
    max_reruns: bool,
    by: str,
    why: str,
    timeout: float,
    as_json: bool,
) -> None:
    """Let a loop's family run on past its fatigue or its rerun limit, for a time; what is not named is in force again.

    A bias echo (one bias in too many families lately) cannot be overridden. The log keeps who did it and why.
    """
    from schemas.vocabulary.loops import LoopOverridden

    if not fatigue and not max_reruns:
        raise WrongUse("nothing is named to override: give --fatigue, --max-reruns, or both")
    if is_blank(loop):
        raise WrongUse("the loop is empty: name the loop that is to run on")
    order = LoopOverridden(
        loop_id=loop, override_fatigue=fatigue, override_max_reruns=max_reruns, override_by=by, override_reason=why
    )
    done = run_within(target, timeout, lambda within: _override(target, agent, order, within))
    lifted = " and ".join(name for name, on in (("fatigue", done.fatigue), ("the rerun limit", done.max_reruns)) if on)
    line = f"family {done.family} of agent {done.agent}: {lifted} lifted by {done.by} for {done.lasts_s:g} s"
    print_result(done, line, as_json=as_json)


def _head(shown: Shown) -> Iterator[str]:
    trace = shown.trace
    goes_on = f"runs again as {shown.new_loop_id}" if shown.new_loop_id else shown.decision.replace("_", " ")
    yield f"loop {shown.loop_id} of agent {shown.agent}: {click.style(goes_on, bold=True)} · {trace.rerun_reason}"
    yield f"why: {trace.rerun_reason_detail} · scores by {trace.source}"
    yield f"family {trace.family}: {trace.rerun_count} of {trace.max_reruns} reruns · best {shown.best}"


def _is_of_family(recorded: "Recorded", family: str) -> bool:
    event = recorded.message.event
    named = getattr(getattr(event, "trace", event), "family", None)
    return bool(named == family)


def _trace(event: "Event") -> LoopTrace:
    trace: LoopTrace = event.trace  # type: ignore[attr-defined]  # called for judgements only: each has one
    return trace


def _decision_name(recorded: "Recorded") -> str:
    return recorded.envelope.topic.rpartition(".")[2]


def _loop_row(recorded: "Recorded") -> LoopShown:
    trace = _trace(recorded.message.event)
    return LoopShown(
        seq=recorded.stored.seq,
        time=recorded.envelope.time,
        loop_id=trace.loop_id,
        decision=_decision_name(recorded),
        reason=trace.rerun_reason,
        alignment=trace.alignment_score,
        drift=trace.drift_score,
        fatigue=trace.reflection_fatigue,
        overridden_by=trace.overridden_by,
    )


def _override_rows(family: "Sequence[Recorded]") -> tuple[OverrideShown, ...]:
    from schemas.vocabulary.guardrails import GuardrailsOverridden

    return tuple(
        OverrideShown(
            seq=recorded.stored.seq,
            time=recorded.envelope.time,
            until=rfc3339(recorded.stored.time_ns + event.lasts_ms * 1_000_000),
            by=event.overridden_by,
            fatigue=event.override_fatigue,
            max_reruns=event.override_max_reruns,
            why=event.override_reason,
        )
        for recorded in family
        if isinstance(event := recorded.message.event, GuardrailsOverridden)
    )


async def _override(target: Target, agent: str, order: "LoopOverridden", deadline: Deadline) -> "OverrideDone":
    from deploy.operating.guarding.loop_overrides import give_override

    async with open_log(target, deadline=deadline) as log:
        return await give_override(log, agent, order, deadline=deadline)
