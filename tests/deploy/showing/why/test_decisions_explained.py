"""``docs/decisions-explained.md`` says what every word and number of a decision means, and none that is gone."""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import msgspec
from msgspec import inspect

from deploy.cli.rendering import reason_texts
from deploy.cli.rendering.decision import Exchange
from deploy.cli.rendering.why.details import WITH_CONTEXT
from deploy.cli.rendering.why.lines import lines_on
from events.replay.explain import Explanation
from schemas.event import Failed
from schemas.vocabulary.memory import MemoryWandered

ROOT = Path(__file__).parents[4]
PAGE = (ROOT / "docs" / "decisions-explained.md").read_text()
_MODULES = ("details", "guards", "loops", "answer_sources")
TOLD = {
    *WITH_CONTEXT,
    MemoryWandered,
    *(
        kind
        for kind, tell in lines_on.registry.items()
        if tell.__module__.rpartition(".")[2] in _MODULES and not issubclass(kind, Failed)
    ),
}
"""The events on the path of an exchange that ``why`` tells in words."""

# Not about a decision: places in the log, and what an answer shows beside its numbers.
PLACES = {"seq", "cause_seq", "critical_path", "unreadable"}


def rows(text: str) -> list[list[str]]:
    """Return the cells of the tables' rows that begin with a word in backticks."""
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in text.splitlines()
            if line.startswith("| `")]  # fmt: skip


NUMBERS = {cells[0].strip("| `"): cells[1:] for cells in rows(PAGE.partition("\n## Numbers\n")[2])}
WORDS = {cells[0].strip("| `"): cells[1] for cells in rows(PAGE.partition("\n## Numbers\n")[0]) if len(cells) == 2}


class Number(msgspec.Struct, frozen=True):
    """A numeric field: its name, and whether it is a share in [0, 1]."""

    name: str
    unit: bool


def numbers(kind: inspect.Type, name: str = "", seen: tuple[type, ...] = ()) -> Iterator[Number]:
    """Yield the numeric fields of a type, those of the structs in it too."""
    match kind:
        case inspect.Metadata():
            yield from numbers(kind.type, name, seen)
        case inspect.FloatType() | inspect.IntType():
            yield Number(name, (kind.ge, kind.le) == (0.0, 1.0))
        case inspect.UnionType():
            yield from (found for one in kind.types for found in numbers(one, name, seen))
        case inspect.StructType() if kind.cls not in seen:
            for field in kind.fields:
                yield from numbers(field.type, field.encode_name, (*seen, kind.cls))
        case inspect.VarTupleType() | inspect.ListType():
            yield from numbers(kind.item_type, name, seen)
        case inspect.TupleType():
            yield from (found for one in kind.item_types for found in numbers(one, name, seen))
        case inspect.DictType():
            yield from numbers(kind.value_type, name, seen)


def printed() -> list[Number]:
    """Return every number that ``why`` and ``ask`` print of an exchange."""
    kinds: Iterable[type] = (Exchange, Explanation, *TOLD)
    found = (number for kind in kinds for number in numbers(inspect.type_info(kind)))
    return [number for number in found if number.name not in PLACES]


def test_every_number_that_is_printed_is_explained_with_its_range_and_what_moves_it() -> None:
    names = {number.name for number in printed()}
    assert len(names) > 60
    assert names <= set(NUMBERS)
    for name, (spread, says, moved) in NUMBERS.items():
        assert spread, name
        assert says.endswith("."), name
        assert moved, name


def test_no_number_is_explained_that_is_not_printed() -> None:
    assert set(NUMBERS) <= {number.name for number in printed()}


def test_shares_are_said_to_be_shares() -> None:
    bounds: dict[str, set[bool]] = {}
    for number in printed():
        bounds.setdefault(number.name, set()).add(number.unit)
    for name, units in bounds.items():
        if units == {True}:
            assert NUMBERS[name][0] == "0 to 1", name
        if units == {False}:
            assert NUMBERS[name][0] != "0 to 1" or name in ("drift", "reflection_fatigue", "confidence"), name


def test_every_stage_action_mode_and_reason_is_explained_in_the_words_of_the_sentences() -> None:
    tables: tuple[Mapping[str, str], ...] = (
        reason_texts.STAGES,  # type: ignore[assignment]  # literals are texts
        reason_texts.MODES,
        reason_texts.COHERENCE,
        reason_texts.RULES,
        reason_texts.BREAKER,
        reason_texts.ARBITER,
        reason_texts.DELIBERATIVE_FAILURES,
        reason_texts.ANSWER_FAULTS,  # type: ignore[assignment]  # literals are texts
        reason_texts.MODEL_FAILURES,
        reason_texts.UNSERVED,
        reason_texts.STANCES,
        reason_texts.GUARDRAILS,
        reason_texts.RETIRED,  # type: ignore[assignment]  # literals are texts
        reason_texts.ENDINGS,
    )
    for table in tables:
        for word, meaning in table.items():
            assert f"| `{word}` | {meaning} |\n" in PAGE, word
    for action, begins in reason_texts.ACTIONS.items():
        assert re.search(rf"^\| `{action}` \| {begins} \| .+ \|$", PAGE, re.MULTILINE), action


def test_no_word_is_explained_that_does_not_occur() -> None:
    known = {
        *reason_texts.STAGES,
        *reason_texts.MODES,
        *reason_texts.COHERENCE,
        *reason_texts.RULES,
        *reason_texts.BREAKER,
        *reason_texts.ARBITER,
        *reason_texts.DELIBERATIVE_FAILURES,
        *reason_texts.ANSWER_FAULTS,
        *reason_texts.MODEL_FAILURES,
        *reason_texts.UNSERVED,
        *reason_texts.STANCES,
        *reason_texts.GUARDRAILS,
        *reason_texts.RETIRED,
        *reason_texts.ENDINGS,
        "deadline",
        "ACTOR_failed",
        "flag:NAME",
    }
    assert set(WORDS) <= known


def test_the_page_is_linked_from_the_readme_and_its_links_lead_somewhere() -> None:
    assert "(docs/decisions-explained.md)" in (ROOT / "README.md").read_text()
    for target in re.findall(r"\]\(([^)#]+)\)", PAGE):
        assert (ROOT / "docs" / target).is_file(), target
