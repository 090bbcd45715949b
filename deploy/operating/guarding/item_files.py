"""Reading lists of items that people write as JSON, JSON lines or YAML; each item keeps its line number. Pure."""

import json
import re
from codecs import BOM_UTF8
from collections.abc import Iterator
from typing import Any

import msgspec
import yaml

from schemas.intake.wrong_entries import path_of_number_out_of_range

MAX_FILE_BYTES = 64 * 1024 * 1024
"""Size of the largest file that is read. Its items take several times as much memory."""

UNPRINTABLE: re.Pattern[str] = yaml.reader.Reader.NON_PRINTABLE
"""A character that YAML allows only as an escape."""

YamlLoader: type[yaml.SafeLoader | yaml.CSafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""Reads YAML; with libyaml, which is tens of times faster, if PyYAML was built with it."""

_YAML_TAG = "tag:yaml.org,2002:"
_PLAIN_TAGS = frozenset(f"{_YAML_TAG}{kind}" for kind in ("str", "int", "float", "bool", "null", "seq", "map"))
_ALLOWED_VALUES = "text (in quotes where it looks like something else), numbers, lists and mappings alone"
_SURROGATE = re.compile("[\ud800-\udfff]")
_ESCAPED_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_LONE_SURROGATE = "a lone surrogate (\\ud800 to \\udfff) is no Unicode text: repair or drop it"


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
    """Return the items of a file: those of a JSON array or a YAML list, or one JSON value in each line.

    The end of the name (``.json``, ``.jsonl``, ``.yaml``) decides the format, or else the first character. Of YAML,
    only text, numbers, lists and mappings are accepted. A key that occurs twice in a mapping is refused in all
    formats.

    Raises:
        BadFile: it is not of that format, or has more than :data:`MAX_FILE_BYTES`.
    """
    if len(raw) > MAX_FILE_BYTES:
        raise BadFile(f"{name}: more than {MAX_FILE_BYTES // 1024**2} MiB: split it into several files")
    raw = raw.removeprefix(BOM_UTF8)
    try:
        text = raw.decode()
    except UnicodeDecodeError as wrong:
        raise BadFile.at(name, _line_at(raw, wrong.start), "not UTF-8: convert the file") from wrong
    suffix = name.lower().rpartition(".")[2]
    start = raw.lstrip()[:1]
    if suffix in ("yaml", "yml"):
        return _yaml_items(name, text)
    if suffix in ("jsonl", "ndjson") or (suffix != "json" and start == b"{"):
        return list(_json_lines(name, raw))
    return _json_items(name, raw) if suffix == "json" or start == b"[" else _yaml_items(name, text)


def _json_lines(name: str, raw: bytes) -> Iterator[Item]:
    for number, line in enumerate(raw.split(b"\n"), 1):
        if line.strip():
            yield _json_item(name, number, line)


def _json_items(name: str, raw: bytes) -> list[Item]:
    try:
        pieces = msgspec.json.decode(raw, type=list[msgspec.Raw])
    except msgspec.ValidationError as wrong:
        raise BadFile.at(name, 1, "not a list: write the items between [ and ]") from wrong
    except (msgspec.DecodeError, RecursionError) as wrong:
        _refuse_lone_surrogates(name, 1, raw)
        raise BadFile.at(name, _line_at(raw, _byte_of(str(wrong), len(raw))), f"not JSON: {wrong}") from wrong
    items = []
    offset, line = 0, 1
    for piece in map(bytes, pieces):
        begin = raw.index(piece, offset)  # the items are pieces of the text, in order
        line += raw.count(b"\n", offset, begin)
        items.append(_json_item(name, line, piece))
        offset = begin + len(piece)
        line += piece.count(b"\n")
    return items


def _json_item(name: str, line: int, raw: bytes) -> Item:
    """Read one value, which begins on line ``line``."""
    _refuse_lone_surrogates(name, line, raw)
    try:
        # Both read it: msgspec is stricter, and only the standard library reports keys that occur twice.
        msgspec.json.decode(raw)
        return Item(line, json.loads(raw.decode(), object_pairs_hook=_mapping))
    except (msgspec.DecodeError, ValueError, RecursionError) as wrong:
        what = str(wrong) if isinstance(wrong, _KeyTwice) else f"not JSON: {wrong}"
        if isinstance(wrong, msgspec.ValidationError) and (path := path_of_number_out_of_range(raw.decode())):
            what = f"{path}: the number is out of range: write a smaller one"
        raise BadFile.at(name, line + raw.count(b"\n", 0, _byte_of(str(wrong), 0)), what) from wrong


class _KeyTwice(ValueError):
    """A key that occurs twice in one mapping."""

    def __init__(self, key: str) -> None:
        super().__init__(f"the key {key!r} stands twice in one mapping: keep one of them")


def _mapping(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise _KeyTwice(key)
        found[key] = value
    return found


def _refuse_lone_surrogates(name: str, line: int, raw: bytes) -> None:
    # The standard library reads them; msgspec reports them as a truncated input, which would mislead.
    first = _ESCAPED_SURROGATE.search(raw)
    if first is None:
        return
    try:
        json.dumps(json.loads(raw.decode()), ensure_ascii=False).encode()
    except UnicodeEncodeError as wrong:
        raise BadFile.at(name, line + raw.count(b"\n", 0, first.start()), _LONE_SURROGATE) from wrong
    except (ValueError, RecursionError):
        return  # not JSON: the caller's next step reports it


def _byte_of(message: str, otherwise: int) -> int:
    """Return the offset that msgspec names in a message such as ``JSON is malformed: ... (byte 12)``."""
    _, found, rest = message.partition("(byte ")
    offset = rest.partition(")")[0]
    return int(offset) if found and offset.isdigit() else otherwise


def _line_at(raw: bytes, offset: int) -> int:
    return raw.count(b"\n", 0, offset) + 1


def _yaml_items(name: str, text: str) -> list[Item]:
    control = UNPRINTABLE.search(text)
    if control is not None:
        line = text.count("\n", 0, control.start()) + 1
        raise BadFile.at(name, line, f"not YAML: the control character U+{ord(control[0]):04X}: drop it")
    try:
        _refuse_aliases(name, text)
        root = yaml.compose(text, Loader=YamlLoader)
        if root is None:
            return []
        if not isinstance(root, yaml.SequenceNode):
            raise BadFile.at(name, _line_of(root), "not a list: begin each item with a dash")
        _refuse_all_but_plain(name, root)
        loader = YamlLoader("")
        return [Item(_line_of(node), _plain_value(loader, name, node)) for node in root.value]
    except yaml.MarkedYAMLError as wrong:
        line = wrong.problem_mark.line + 1 if wrong.problem_mark is not None else 1
        problem = wrong.problem or wrong.context or ""
        what = _LONE_SURROGATE if "invalid Unicode character escape" in problem else f"not YAML: {problem}"
        raise BadFile.at(name, line, what) from wrong
    except (yaml.YAMLError, RecursionError) as wrong:
        raise BadFile(f"{name}: not YAML: {wrong}") from wrong


def _refuse_aliases(name: str, text: str) -> None:
    # With aliases, a few lines can expand to more items than fit into memory.
    if "*" not in text:
        return
    for event in yaml.parse(text, Loader=YamlLoader):
        if isinstance(event, yaml.AliasEvent):
            line = event.start_mark.line if event.start_mark is not None else 0
            raise BadFile.at(name, line + 1, "not YAML: aliases are not supported: repeat the text")


def _refuse_all_but_plain(name: str, root: yaml.Node) -> None:
    """Raise BadFile for the first node that is not text, a number, a list or a mapping, or that has invalid keys."""
    left = [root]
    while left:
        node = left.pop()
        if node.tag not in _PLAIN_TAGS:
            kind = node.tag.removeprefix(_YAML_TAG)
            raise BadFile.at(name, _line_of(node), f"{kind!r} is no type of value here: write {_ALLOWED_VALUES}")
        if isinstance(node, yaml.ScalarNode) and _SURROGATE.search(node.value):
            raise BadFile.at(name, _line_of(node), _LONE_SURROGATE)
        if isinstance(node, yaml.MappingNode):
            _check_keys(name, node)
            left += [each for pair in reversed(node.value) for each in reversed(pair)]
        elif isinstance(node, yaml.SequenceNode):
            left += reversed(node.value)


def _check_keys(name: str, mapping: yaml.MappingNode) -> None:
    seen = set()
    for key, _ in mapping.value:
        if not isinstance(key, yaml.ScalarNode):
            raise BadFile.at(name, _line_of(key), "a list or a mapping is no key: write a text")
        if key.tag == f"{_YAML_TAG}merge":
            raise BadFile.at(name, _line_of(key), "'<<' is not supported: repeat the keys")
        if (key.tag, key.value) in seen:
            raise BadFile.at(name, _line_of(key), str(_KeyTwice(key.value)))
        seen.add((key.tag, key.value))


def _plain_value(loader: yaml.SafeLoader | yaml.CSafeLoader, name: str, node: yaml.Node) -> Any:
    try:
        return loader.construct_document(node)
    except ValueError as wrong:  # a wrong number, such as !!int x
        raise BadFile.at(name, _line_of(node), f"not YAML: {wrong}") from wrong


def _line_of(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1
