"""Files that people write lists of items in: JSON, JSON lines or YAML, each item with the line it begins on. Pure."""

from collections.abc import Iterator
from typing import Any

import msgspec
import yaml

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class BadFile(ValueError):
    """A file that cannot be used; the message names it, the line and the remedy."""

    code = "invalid_input"

    @classmethod
    def at(cls, name: str, line: int, what: str) -> "BadFile":
        """Return the error of a line."""
        return cls(f"{name}, line {line}: {what}")


class Item(msgspec.Struct, frozen=True):
    """An item of a file as plain values, and the line it begins on, counted from 1."""

    line: int
    value: Any


def items_of(name: str, raw: bytes) -> list[Item]:
    """Return the items of a file: a JSON array, a JSON value a line, or a YAML list.

    The form is told by the name's end (``.json``, ``.jsonl``, ``.yaml``), else by the first character.

    Raises:
        BadFile: it is not of that form.
    """
    raw = raw.removeprefix(_BYTE_ORDER_MARK)
    try:
        raw.decode()
    except UnicodeDecodeError as wrong:
        raise BadFile.at(name, _line_at(raw, wrong.start), "not UTF-8: convert the file") from wrong
    suffix = name.lower().rpartition(".")[2]
    start = raw.lstrip()[:1]
    if suffix in ("yaml", "yml"):
        return _yaml_items(name, raw)
    if suffix in ("jsonl", "ndjson") or (suffix != "json" and start == b"{"):
        return list(_json_lines(name, raw))
    return _json_items(name, raw) if suffix == "json" or start == b"[" else _yaml_items(name, raw)


def _json_lines(name: str, raw: bytes) -> Iterator[Item]:
    for number, line in enumerate(raw.split(b"\n"), 1):
        if line.strip():
            try:
                yield Item(number, msgspec.json.decode(line))
            except (msgspec.DecodeError, RecursionError) as wrong:
                raise BadFile.at(name, number, f"not JSON: {wrong}") from wrong


def _json_items(name: str, raw: bytes) -> list[Item]:
    try:
        items = msgspec.json.decode(raw, type=list[msgspec.Raw])
        places = []
        at = 0
        for item in items:
            at = raw.index(bytes(item), at)  # the items are pieces of the text, in order
            places.append(Item(_line_at(raw, at), msgspec.json.decode(item)))
            at += len(item)
        return places
    except msgspec.ValidationError as wrong:
        raise BadFile.at(name, 1, "not a list: write the items between [ and ]") from wrong
    except (msgspec.DecodeError, RecursionError) as wrong:
        raise BadFile.at(name, _line_at(raw, _byte_of(str(wrong), len(raw))), f"not JSON: {wrong}") from wrong


def _byte_of(message: str, otherwise: int) -> int:
    """Return the place that msgspec names in a message such as ``JSON is malformed: ... (byte 12)``."""
    _, found, rest = message.partition("(byte ")
    place = rest.partition(")")[0]
    return int(place) if found and place.isdigit() else otherwise


def _line_at(raw: bytes, offset: int) -> int:
    return raw.count(b"\n", 0, offset) + 1


class _Loader(yaml.SafeLoader):
    """YAML without aliases: a few lines of them can stand for more items than any memory holds."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """Compose a node; raises for an alias."""
        if self.check_event(yaml.AliasEvent):
            alias = self.get_event()  # type: ignore[no-untyped-call]  # PyYAML has no types of its own
            problem = "aliases are not supported: repeat the text"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=alias.start_mark)
        return super().compose_node(parent, index)


def _yaml_items(name: str, raw: bytes) -> list[Item]:
    try:
        loader = _Loader(raw.decode())
        root = loader.get_single_node()
        if root is None:
            return []
        if not isinstance(root, yaml.SequenceNode):
            raise BadFile.at(name, root.start_mark.line + 1, "not a list: begin each item with a dash")
        return [Item(node.start_mark.line + 1, loader.construct_document(node)) for node in root.value]
    except yaml.MarkedYAMLError as wrong:
        line = wrong.problem_mark.line + 1 if wrong.problem_mark is not None else 1
        raise BadFile.at(name, line, f"not YAML: {wrong.problem or wrong.context}") from wrong
    except (yaml.YAMLError, ValueError, RecursionError) as wrong:
        if isinstance(wrong, BadFile):
            raise
        raise BadFile(f"{name}: not YAML: {wrong}") from wrong
