"""A tree of causes laid out for reading: the way to the end as one trunk, all else as branches beside it. Pure.

An answer is some ten to forty causes deep. A level of indentation for each would leave a terminal no room.
"""

from collections.abc import Iterator, Set

from events.replay.explain import Node


def nodes_below(node: Node) -> Iterator[Node]:
    """Yield an event and all that it led to, causes before what they led to, in stream order among brothers."""
    waiting = [node]
    while waiting:
        found = waiting.pop()
        yield found
        waiting += reversed(found.led_to)


def trunk_to_end(root: Node, way: Set[int]) -> Iterator[tuple[Node, tuple[Node, ...]]]:
    """Yield a root and, one after another, the event that each led to on the way, with what else it led to.

    ``way`` are sequences (``Explanation.way``). Beside and behind it the trunk follows what led to most; where several
    led to as much it ends.
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
