"""Reading reflex's pattern sets from files that people write, and their imports from the log."""

import re
from typing import Any

import msgspec
import yaml

from actors.reflex.imported_patterns import Imports, with_event
from actors.reflex.library import InvalidLibrary, make_library
from actors.reflex.library import Path as LibraryPath
from actors.reflex.settings import ReflexSettings
from deploy.operating.agent_events import events_of_agent
from deploy.operating.guarding.item_files import UNPRINTABLE, BadFile, Item, YamlLoader, items_of
from events.decoding import Recorded, decode
from events.replay.sources import Source
from schemas.actor import readable_settings
from schemas.event import topic_of
from schemas.intake.strict import did_you_mean, quoted_name, validation_error
from schemas.names import wrong_with_name
from schemas.subjects import NO_PARTITION, stored_subject, topic_filter
from schemas.vocabulary.patterns import PatternSet, PatternsImported, PatternsWithdrawn, Signature
from schemas.vocabulary.reflex import ReflexConfigured

# A step of a path in msgspec's errors, such as `.signatures[2]`: a key, or an index.
_STEP = re.compile(r"\.(\w+)|\[(\d+)\]")
# A number such as `1e-9`, which YAML 1.1 reads as text since it has no decimal point.
_EXPONENT = re.compile(r"[-+]?\d+[eE][-+]?\d+")


def sets_in(name: str, raw: bytes) -> tuple[PatternSet, ...]:
    """Return the pattern sets of a file: a YAML list, a JSON array, or one JSON value in each line.

    Raises:
        BadFile: the file or anything in it cannot be used; the message names the line.
    """
    items = items_of(name, raw)
    if not items:
        raise BadFile(f"{name}: there is no pattern set in it")
    try:
        sets = tuple(_set_of(item, index) for index, item in enumerate(items))
        make_library(sets)
    except InvalidLibrary as wrong:
        index = wrong.path[0] if wrong.path else 0
        line = line_of(raw, wrong.path) or items[int(index)].line
        raise BadFile.at(name, line, str(wrong)) from wrong
    return sets


def _set_of(item: Item, position: int) -> PatternSet:
    """Return an item as a pattern set; raises InvalidLibrary, whose path begins with the item's position."""
    try:
        pattern = msgspec.convert(item.value, PatternSet)
    except msgspec.ValidationError as wrong:
        what, (_, _, where) = (
            str(validation_error(PatternSet, wrong, "a pattern set", item.value)),
            str(wrong).partition(" - at `$"),
        )
        path = tuple(int(index) if index else key for key, index in _STEP.findall(where))
        if path == ("confidence",) and _EXPONENT.fullmatch(str(item.value["confidence"])):
            written = item.value["confidence"]
            what = f"confidence: YAML reads {written!r} as a text, for want of a point: write 0.000000001 or 1.0e-9"
        raise InvalidLibrary(what, (position, *path)) from wrong
    _refuse_unknown_keys(item.value, PatternSet, (position,))
    if complaint := wrong_with_name(pattern.name):
        raise InvalidLibrary(f"the name {complaint}", (position, "name"))
    for number, written in enumerate(item.value["signatures"]):
        if isinstance(written, dict):
            _refuse_unknown_keys(written, Signature, (position, "signatures", number))
    return pattern


def _refuse_unknown_keys(written: dict[str, Any], kind: type[msgspec.Struct], path: LibraryPath) -> None:
    # Events accept unknown keys, so that older readers survive newer writers. In a file, an unknown key is a mistake.
    for key in written:
        if key not in kind.__struct_fields__:
            what = f"there is no field {quoted_name(str(key))}: {did_you_mean(str(key), kind.__struct_fields__)}"
            raise InvalidLibrary(what, (*path, key))


def line_of(raw: bytes, path: LibraryPath) -> int | None:
    """Return the line, counted from 1, of a value in a JSON or YAML document; None if it cannot be found.

    JSON is read as YAML, of which it is a part, except for tabs between tokens and some characters in strings: these
    are replaced first.
    """
    text = UNPRINTABLE.sub("?", raw.decode(errors="replace").replace("\t", " "))
    try:
        node = yaml.compose(text, Loader=YamlLoader)
        for step in path:
            node = _child(node, step)
    except (yaml.YAMLError, RecursionError, LookupError):
        return None
    return None if node is None else int(node.start_mark.line) + 1


def _child(node: yaml.Node | None, step: str | int) -> yaml.Node:
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int):
        found: yaml.Node = node.value[step]
        return found
    if isinstance(node, yaml.MappingNode):
        # Where the key itself is wrong or missing, the line of its mapping is the nearest.
        return next((value for key, value in node.value if key.value == step), node)
    raise LookupError(step)


def in_force(imports: Imports, event: PatternsImported) -> bool:
    """Whether the same sets are already in force under the same name, whoever imported them."""
    return any(entry.name == event.name and entry.sets == event.sets for entry in imports.entries)


async def imports_in(source: Source) -> Imports:
    """Return the imports in force at the end of a log."""
    kinds = (PatternsImported, PatternsWithdrawn)
    filters = [stored_subject(topic_of(kind), NO_PARTITION, NO_PARTITION) for kind in kinds]
    found = Imports()
    async for record in events_of_agent(source, "", filters, unread=source.unread):
        if isinstance(record.message.event, PatternsImported | PatternsWithdrawn):
            found = with_event(found, record.message.event)
    return found


async def recorded_settings(source: Source) -> ReflexSettings | None:
    """Return the settings that reflex recorded last; None if the log has none that this release can read."""
    found = None
    end = (await source.info()).last_seq
    async for batch in source.history([topic_filter(topic_of(ReflexConfigured))], 0, end):
        for each in map(decode, batch):
            if isinstance(each, Recorded) and isinstance(each.message.event, ReflexConfigured):
                found = readable_settings(each.message.event, ReflexSettings) or found
    return found
