"""``neuraxis review``."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from deploy.cli import state_output
from deploy.cli.command_types import Commands
from deploy.cli.options import Target, examples, json_option, last_option, target_options
from deploy.cli.output import latest
from deploy.cli.rendering.layout.counted_nouns import number_list
from deploy.cli.replaying.source_opening import log_option, open_source

if TYPE_CHECKING:
    from actors.self_review.agent_state import AgentState
    from actors.self_review.settings import SelfReviewSettings


class SignalShown(msgspec.Struct, frozen=True, kw_only=True):
    """A signal: its latest value, and the highest (``record``), the median and the median absolute deviation (``mad``).

    It fires above ``fires_above``.
    """

    signal: str
    latest: float
    record: float
    median: float
    mad: float
    fires_above: float


class EntityShown(msgspec.Struct, frozen=True, kw_only=True):
    """An entity (a part of a prompt) that had a seat (a review's vote on it).

    ``pog`` is its worth, ``tick`` the tick of its last seat, and ``weight`` its weight in memory.
    """

    entity: str
    pog: float
    tick: int
    weight: float | None


class OppositionShown(msgspec.Struct, frozen=True, kw_only=True):
    """How opposed two modes are, from 0 to 1, and how many decisions were made under each.

    A mode of self-review is an attitude of the agent, such as guardian or explorer.
    """

    modes: str
    opposition: float
    decisions: tuple[int, int]


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """The state of an agent's self-review.

    Each score, in [0, 1], rates the prompt of a tick; scores are oldest first.
    ``ticks`` counts the exchanges that were looked at, and the steps that an external engine reported. ``criticality``,
    in [0, 1], is how tense the agent is. ``gate`` decides which ticks are reviewed: it is ``warming_up`` (too few ticks
    so far), ``open`` (the next signal that fires starts a review) or ``armed`` (a review is not resolved yet, and no
    other one starts).
    """

    agent: str
    gate: str
    ticks: int
    criticality: float
    scores_since_review: tuple[float, ...]
    last_scores: tuple[float, ...]
    signals: tuple[SignalShown, ...]
    entities: tuple[EntityShown, ...]
    opposition: tuple[OppositionShown, ...]


@click.group(
    cls=Commands, epilog=examples("neuraxis review show felix", "neuraxis review show felix --json | jq .criticality")
)
def review() -> None:
    """Look at how an agent reviews its own prompting."""


@review.command(
    epilog=examples(
        "neuraxis review show felix",
        "neuraxis review show felix --last 50",
        "neuraxis review show felix --log backup/ledger.db --json | jq '.signals[]'",
    )
)
@click.argument("agent")
@target_options
@log_option
@last_option("scores and entities")
@json_option
async def show(target: Target, agent: str, log_file: Path | None, last: int, as_json: bool) -> None:
    """Print an agent's gate, signals against their records, last scores, entities with seats, and opposed modes.

    Folded from the log, as self-review and memory themselves do it.
    """
    from actors.self_review.decider import agent_state_of
    from events.replay.presence_checks import NothingFound

    async with open_source(target, log_file) as source:
        partition = source.partitions.agent_token(agent)
        views = await state_output.fold_partition(source, partition, "self_review", "memory")
        state = views["self_review"].state if "self_review" in views else None
        if state is None or agent not in state.minds:
            raise NothingFound(
                f"agent {agent!r} has had no tick in the {source.name}: check the name; a tick is an exchange of "
                "that agent which reached deliberation, or a tick.observed of it"
            )
    memory = views["memory"].state if "memory" in views else None
    shown = _shown(agent, agent_state_of(state, agent), memory, state.settings, last)
    state_output.print_state(shown, _head, as_json=as_json)


def _head(shown: Shown) -> Iterator[str]:
    colour = {"open": "green", "armed": "yellow"}.get(shown.gate, "cyan")
    gate = click.style(shown.gate.replace("_", " "), fg=colour, bold=True)
    yield f"agent {shown.agent}: {gate} · {shown.ticks} ticks · criticality {shown.criticality:g}"
    since = f" · since the review {number_list(shown.scores_since_review)}" if shown.gate == "armed" else ""
    yield f"last scores {number_list(shown.last_scores)}{since}"


def _shown(agent: str, reviewed: "AgentState", memory: Any, settings: "SelfReviewSettings", last: int) -> Shown:
    scores = tuple(each.parts[-1] for each in reviewed.past if each.parts)  # the last part is the whole score
    is_warm = len(reviewed.past) >= settings.warm_up
    return Shown(
        agent=agent,
        gate="armed" if reviewed.armed else "open" if is_warm else "warming_up",
        ticks=reviewed.ticks,
        criticality=reviewed.criticality,
        scores_since_review=reviewed.scores,
        last_scores=tuple(latest(scores, last)),
        signals=tuple(_signals(reviewed, settings)),
        entities=tuple(_entities(reviewed, memory, agent, settings))[:last],
        opposition=tuple(_opposition(reviewed, settings)),
    )


def _signals(reviewed: "AgentState", settings: "SelfReviewSettings") -> Iterable[SignalShown]:
    from actors.self_review.agent_state import SIGNALS, record_of
    from actors.self_review.gate import LEAST_MARGIN
    from actors.self_review.rolling_median import deviation, median

    for index, signal in enumerate(SIGNALS):
        record, spread = record_of(reviewed, index, settings), deviation(reviewed.ordered[index])
        yield SignalShown(
            signal=signal,
            latest=reviewed.past[-1].signals[index] if reviewed.past else 0.0,
            record=record,
            median=round(median(reviewed.ordered[index]), 6),
            mad=round(spread, 6),
            fires_above=round(record + max(spread, LEAST_MARGIN), 6),
        )


def _entities(reviewed: "AgentState", memory: Any, agent: str, settings: "SelfReviewSettings") -> Iterable[EntityShown]:
    """Yield the entities, the latest seat first, with their present worth and weight: both fade with the ticks."""
    from actors.memory.weights import weight_of
    from actors.self_review.agent_state import worth_of

    memories = memory.minds.get(agent) if memory is not None else None
    latest_first = sorted(reviewed.seats, key=lambda entity: (-reviewed.seats[entity][-1].tick, entity))
    for entity in latest_first:
        weight = weight_of(memories, entity, memory.settings) if memories is not None else None
        seats = reviewed.seats[entity]
        worth = worth_of(seats, reviewed.ticks, None, settings)
        yield EntityShown(entity=entity, pog=worth, tick=seats[-1].tick, weight=weight)


def _opposition(reviewed: "AgentState", settings: "SelfReviewSettings") -> Iterable[OppositionShown]:
    from actors.self_review.modes import opposition

    names = sorted(reviewed.decisions)
    for index, one in enumerate(names):
        for other in names[index + 1 :]:
            counts = sum(reviewed.decisions[one].values()), sum(reviewed.decisions[other].values())
            value = opposition(one, other, reviewed.decisions, settings)
            yield OppositionShown(modes=f"{one} / {other}", opposition=value, decisions=counts)
