"""Drift (the thoughts of an idle agent, and what led to them) as lines for people. Pure.

A thought begins with a concept of memory, its seed, which a strategy looks for; it activates others, each to a degree
in [0, 1]. Fatigue is the activation that was spent lately. A concept rests for a while after a thought began with it.
"""

from collections.abc import Mapping

from rich.text import Text

from deploy.cli.rendering.layout.printable import printable
from deploy.cli.rendering.layout.quoting import quoted_line
from deploy.cli.rendering.model_calls import call_text
from deploy.cli.rendering.why.lines import Lines, lines_on
from schemas.vocabulary.drift import DriftScheduled, DriftSkipped, DriftStarted, DriftSynthesisRequested, DriftThought
from schemas.vocabulary.memory import MemoryWandered

_MAX_THOUGHT_CHARACTERS = 400
# Why there is no thought, or why memory found nothing -> its words.
_SKIP_REASONS: Mapping[str, str] = {
    "busy": "an exchange is open",
    "fatigued": "too many thoughts lately",
    "no_episode": "nothing was lived through lately",
    "no_seed": "no concept to begin with",
    "weak": "what came up is too weak",
    "repeated": "the same thought as one of the latest",
    "unanswered": "nobody answered",
    "forgotten": "what it was about is forgotten",
}


def _next_drift(event: DriftScheduled | DriftSkipped) -> str:
    if not event.wake_after_ms:
        return "again after the next exchange"
    return f"next in {event.wake_after_ms / 1000:g} s{' (a long gap)' if event.long_gap else ''}"


@lines_on.register
def _scheduled(event: DriftScheduled) -> Lines:
    return [Text(f"the mind drifts {_next_drift(event)}, if no exchange is open then", "dim")]


@lines_on.register
def _started(event: DriftStarted) -> Lines:
    # The pick is the random number, in [0, 1), that chooses among the concepts that a strategy finds.
    line = Text(f"looks for a concept: {', '.join(event.strategies)}; pick {event.pick:.3f}, for a {event.kind}; ")
    return [line.append(f"{len(event.resting)} concepts rest, fatigue {event.fatigue:g}", "dim")]


@lines_on.register
def _skipped(event: DriftSkipped) -> Lines:
    line = Text(f"no thought: {_SKIP_REASONS.get(event.reason, printable(event.reason))}", "yellow")
    if event.seed:
        line.append(f" ({printable(event.seed)}, activation {event.activation:g})")
    return [line, Text(_next_drift(event), "dim")]


@lines_on.register
def _wandered(event: MemoryWandered) -> Lines:
    if event.reason:
        return [Text(f"came upon nothing: {_SKIP_REASONS.get(event.reason, printable(event.reason))}", "yellow")]
    head = Text(f"{event.strategy}: ").append(printable(event.concept), "bold")
    head.append(f" ({printable(event.seed)}, strength {event.strength:g}) brings up, at most {event.activation:g}:")
    brought = ", ".join(f"{printable(each.term or each.concept)} {each.energy:g}" for each in event.activations)
    source = Text(f"{printable(event.episode)}: ", "dim").append(quoted_line(event.text), "italic")
    return [head, Text(brought or "nothing else"), source]


@lines_on.register
def _requested(event: DriftSynthesisRequested) -> Lines:
    return [Text(f"to put it into words, it {call_text(event.call)}")]


@lines_on.register
def _thought(event: DriftThought) -> Lines:
    line = Text(f"{event.kind}: ", "bold").append(quoted_line(event.text, _MAX_THOUGHT_CHARACTERS), "italic")
    source = f"from {printable(event.concept)} ({event.strategy}), activation {event.activation:g}, on "
    by = f"{event.by}{f', since {printable(event.reason)}' if event.reason else ''}"
    return [line, Text(f"{source}{printable(event.episode)}; worded by {by}", "dim")]
