"""Agents on real conversations: mode shares against their healthy ranges, and how often self-review's signals fire.

Conversations are fed through the pure actors, joined by a stream in memory and in virtual time: no broker, no model.
Each agent has its share of them, one session after another, a user turn every half minute. A line of the files is a
conversation (``turns``) or a text by itself, which makes a session of one turn.

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
from actors.self_review.agent_state import SIGNALS
from actors.self_review.decider import State, mind_of
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

MODES: tuple[Mode, ...] = ("RESPOND", "CLARIFY", "ACT", "ACKNOWLEDGE", "IGNORE")
START_NS = 1_704_067_200 * 1_000_000_000
_NS_PER_S = 1_000_000_000
_TURN_S, _SESSION_S = 30, 900
_SOURCES = 12


class Talk(NamedTuple):
    """What a person says in one session, and where it is from."""

    source: str
    turns: tuple[str, ...]


class Seen:
    """What is counted of the messages of a world."""

    def __init__(self) -> None:
        self.modes: Counter[Mode] = Counter()
        self.by_source: dict[str, Counter[Mode]] = defaultdict(Counter)
        self.actions: Counter[str] = Counter()
        self.fired: Counter[str] = Counter()
        self.reviews = self.lapsed = self.resolved = 0
        self.values: dict[str, list[float]] = defaultdict(list)
        self.ticks_of: dict[str, int] = {}
        self.source = ""

    def take(self, message: Message) -> None:
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
                said = tuple(turn["text"] for turn in turns if turn.get("role", "user") == "user")
                if said:
                    yield Talk(source, said)


def spread(talks: Sequence[Talk], most: int) -> list[Talk]:
    """Return as many of the talks, those with several turns first, then evenly over the rest."""
    several = [talk for talk in talks if len(talk.turns) > 1]
    single = [talk for talk in talks if len(talk.turns) == 1]
    wanted = max(0, most - len(several))
    step = max(1, len(single) // wanted) if wanted else 1
    return [*several, *single[::step][:wanted]][:most]


def live(talks: Sequence[Talk], agents: int) -> tuple[Seen, int]:
    """Run the conversations, one agent after another; return what was counted, and the number of exchanges."""
    seen, exchanges = Seen(), 0
    for number in range(agents):
        world = World([ACTORS[name] for name in PATH], START_NS)
        world.on_message = seen.take
        agent = f"agent-{number}"
        for place, talk in enumerate(talks[number::agents]):
            seen.source = talk.source
            for text in talk.turns:
                exchanges += 1
                exchange = event_id(agent, "talk", exchanges)
                world.send(InputReceived(text=text), Address(agent, f"{agent} {place}", exchange))
                world.advance(world.now_ns + _TURN_S * _NS_PER_S)
                _note_signals(world, agent, seen)
            world.advance(world.now_ns + _SESSION_S * _NS_PER_S)
    return seen, exchanges


def _note_signals(world: World, agent: str, seen: Seen) -> None:
    state = world.states["self_review"]
    assert isinstance(state, State)
    mind = mind_of(state, agent)
    if mind.ticks == seen.ticks_of.get(agent, 0):
        return
    seen.ticks_of[agent] = mind.ticks
    for signal, value in zip(SIGNALS, mind.past[-1].signals, strict=True):
        seen.values[signal].append(value)


def report(seen: Seen, exchanges: int, conversations: int) -> Iterator[str]:
    """Yield the lines of the report."""
    decided = max(seen.modes.total(), 1)
    yield f"{conversations} conversations, {exchanges} exchanges, {seen.modes.total()} routed"
    yield ", ".join(f"{name} {count}" for name, count in seen.actions.most_common())
    yield ""
    outside: list[Mode] = []
    for mode in MODES:
        share, healthy = seen.modes[mode] / decided, HEALTHY[mode]
        within = healthy.low <= share <= healthy.high
        outside += [] if within else [mode]
        told = "healthy" if within else "red" if not healthy.red_below <= share <= healthy.red_above else "outside"
        yield f"{mode:12} {share:6.1%}   {healthy.low:.0%} to {healthy.high:.0%}   {told}"
    if outside:
        yield ""
        yield f"by source, what makes {', '.join(outside)} differ:"
        largest = sorted(seen.by_source.items(), key=lambda each: -each[1].total())[:_SOURCES]
        for source, modes in largest:
            shares = ", ".join(f"{mode} {modes[mode] / modes.total():.0%}" for mode in MODES if modes[mode])
            yield f"  {source[:32]:32} {modes.total():6} turns: {shares}"
    yield ""
    ticks = max(len(seen.values[SIGNALS[0]]), 1)
    ended = f"{seen.resolved} resolved, {seen.lapsed} lapsed"
    yield f"self-review: {seen.reviews} reviews in {ticks} ticks ({seen.reviews / ticks:.2%}), {ended}"
    yield f"{'signal':16} {'fired':>6} {'rate':>7} {'median':>8} {'MAD':>8} {'highest':>8} {'at top':>7} {'at 0':>6}"
    for signal in SIGNALS:
        ordered = tuple(sorted(seen.values[signal])) or (0.0,)
        fired = seen.fired[f"{signal}_record"]
        top, none = ordered[-1], sum(value == 0.0 for value in ordered) / len(ordered)
        at_top = sum(value == top for value in ordered) / len(ordered)
        yield (
            f"{signal:16} {fired:6} {fired / ticks:7.2%} {median(ordered):8.3f} {deviation(ordered):8.3f} {top:8.3f} "
            f"{at_top:7.1%} {none:6.1%}"
        )


def main() -> None:
    """Read files, run their conversations, and print the report."""
    parser = argparse.ArgumentParser(prog="python -m bench.quality.talk", description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+", type=Path, help="JSON lines with turns or text")
    parser.add_argument("--most", type=int, default=2000, help="conversations at most")
    parser.add_argument("--agents", type=int, default=10, help="agents that they are shared out to")
    arguments = parser.parse_args()
    talks = spread(list(talks_in(arguments.files)), arguments.most)
    seen, exchanges = live(talks, arguments.agents)
    print("\n".join(report(seen, exchanges, len(talks))))


if __name__ == "__main__":
    main()
