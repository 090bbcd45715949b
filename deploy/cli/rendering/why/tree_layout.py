"""The layout of a tree of causes: the critical path to the end is one trunk, all else branches off it. Pure.

An answer has some ten to forty causes, one after another. With a level of indentation for each, the text would not fit
on a terminal.
"""

from collections.abc import Iterator, Set

from events.replay.explain import Node


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
