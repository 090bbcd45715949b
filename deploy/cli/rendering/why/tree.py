"""An exchange as a tree of causes, for people. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

import msgspec
from rich.console import Group, RenderableType
from rich.text import Text
from rich.tree import Tree

from actors.coherence.settings import CoherenceSettings
from actors.router.settings import RouterSettings
from deploy.cli.rendering.layout.printable import printable
from deploy.cli.rendering.reason_texts import LET_PASS
from deploy.cli.rendering.sentences import sentence_on
from deploy.cli.rendering.why.details import LineContext, details
from deploy.cli.rendering.why.timings import timing_table
from deploy.cli.rendering.why.tree_layout import nodes_below, trunk_to_end
from events.replay.explain import Explanation, Node
from events.replay.gaps import Range
from schemas.catalogue import CATALOGUE
from schemas.errors import UNREADABLE, UnknownVersion
from schemas.event import ROOT, Event, Failed, topic_of
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.responder import ResponseEmitted

E = TypeVar("E", bound=Event)


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
    """Return an explanation as JSON, its sentence first; ``missing`` are gaps of the log among and after its events."""
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
