"""The layout of a tree of causes: the way to the end is one trunk, and everything else branches beside it. Pure.

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


def trunk_to_end(root: Node, way: Set[int]) -> Iterator[tuple[Node, tuple[Node, ...]]]:
    """Yield the events of a trunk from its root on, each with its other effects, the branches.

    ``way`` are the sequences of the way to the end (``Explanation.critical_path``). Where the trunk is not on that way,
    it follows the effect that led to most events, and ends if several led to equally many.
    """
    node: Node | None = root
    while node is not None:
        following = _following(node, way)
        yield node, tuple(child for child in node.led_to if child is not following)
        node = following


def _following(node: Node, way: Set[int]) -> Node | None:
    if len(node.led_to) < 2:
        return node.led_to[0] if node.led_to else None
    on_way = next((child for child in node.led_to if child.seq in way), None)
    if on_way is not None:
        return on_way
    *_, second, first = sorted(node.led_to, key=_weight)
    return first if _weight(first) > _weight(second) else None


def _weight(node: Node) -> int:
    return sum(1 for _ in nodes_below(node))
