"""An exchange as a tree of causes, with the time that each event took, for people. Pure.

An answer has some ten to forty causes, one after another. With a level of indentation for each, the text would not fit
on a terminal. So the critical path to the end is one trunk, and all else branches off it.
"""

from collections.abc import Iterable, Iterator, Sequence, Set
from typing import TypeVar

import msgspec
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from actors.coherence.settings import CoherenceSettings
from actors.router.settings import RouterSettings
from deploy.cli.rendering.layout.printable import printable
from deploy.cli.rendering.reason_texts import LET_PASS
from deploy.cli.rendering.sentences import sentence_on
from deploy.cli.rendering.why.details import LineContext, details
from events.replay.explain import Explanation, Node
from events.replay.gaps import Range
from schemas.catalogue import CATALOGUE
from schemas.errors import UNREADABLE, UnknownVersion
from schemas.event import ROOT, Event, Failed, topic_of
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.responder import ResponseEmitted

E = TypeVar("E", bound=Event)

_BAR_CELLS = 12
_US_PER_MS = 1_000


def nodes_of(explanation: Explanation) -> Iterator[Node]:
    """Yield every event of an exchange, causes before their effects."""
    for root in explanation.roots:
        yield from nodes_below(root)


def event_of(node: Node) -> Event:
    """Return a node's event, typed."""
    return msgspec.convert(node.body, CATALOGUE[node.topic].event)


def last_of(explanation: Explanation, kind: type[E]) -> tuple[Node, E] | None:
    """Return the exchange's last event of a type, in the order of the tree; None if it has none."""
    found = None
    for node in nodes_of(explanation):
        event = event_of(node)
        if isinstance(event, kind):
            found = node, event
    return found


def render(
    explanation: Explanation, router: RouterSettings | None = None, coherence: CoherenceSettings | None = None
) -> RenderableType:
    """Return the tree with the numbers of each decision, the times, and the stages that were never reached.

    ``router`` and ``coherence`` are the settings in force then, if they are not the defaults.
    """
    events = [event_of(node) for node in nodes_of(explanation)]
    context = LineContext(
        next((event for event in events if isinstance(event, InputReceived)), None), router, coherence
    )
    title = Text().append("exchange ").append(printable(explanation.exchange), "bold")
    title.append(printable(f"  agent {explanation.agent}  session {explanation.session}"))
    title.append("\n↓ follows from the event above it at its level; what else that led to is set in", "dim")
    tree = Tree(title, guide_style="dim")
    critical_path = frozenset(explanation.critical_path)
    for root in explanation.roots:
        _add_trunk(tree, root, critical_path, context)
    return Group(_sentence(explanation, events), tree, *_lines_below(explanation, events))


def to_json(explanation: Explanation, missing: Sequence[Range]) -> bytes:
    """Return an explanation as JSON, its sentence first; ``missing``: gaps of the log among its events or after."""
    fields = {"sentence": plain_sentence(explanation), **msgspec.structs.asdict(explanation), "missing": missing}
    return msgspec.json.encode(fields)


def plain_sentence(explanation: Explanation) -> str:
    """Return how an exchange ended and why, in a plain sentence."""
    return _sentence(explanation, [event_of(node) for node in nodes_of(explanation)]).plain


def _sentence(explanation: Explanation, events: list[Event]) -> Text:
    end = next((event for event in events if isinstance(event, ResponseEmitted)), None)
    if end is None and (sentence := _unreadable_input(explanation, events)):
        return Text(printable(sentence), "bold red")
    if end is None and explanation.unreadable:
        return Text(
            f"Not known: this release cannot read {_unreadable_places(explanation)} of it, which may be its end. A "
            "later release wrote that, or it is damaged. Look with the release that wrote it.",
            "bold yellow",
        )
    if end is None:
        return Text("Open: it has no end yet.", "bold yellow")
    return Text(printable(sentence_on(end, events)), "bold green" if end.action in LET_PASS else "bold red")


def _unreadable_places(explanation: Explanation) -> str:
    return f"sequence {', '.join(map(str, explanation.unreadable))}"


def _unreadable_input(explanation: Explanation, events: list[Event]) -> str:
    """If no actor could read the input, return a sentence that says so, and what to do; else an empty string."""
    topic = topic_of(InputReceived)
    failed = [event for event in events if isinstance(event, Failed) and event.failed_topic == topic]
    if not failed or any(isinstance(event, InputReceived) for event in events):
        return ""
    seq = failed[0].failed_seq
    if seq not in explanation.unreadable and not all(event.reason in UNREADABLE for event in failed):
        return ""
    remedy = (
        "A later release wrote it, none of whose workers ran, or its version is wrong: send it again while one runs."
        if failed[0].reason == UnknownVersion.code
        else "Whoever wrote it did not write it as docs/inputs.md describes: send it again."
    )
    return (
        f"Never begun: the input at sequence {seq} cannot be read ({failed[0].reason}), so that all actors passed it "
        f"over and no end will come. {remedy}"
    )


def _add_trunk(tree: Tree, root: Node, critical_path: frozenset[int], context: LineContext) -> None:
    for node, branches in trunk_to_end(root, critical_path):
        heading = Text("" if node is root else "↓ ", "dim").append(
            node.topic.removeprefix(f"{ROOT}."), "not dim bold cyan"
        )
        heading.append(f"  sequence {node.seq}", "dim")
        if node.seq and node.since_start_ms:
            heading.append(f"  +{node.since_start_ms:g} ms", "dim")
        branch_tree = tree.add(Group(heading, *details(event_of(node), context)))
        for branch in branches:
            _add_trunk(branch_tree, branch, critical_path, context)


def _lines_below(explanation: Explanation, events: Iterable[Event]) -> Iterator[RenderableType]:
    events = list(events)
    ended = any(isinstance(event, ResponseEmitted) for event in events)
    if not ended and not explanation.unreadable and not _unreadable_input(explanation, events):
        yield Text("the exchange is open: it has no end yet", "yellow")
    yield from timing_table(explanation)
    if explanation.unreached:
        why = explanation.absent[explanation.unreached[0]]
        yield Text(f"never reached: {', '.join(explanation.unreached)}: {why}")
    for actor, why in explanation.absent.items():
        if actor not in explanation.unreached:
            yield Text(f"not called on: {actor}: {why}", "dim")
    if explanation.unreadable:
        yield Text(f"cannot be read by this release: {_unreadable_places(explanation)}", "red")
    for node in nodes_of(explanation):
        if any(other.seq < node.seq for other in node.led_to):
            again = f"stored again at sequence {node.seq}, behind what had followed from it: the log had lost it"
            yield Text(again, "yellow")
    if explanation.complete:
        yield Text("causal chain: complete, from the end back to the input")
    elif ended:
        lack = "cannot be read by this release" if explanation.unreadable else "is missing from the log"
        yield Text(f"causal chain: broken, a cause between the end and the input {lack}", "red")


def nodes_below(node: Node) -> Iterator[Node]:
    """Yield an event and all that it led to, causes before effects, and effects of one cause in stream order."""
    waiting = [node]
    while waiting:
        found = waiting.pop()
        yield found
        waiting += reversed(found.led_to)


def trunk_to_end(root: Node, critical_path: Set[int]) -> Iterator[tuple[Node, tuple[Node, ...]]]:
    """Yield the events of a trunk from its root on, each with its other effects, the branches.

    ``critical_path`` are the sequences of the events from the input to the end. Where the trunk is not on that path, it
    follows the effect that led to most events, and ends if several led to equally many.
    """
    node: Node | None = root
    while node is not None:
        following = _following(node, critical_path)
        yield node, tuple(child for child in node.led_to if child is not following)
        node = following


def _following(node: Node, critical_path: Set[int]) -> Node | None:
    if len(node.led_to) < 2:
        return node.led_to[0] if node.led_to else None
    on_critical_path = next((child for child in node.led_to if child.seq in critical_path), None)
    if on_critical_path is not None:
        return on_critical_path
    *_, second, first = sorted(node.led_to, key=_size)
    return first if _size(first) > _size(second) else None


def _size(node: Node) -> int:
    return sum(1 for _ in nodes_below(node))


def timing_table(explanation: Explanation) -> Iterator[RenderableType]:
    """Yield for each event the time from its cause's server time to its own, and how much of that was the decision.

    The rest is for storing the cause, delivering it, waiting for a turn, and storing the event. Bars show the share of
    the time to the end; events that are not on the critical path to it are dim and have no bar. There is also no bar
    after a clock was set back, or if a lost event was stored again behind its own effects. ``over 10: 14.250`` is a
    decision that took longer than its stage's budget.
    """
    nodes = list(nodes_of(explanation))
    critical_path = frozenset(explanation.critical_path)
    end_ms = next((node.since_start_ms for node in nodes if node.seq == (explanation.critical_path or (0,))[-1]), None)
    head = Text(f"time: {explanation.total_ms:g} ms in all", "bold")
    yield head.append(f", {end_ms:g} ms from the input to the end" if explanation.complete else "", "not bold")
    measured = [node for node in sorted(nodes, key=lambda node: node.seq) if node.since_start_ms]
    if measured:
        yield _table(measured, critical_path, end_ms if explanation.complete else None)


def _table(nodes: list[Node], critical_path: frozenset[int], end_ms: float | None) -> Table:
    grid = Table(box=None, pad_edge=False, header_style="dim")
    grid.add_column("event", no_wrap=True)
    for heading in ("ms", "deciding", "at"):
        grid.add_column(heading, justify="right", no_wrap=True)
    grid.add_column("share of the way", no_wrap=True)
    for node in nodes:
        deciding = "" if node.decided_us is None else f"{node.decided_us / _US_PER_MS:.3f}"
        if node.budget_us is not None:
            deciding = f"over {node.budget_us / _US_PER_MS:g}: {deciding}"
        share = node.since_cause_ms / end_ms if end_ms and node.seq in critical_path else None
        if share is not None and not 0 <= share <= 1:
            share = None
        name = node.topic.removeprefix(f"{ROOT}.")
        numbers = (f"{node.since_cause_ms:.3f}", deciding, f"+{node.since_start_ms:.3f}")
        grid.add_row(name, *numbers, _bar(share), style="" if node.seq in critical_path else "dim")
    return grid


def _bar(share: float | None) -> str:
    """Return a bar for a share in [0, 1]; nothing for none."""
    return "" if share is None else f"{share:>4.0%} {'█' * round(share * _BAR_CELLS)}"
