"""Labelled turns, from files and from phrases written for this project: which kinds of turn a text may be.

The five kinds: ``answerable`` (it can be answered as it stands), ``task`` (it asks for something to be done),
``recall`` (it asks for what was said before), ``underspecified`` (it lacks what only the user can supply) and
``social`` (a courtesy).

A file is JSON Lines. A line has a ``text``, a ``source``, and a label in one of three forms: ``reads`` (some of the
five kinds), ``ok`` (the modes that would be right for the text as the first input of a session), or ``label`` and
``category``, as corpora of prompts have them: benign texts there can be answered as they are. A label may allow
several kinds; training decides between them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.resources import files
from itertools import islice, product
from math import gcd, prod
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec

from actors.contract.text.dialogue_act.model import TurnKind
from deploy.training.labelled_files import Label, labelled_rows
from schemas.vocabulary.router import Mode

WRITTEN = "written:"
"""The prefix of sources of phrases that were written for this project."""

MOST_OF_SOURCE = 300
"""The most rows used of one source, evenly spaced: more of the same teach little."""

MOST_OF_TEMPLATE = 100
"""About how many fillings of a template are used."""

# Mode -> the kinds of turn for which it would be right.
_KINDS_OF_MODE: Mapping[Mode, frozenset[TurnKind]] = MappingProxyType(
    {
        "RESPOND": frozenset({"answerable", "task"}),
        "ACT": frozenset({"recall", "task", "answerable"}),
        "CLARIFY": frozenset({"underspecified"}),
        "ACKNOWLEDGE": frozenset({"social"}),
        "IGNORE": frozenset(),
    }
)
MODES_OF: Mapping[TurnKind, tuple[Mode, ...]] = MappingProxyType(
    {
        "answerable": ("RESPOND", "ACT"),
        "task": ("RESPOND", "ACT"),
        "recall": ("ACT", "RESPOND"),
        "underspecified": ("CLARIFY",),
        "social": ("ACKNOWLEDGE",),
    }
)
"""Kind of turn -> the modes that are right for it if nothing is known of the session."""

_REQUESTS = frozenset[TurnKind]({"answerable", "task"})
"""The kinds that a benign prompt of a corpus may be."""

_UTTERANCES = frozenset({"short_query", "dialogue_turn", "non_english", "ordinary_trigger_english"})
"""Categories of short utterances, some of which are courtesies or questions about what was said."""

_DOCUMENTS = frozenset(
    [
        "answer",
        "assistant_answer",
        "code",
        "code_with_trigger_words",
        "document",
        "long_document",
        "non_english_long",
        "paragraph",
        "security_discussion",
        "security_document",
        "tool_output",
    ]
)
"""Categories of texts that people paste rather than say."""

MOST_DOCUMENTS = 40
"""The most documents used of one source: a few are enough to recognise documents."""

_UNCLEAR = frozenset({"dialogue_turn"})
"""Categories in which requests that lack something are as common as others: they are not trained on."""


class TurnRow(msgspec.Struct, frozen=True):
    """A text, the kinds of turn that it may be, and its source.

    ``labelled_singly`` says whether the label was given to this text by itself, and not to its whole category.
    """

    text: str
    kinds: frozenset[TurnKind]
    source: str
    category: str = ""
    labelled_singly: bool = False


class _Line(msgspec.Struct, frozen=True):
    """A line of a file, with one of the three forms of a label."""

    text: str
    source: str = "unnamed"
    reads: tuple[TurnKind, ...] | None = None
    ok: tuple[Mode, ...] | None = None
    label: Label | None = None
    category: str = ""


def load_turns(paths: Iterable[Path]) -> list[TurnRow]:
    """Return the rows of files of labelled turns; attacks, and lines without a usable label, are left out.

    Raises:
        ValueError: a line cannot be read; the message names it.
    """
    found = (_row(line) for path in paths for line in labelled_rows(path, _Line))
    return [row for row in found if row is not None]


def thin_out(rows: Sequence[TurnRow], most: int = MOST_OF_SOURCE) -> list[TurnRow]:
    """Return at most ``most`` rows of each source, evenly spaced and in order; and all rows labelled one by one."""
    by_source: dict[tuple[str, bool], list[int]] = {}
    for index, row in enumerate(rows):
        if not row.labelled_singly:
            by_source.setdefault((row.source, row.category in _DOCUMENTS), []).append(index)
    kept = {
        index
        for (_, documents), indices in by_source.items()
        for index in _spaced(indices, min(most, MOST_DOCUMENTS) if documents else most)
    }
    return [row for index, row in enumerate(rows) if row.labelled_singly or index in kept]


def written_turns() -> list[TurnRow]:
    """Return the phrases of ``turns.json``: templates with their slots filled, and phrases by language."""
    written: dict[str, Any] = msgspec.json.decode(files("deploy.training").joinpath("turns.json").read_bytes())
    rows = []
    for kind, templates in written["templates"].items():
        for template in templates:
            source = f"{WRITTEN}{kind}:{template['name']}"
            rows += [TurnRow(text, frozenset({kind}), source) for text in _fillings(template)]
    for kind, by_language in written["phrases"].items():
        for language, phrases in by_language.items():
            rows += [TurnRow(text, frozenset({kind}), f"{WRITTEN}{kind}:{language}") for text in phrases]
    return rows


def _row(line: _Line) -> TurnRow | None:
    if not line.text.strip():
        return None
    if line.reads is not None:
        kinds = frozenset(line.reads)
    elif line.ok is not None:
        kinds = frozenset().union(*(_KINDS_OF_MODE[mode] for mode in line.ok))
    elif line.label in ("benign", "hard_benign") and line.category not in _UNCLEAR:
        kinds = _REQUESTS | ({"social", "recall"} if line.category in _UTTERANCES else set())
    else:
        return None
    labelled_singly = line.reads is not None or line.ok is not None
    return TurnRow(line.text, kinds, line.source, line.category, labelled_singly) if kinds else None


def _fillings(template: Mapping[str, Any]) -> Iterator[str]:
    slots = {name: choices for name, choices in template.items() if name not in ("name", "pattern")}
    total = prod(map(len, slots.values()))
    # With a step that has no common factor with the number of fillings, every choice of every slot comes early.
    step = max(1, total // MOST_OF_TEMPLATE)
    while gcd(step, total) > 1:
        step += 1
    for chosen in islice(product(*slots.values()), 0, None, step):
        yield template["pattern"].format(**dict(zip(slots, chosen, strict=True))).strip()


def _spaced(indices: Sequence[int], most: int) -> Sequence[int]:
    if len(indices) <= most:
        return indices
    return [indices[number * len(indices) // most] for number in range(most)]
