"""``neuraxis reflection``."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from deploy.cli import state_output
from deploy.cli.command_types import Commands
from deploy.cli.options import Target, examples, json_option, target_options
from deploy.cli.rendering.layout.counted_nouns import counted
from deploy.cli.replaying.source_opening import log_option, open_source

if TYPE_CHECKING:
    from actors.reflection.decider import State


class StratumShown(msgspec.Struct, frozen=True, kw_only=True):
    """How many decisions wait to be looked at again for one reason (``stratum``), such as a low confidence."""

    stratum: str
    waiting: int


class OpinionCount(msgspec.Struct, frozen=True, kw_only=True):
    """How many of a model's latest opinions on decisions name a dimension, and how many of those disagree.

    A dimension says in what a decision was ambiguous.
    """

    dimension: str
    counted: int
    disagree: int


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """The state of an agent's reflection; ``asked`` counts the decisions that a model is judging.

    ``counted`` is the number of the model's opinions that count, and ``disagreement`` the share of them, in [0, 1],
    that disagree with the decision. ``pressure``: the disagreement has lasted, and the regulator may change a weight of
    the router.
    """

    agent: str
    open_exchanges: int
    asked: int
    counted: int
    disagreement: float
    pressure: bool
    waiting: tuple[StratumShown, ...]
    opinions: tuple[OpinionCount, ...]


@click.group(cls=Commands, epilog=examples("neuraxis reflection show felix", "neuraxis reflection show felix --json"))
def reflection() -> None:
    """Look at what a model thinks of an agent's past routing decisions."""


@reflection.command(epilog=examples("neuraxis reflection show felix", "neuraxis reflection show felix --json"))
@click.argument("agent")
@target_options
@log_option
@json_option
async def show(target: Target, agent: str, log_file: Path | None, as_json: bool) -> None:
    """Print the decisions of AGENT that wait for a look back, and what the opinions that count come to.

    Folded from the log, as reflection itself does it.
    """
    from events.replay.presence_checks import NothingFound

    async with open_source(target, log_file) as source:
        partition = source.partitions.agent_token(agent)
        view = (await state_output.fold_partition(source, partition, "reflection")).get("reflection")
        if view is None or agent not in view.state.minds:
            raise NothingFound(
                f"reflection keeps nothing of agent {agent!r} in the {source.name}: check the name; it works only "
                "where a language model is attached (setting reflection.backend=llm)"
            )
    shown = reflection_overview(agent, view.state)
    state_output.print_state(shown, _head, as_json=as_json)


def _head(shown: Shown) -> Iterator[str]:
    pressure = click.style("a pressure", fg="yellow", bold=True) if shown.pressure else "no pressure"
    yield f"agent {shown.agent}: disagreement {shown.disagreement:g} of {shown.counted} opinions that count, {pressure}"
    yield f"{counted(shown.open_exchanges, 'exchange')} open · a model is at {counted(shown.asked, 'decision')}"


def reflection_overview(agent: str, state: "State") -> Shown:
    """Return the state of the reflection of an agent that ``state`` knows."""
    from actors.reflection.opinion_counting import conclude
    from actors.reflection.sampling import STRATA, stratum_of

    agent_state, settings = state.minds[agent], state.settings
    strata = Counter(stratum_of(case.selected, settings) for case in agent_state.queue)
    counted = Counter(each.dimension for each in agent_state.counted)
    differing = Counter(each.dimension for each in agent_state.counted if not each.agrees)
    overall = conclude(agent_state.counted, (), settings, wake_after_ms=0)
    return Shown(
        agent=agent,
        open_exchanges=len(agent_state.pending),
        asked=len(agent_state.asked.batch) if agent_state.asked else 0,
        counted=overall.counted,
        disagreement=overall.disagreement,
        pressure=overall.pressure,
        waiting=tuple(StratumShown(stratum=name, waiting=strata[name]) for name in STRATA if strata[name]),
        opinions=tuple(
            OpinionCount(dimension=name, counted=count, disagree=differing[name])
            for name, count in counted.most_common()
        ),
    )
