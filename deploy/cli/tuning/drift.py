"""``neuraxis drift``."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from deploy.cli import state_output
from deploy.cli.command_types import Commands
from deploy.cli.options import Target, examples, json_option, last_option, target_options
from deploy.cli.output import latest
from deploy.cli.rendering.layout.counted_nouns import counted
from deploy.cli.replaying.source_opening import log_option, open_source
from schemas.intake.timestamps import rfc3339

if TYPE_CHECKING:
    from collections.abc import Sequence

    from actors.drift.decider import State
    from events.decoding import Recorded


class ThoughtShown(msgspec.Struct, frozen=True, kw_only=True):
    """A thought, its kind (such as a question), its time, and its subject.

    ``concept`` is the concept of memory, a word, that it began with; ``strategy`` says how that was chosen. Activation
    spread from there to related concepts; ``activation`` is the highest that one of these had, in [0, 1]. ``episode``
    is the id in memory of the exchange that the thought goes back to. ``by`` says whether a model put it into words.
    """

    seq: int
    time: str
    kind: str
    text: str
    concept: str
    strategy: str
    activation: float
    episode: str
    session: str
    by: str


class RestingShown(msgspec.Struct, frozen=True, kw_only=True):
    """A concept, by its id in memory, from which no drift starts for some time yet."""

    concept: str
    seconds_left: int


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """The state of an agent's drift, and its latest thoughts, oldest first.

    ``fatigue`` is the activation that thoughts have spent lately; at ``fatigue_budget`` the agent rests.
    ``next`` is the time of the next drift (RFC 3339), or the time at which a drift under way is given up. It is empty
    if drift waits for the end of the next exchange.
    """

    agent: str
    open_exchanges: int
    drifting: bool
    fatigue: float
    fatigue_budget: float
    next: str
    resting: tuple[RestingShown, ...]
    thoughts: tuple[ThoughtShown, ...]


@click.group(cls=Commands, epilog=examples("neuraxis drift show felix", "neuraxis drift show felix --json"))
def drift() -> None:
    """Look at what an agent thinks while nobody talks to it."""


@drift.command(
    epilog=examples("neuraxis drift show felix", "neuraxis drift show felix --last 50 --json | jq .thoughts")
)
@click.argument("agent")
@target_options
@log_option
@last_option("thoughts")
@json_option
async def show(target: Target, agent: str, log_file: Path | None, last: int, as_json: bool) -> None:
    """Print AGENT's latest idle thoughts, how tired its mind is, which concepts rest, and when it drifts next.

    Folded from the log, as drift itself does it.
    """
    from deploy.operating.agent_events import events_of_agent
    from events.replay.presence_checks import NothingFound

    async with open_source(target, log_file) as source:
        upto, partition = (await source.info()).last_seq, source.partitions.agent_token(agent)
        views = await state_output.fold_partition(source, partition, "drift")
        filters = [f"log.{token}.*.drift.>" for token in source.partitions.agent_tokens(agent)]
        about = events_of_agent(source, agent, filters, upto, unread=source.unread)
        events = [recorded async for recorded in about]
        if not events:
            raise NothingFound(
                f"the mind of agent {agent!r} has not drifted in the {source.name}: check the name; the first drift is "
                "scheduled when an exchange of it ends (setting drift.enabled)"
            )
    shown = drift_overview(agent, views["drift"].state, events, last, time.time_ns())
    state_output.print_state(shown, _head, as_json=as_json)


def _head(shown: Shown) -> Iterator[str]:
    due = f"next {shown.next}" if shown.next else "next after an exchange"
    yield f"agent {shown.agent}: fatigue {shown.fatigue:g} of {shown.fatigue_budget:g} · {due}"
    under_way = "a drift is under way" if shown.drifting else "no drift is under way"
    yield f"{counted(shown.open_exchanges, 'exchange')} open · {under_way}"


def drift_overview(agent: str, state: "State", events: "Sequence[Recorded]", last: int, now_ns: int) -> Shown:
    """Return the state of an agent's drift at a time, from the actor's state and its events about the agent."""
    from actors.drift.agent_state import AgentState, fatigue, resting_concepts

    agent_state, settings = state.minds.get(agent, AgentState()), state.settings
    cooldown_ns = settings.cooldown_ms * 1_000_000
    thoughts = [thought for each in events if (thought := _thought(each)) is not None]
    return Shown(
        agent=agent,
        open_exchanges=len(agent_state.pending),
        drifting=agent_state.cycle is not None,
        fatigue=fatigue(agent_state, now_ns, settings),
        fatigue_budget=settings.fatigue_budget,
        next=_next(events),
        resting=tuple(
            RestingShown(concept=seed, seconds_left=(agent_state.resting[seed] + cooldown_ns - now_ns) // 1_000_000_000)
            for seed in resting_concepts(agent_state, now_ns, settings)
        ),
        thoughts=tuple(latest(thoughts, last)),
    )


def _thought(recorded: "Recorded") -> ThoughtShown | None:
    from schemas.vocabulary.drift import DriftThought

    event = recorded.message.event
    if not isinstance(event, DriftThought):
        return None
    return ThoughtShown(
        seq=recorded.stored.seq,
        time=recorded.envelope.time,
        kind=event.kind,
        text=event.text,
        concept=event.concept,
        strategy=event.strategy,
        activation=event.activation,
        episode=event.episode,
        session=recorded.message.session,
        by=event.by,
    )


def _next(events: "Sequence[Recorded]") -> str:
    """Return the time at which the latest timer fires; empty if none is set."""
    for recorded in reversed(events):
        wake_after_ms = getattr(recorded.message.event, "wake_after_ms", None)
        if wake_after_ms is not None:
            return rfc3339(recorded.stored.time_ns + wake_after_ms * 1_000_000) if wake_after_ms else ""
    return ""
