"""The causal tree of an exchange, for people. Pure."""

from collections.abc import Iterable, Iterator

import msgspec
from rich.console import Group, RenderableType
from rich.text import Text
from rich.tree import Tree

from actors.router.settings import RouterSettings
from deploy.rendering.details import Case, details
from deploy.rendering.printable import printable
from events.explain import Explanation, Node
from schemas.catalogue import CATALOGUE
from schemas.event import ROOT, Event
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.responder import ResponseEmitted
from schemas.vocabulary.router import ModeSelected


def nodes_of(explanation: Explanation) -> Iterator[Node]:
    """Yield every event of an exchange, causes before what they led to."""
    waiting = list(reversed(explanation.roots))
    while waiting:
        node = waiting.pop()
        yield node
        waiting += reversed(node.led_to)


def event_of(node: Node) -> Event:
    """Return a node's event, typed."""
    return msgspec.convert(node.body, CATALOGUE[node.topic].event)


def routing_decision(explanation: Explanation) -> tuple[Node, ModeSelected] | None:
    """Return the exchange's last choice of a mode, or None when it was never routed."""
    found = None
    for node in nodes_of(explanation):
        event = event_of(node)
        if isinstance(event, ModeSelected):
            found = node, event
    return found


def render(explanation: Explanation, router: RouterSettings | None = None) -> RenderableType:
    """Return the tree with the numbers of each decision, where the time went, and what was never reached.

    ``router`` are the router's settings in force then, where they are not the defaults.
    """
    events = [event_of(node) for node in nodes_of(explanation)]
    case = Case(next((event for event in events if isinstance(event, InputReceived)), None), router)
    title = Text().append("exchange ").append(printable(explanation.exchange), "bold")
    title.append(printable(f"  agent {explanation.agent}  session {explanation.session}"))
    tree = Tree(title, guide_style="dim")
    for root in explanation.roots:
        _grow(tree, root, case)
    return Group(tree, *_closing(explanation, events))


def _grow(tree: Tree, node: Node, case: Case) -> None:
    heading = Text().append(node.topic.removeprefix(f"{ROOT}."), "bold cyan")
    heading.append(f"  sequence {node.seq}", "dim")
    if node.seq and node.since_start_ms:
        heading.append(f"  +{node.since_start_ms:g} ms", "dim")
    branch = tree.add(Group(heading, *details(event_of(node), case)))
    for child in node.led_to:
        _grow(branch, child, case)


def _closing(explanation: Explanation, events: Iterable[Event]) -> Iterator[Text]:
    ended = any(isinstance(event, ResponseEmitted) for event in events)
    if not ended:
        yield Text("the exchange is open: it has no end yet", "yellow")
    yield Text(f"time: {_times(explanation)}")
    if explanation.unreached:
        yield Text(f"never reached: {', '.join(explanation.unreached)}")
    if explanation.unreadable:
        places = ", ".join(map(str, explanation.unreadable))
        yield Text(f"cannot be read by this release: sequence {places}", "red")
    if explanation.complete:
        yield Text("causal chain: complete, from the end back to the input")
    elif ended:
        yield Text("causal chain: broken, a cause between the end and the input is missing from the log", "red")


def _times(explanation: Explanation) -> str:
    """Say what each step took, from its cause's server time to its own, and how much of that was deciding."""
    steps = [
        f"{node.owner} {node.since_cause_ms:g} ms" + (f" (deciding {node.decided_us} µs)" if node.decided_us else "")
        for node in nodes_of(explanation)
        if node.since_start_ms
    ]
    return "; ".join([f"{explanation.total_ms:g} ms in all", *steps])
