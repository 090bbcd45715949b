"""Runs agents on real conversations: shares of modes and their healthy ranges, and how often self-review fires.

Conversations are fed through the pure actors, joined by a stream in memory and in virtual time: no broker, no model.
A mode is how the router has a turn answered (RESPOND, CLARIFY, ...); self-review fires when a signal of an agent's
state exceeds all its earlier values. Each agent has its share of the conversations, one session after another, a user
turn every half minute. A line of the files is a conversation (``turns``) or a text by itself, which makes a session of
one turn.

Below the shares are the modes that were chosen for each source: if a share is outside its range, they show which source
is the cause. Run it with ``python -m bench.quality.talk FILE... [--most 2000] [--agents 10]``.
"""

import argparse
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from actors.monitor.settings import HEALTHY
from actors.registry import ACTORS
from actors.router.scoring import MODES
from actors.self_review.agent_state import SIGNALS
from actors.self_review.decider import State, agent_state_of
from actors.self_review.rolling_median import deviation, median
from deploy.simulating.world import Address, World
from schemas.actor import Message
from schemas.identity import event_id
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.responder import ResponseEmitted
from schemas.vocabulary.router import Mode, ModeSelected
from schemas.vocabulary.self_review import Resolved, SelfReviewDisarmed, SelfReviewTriggered

PATH = (
    "reflex",
    "intuition",
    "appraisal",
    "coherence",
    "breaker",
    "arbiter",
    "memory",
    "router",
    "act",
    "responder",
    "guardrails",
    "self_review",
    "clock",
)
"""The actors that take part."""

START_NS = 1_704_067_200 * 1_000_000_000
"""When virtual time begins, Unix nanoseconds."""

_NS_PER_S = 1_000_000_000
_TURN_S, _SESSION_S = 30, 900
"""Seconds from a turn to the next, and from a session to the next."""

_SOURCES = 12
"""Most sources that are listed."""


class Talk(NamedTuple):
    """A person's texts in one session, and the corpus that they are from."""

    source: str
    turns: tuple[str, ...]


class Counts:
    """Counts of the messages of simulated worlds: modes, ends, reviews and values of signals.

    Of the reviews, ``resolved`` counts those whose cause has passed, and ``lapsed`` those that ended without that.
    """

    def __init__(self) -> None:
        self.modes: Counter[Mode] = Counter()
        self.by_source: dict[str, Counter[Mode]] = defaultdict(Counter)
        self.actions: Counter[str] = Counter()
        self.fired: Counter[str] = Counter()
        self.reviews = self.lapsed = self.resolved = 0
        self.values: dict[str, list[float]] = defaultdict(list)
        self.ticks_of: dict[str, int] = {}
        self.source = ""

    def count(self, message: Message) -> None:
        """Count a message."""
        match message.event:
            case ModeSelected(rerouted=False) as selected:
                mode: Mode = selected.terminal_mode or "ACT"
                self.modes[mode] += 1
                self.by_source[self.source][mode] += 1
            case ResponseEmitted(stage=stage, action=action):
                self.actions[f"{stage} {action}"] += 1
            case SelfReviewTriggered(reasons=reasons):
                self.reviews += 1
                self.fired.update(reasons)
            case Resolved():
                self.resolved += 1
            case SelfReviewDisarmed(reason="lapsed"):
                self.lapsed += 1


def talks_in(paths: Iterable[Path]) -> Iterator[Talk]:
    """Yield the conversations of files, and their single texts as sessions of one turn; attacks are left out."""
    for path in paths:
        with path.open(encoding="utf-8") as lines:
            for line in lines:
                row = json.loads(line)
                source = str(row.get("source", path.name))
                if row.get("label", "benign") == "attack":
                    continue
                turns = row.get("turns") or [{"role": "user", "text": row["text"]}]
                texts = tuple(turn["text"] for turn in turns if turn.get("role", "user") == "user")
                if texts:
                    yield Talk(source, texts)


def spread(talks: Sequence[Talk], most: int) -> list[Talk]:
    """Return ``most`` of the talks: those with several turns first, then evenly chosen ones of the others."""
    several = [talk for talk in talks if len(talk.turns) > 1]
    single = [talk for talk in talks if len(talk.turns) == 1]
    wanted = max(0, most - len(several))
    step = max(1, len(single) // wanted) if wanted else 1
    return [*several, *single[::step][:wanted]][:most]


def run_conversations(talks: Sequence[Talk], agents: int) -> tuple[Counts, int]:
    """Run the conversations, one agent after another; return what was counted, and the number of exchanges."""
    counts, exchanges = Counts(), 0
    for number in range(agents):
        world = World([ACTORS[name] for name in PATH], START_NS)
        world.on_message = counts.count
        agent = f"agent-{number}"
        for number_of_session, talk in enumerate(talks[number::agents]):
            counts.source = talk.source
            for text in talk.turns:
                exchanges += 1
                exchange = event_id(agent, "talk", exchanges)
                world.send(InputReceived(text=text), Address(agent, f"{agent} {number_of_session}", exchange))
                world.advance(world.now_ns + _TURN_S * _NS_PER_S)
                _note_signals(world, agent, counts)
            world.advance(world.now_ns + _SESSION_S * _NS_PER_S)
    return counts, exchanges


def _note_signals(world: World, agent: str, counts: Counts) -> None:
    state = world.states["self_review"]
    assert isinstance(state, State)
    agent_state = agent_state_of(state, agent)
    if agent_state.ticks == counts.ticks_of.get(agent, 0):
        return
    counts.ticks_of[agent] = agent_state.ticks
    for signal, value in zip(SIGNALS, agent_state.past[-1].signals, strict=True):
        counts.values[signal].append(value)


def report(counts: Counts, exchanges: int, conversations: int) -> Iterator[str]:
    """Yield the lines of the report."""
    decided = max(counts.modes.total(), 1)
    yield f"{conversations} conversations, {exchanges} exchanges, {counts.modes.total()} routed"
    yield ", ".join(f"{name} {count}" for name, count in counts.actions.most_common())
    yield ""
    outside: list[Mode] = []
    for mode in MODES:
        share, healthy = counts.modes[mode] / decided, HEALTHY[mode]
        within = healthy.low <= share <= healthy.high
        outside += [] if within else [mode]
        # Red: so far outside that the monitor would record a red flag.
        verdict = "healthy" if within else "red" if not healthy.red_below <= share <= healthy.red_above else "outside"
        yield f"{mode:12} {share:6.1%}   {healthy.low:.0%} to {healthy.high:.0%}   {verdict}"
    if outside:
        yield ""
        yield f"by source, what makes {', '.join(outside)} differ:"
        largest = sorted(counts.by_source.items(), key=lambda each: -each[1].total())[:_SOURCES]
        for source, modes in largest:
            shares = ", ".join(f"{mode} {modes[mode] / modes.total():.0%}" for mode in MODES if modes[mode])
            yield f"  {source[:32]:32} {modes.total():6} turns: {shares}"
    yield ""
    ticks = max(len(counts.values[SIGNALS[0]]), 1)
    ended = f"{counts.resolved} resolved, {counts.lapsed} lapsed"
    yield f"self-review: {counts.reviews} reviews in {ticks} ticks ({counts.reviews / ticks:.2%}), {ended}"
    yield f"{'signal':16} {'fired':>6} {'rate':>7} {'median':>8} {'MAD':>8} {'highest':>8} {'at top':>7} {'at 0':>6}"
    for signal in SIGNALS:
        ordered = tuple(sorted(counts.values[signal])) or (0.0,)
        fired = counts.fired[f"{signal}_record"]
        top, at_zero = ordered[-1], sum(value == 0.0 for value in ordered) / len(ordered)
        at_top = sum(value == top for value in ordered) / len(ordered)
        yield (
            f"{signal:16} {fired:6} {fired / ticks:7.2%} {median(ordered):8.3f} {deviation(ordered):8.3f} {top:8.3f} "
            f"{at_top:7.1%} {at_zero:6.1%}"
        )


def main() -> None:
    """Read files, run their conversations, and print the report."""
    parser = argparse.ArgumentParser(prog="python -m bench.quality.talk", description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+", type=Path, help="JSON lines with turns or text")
    parser.add_argument("--most", type=int, default=2000, help="conversations at most")
    parser.add_argument("--agents", type=int, default=10, help="agents that they are shared out to")
    arguments = parser.parse_args()
    talks = spread(list(talks_in(arguments.files)), arguments.most)
    counts, exchanges = run_conversations(talks, arguments.agents)
    if not exchanges:
        parser.error("there is nothing to run: no conversation or benign text in the files, or --most or --agents is 0")
    print("\n".join(report(counts, exchanges, len(talks))))


if __name__ == "__main__":
    main()
