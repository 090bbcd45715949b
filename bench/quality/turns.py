"""Routing of texts from sources that training had not seen, with much or little remembered about their topic.

How much is remembered is called cold, young, moderate or warm. For every fold of sources the model of kinds of turns is
trained anew on the other folds (and on the project's own phrases). Every held-out text is then routed as live: signals,
weights and thresholds are those that ship. A mode is right if the label allows it; for benign prompts that say all that
is needed, RESPOND and ACT are right. ``underspecified`` are a hundred turns of the project's own that are not in the
training; they are read by the weights that ship.

Run it with ``python -m bench.quality.turns FILE...``, each of labelled turns as ``deploy.training.turn_rows`` reads
them; without files only what ships is measured.
"""

import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import partial
from importlib.resources import files
from pathlib import Path

import msgspec
import numpy as np

from actors.appraisal.measures.turn_reading import turn_model, turn_reading_of
from actors.contract.text.dialogue_act.model import TurnModel
from actors.memory.familiarity import warmth
from actors.router.selection import Context, select_mode, signals_of
from actors.router.settings import RouterSettings
from bench.harness.table import percentiles
from schemas.vocabulary.appraisal import TurnReading
from schemas.vocabulary.memory import COLD, Familiarity
from schemas.vocabulary.router import Mode

FOLDS = 5
"""Groups of sources, each of which is held out once."""

INSTRUCTIONS = frozenset({"instruction", "coding", "short_prompt", "roleplay_act_as", "multi_benign", "trigger_words"})
"""Categories of prompts that are requests and say all that is needed."""

_COST_S = 0.5  # seconds for which each reading is repeated


def familiarity_of(turns: int, gists: int, facts: int) -> Familiarity:
    """Return what memory reports about a session with these numbers of turns, gists (exchanges in a line) and facts."""
    return msgspec.structs.replace(
        COLD,
        context_warmth=warmth(gists, facts, turns),
        working_memory_turns=turns,
        gist_count=gists,
        fact_count=facts,
        is_new_topic=not turns,
        session_exchange_count=turns,
    )


# Warmth is how much is remembered about a session's topic.
BY_WARMTH = {
    "cold": COLD,
    "young": familiarity_of(1, 1, 0),
    "moderate": familiarity_of(3, 2, 2),
    "warm": familiarity_of(4, 5, 5),
}


class Case(msgspec.Struct, frozen=True):
    """A text with its label: the modes that are right."""

    group: str
    text: str
    right: frozenset[Mode]


def underspecified() -> tuple[str, ...]:
    """Return the project's own turns in which something is missing that only the person can supply."""
    return tuple(files("bench").joinpath("quality", "underspecified.txt").read_text(encoding="utf-8").splitlines())


def routed(text: str, reading: TurnReading, familiarity: Familiarity, settings: RouterSettings) -> Mode:
    """Return the mode that a text is routed to, as the first of its session."""
    return select_mode(signals_of(text, familiarity, reading), Context(), settings).selected_mode


def shares(cases: Sequence[Case], readings: Sequence[TurnReading]) -> dict[str, dict[str, float]]:
    """Return the share of each group that is routed correctly, by the warmth of the context."""
    settings = RouterSettings()
    right: Counter[tuple[str, str]] = Counter()
    for case, reading in zip(cases, readings, strict=True):
        for name, familiarity in BY_WARMTH.items():
            right[case.group, name] += routed(case.text, reading, familiarity, settings) in case.right
    sizes = Counter(case.group for case in cases)
    return {group: {name: right[group, name] / size for name in BY_WARMTH} for group, size in sorted(sizes.items())}


def own_cases() -> list[Case]:
    """Return the project's own underspecified turns as cases."""
    return [Case("underspecified", text, frozenset({"CLARIFY"})) for text in underspecified()]


def group_of(source: str, category: str, kinds: Iterable[str]) -> str:
    """Return the group in which a row of a corpus is counted; empty: in none. ``kinds`` are its labels.

    SGD is a public corpus of dialogues with assistants, CLINC one of single requests to them.
    """
    if source.startswith("SGD"):
        return "SGD, lacking" if "underspecified" in kinds else "SGD, complete"
    if source.startswith("CLINC "):
        return "CLINC, social" if {*kinds} == {"social"} else "CLINC, requests"
    return "instructions" if category in INSTRUCTIONS else category


def held_out(paths: Sequence[Path], folds: int = FOLDS, most: int = 300) -> dict[str, dict[str, float]]:
    """Return shares on the texts of files, each read by weights that were trained without its source."""
    from deploy.training.turn_fitting import fit_turns, folds_of, prepare
    from deploy.training.turn_rows import MODES_OF, WRITTEN, load_turns, thin_out, written_turns

    rows = [*thin_out(load_turns(paths), most), *written_turns()]
    prepared = prepare(rows)
    fold_of, own = folds_of(prepared, folds), np.array([row.source.startswith(WRITTEN) for row in rows])
    sharpness = turn_model().sharpness  # the factor of the sum of a text's weights, as it ships
    cases, readings = [], []
    for fold in range(folds):
        model = fit_turns(prepared, np.nonzero((fold_of != fold) | own)[0], sharpness)
        for index in np.nonzero((fold_of == fold) & ~own)[0].tolist():
            row = rows[index]
            right = frozenset(mode for kind in row.kinds for mode in MODES_OF[kind])
            cases.append(Case(group_of(row.source, row.category, row.kinds), row.text, right))
            readings.append(turn_reading_of(row.text, model))
        print(f"fold {fold + 1} of {folds}", file=sys.stderr)
    return shares(cases, readings)


def cost(model: TurnModel) -> tuple[tuple[float, float], ...]:
    """Return the median and the 99th percentile of reading a short, a middling and a long text, in microseconds."""
    texts = ("fix it", "What is the capital of Peru, and how many people live there?", "A long letter. " * 400)
    return tuple(percentiles(partial(turn_reading_of, text, model), _COST_S) for text in texts)


def main(paths: Sequence[Path]) -> None:
    """Print shares and costs."""
    own = own_cases()
    found = shares(own, [turn_reading_of(case.text) for case in own])
    if paths:
        found |= held_out(paths)
    print(f"{'routed right, of texts of unseen sources':42}{''.join(f'{name:>10}' for name in BY_WARMTH)}")
    for group, by_warmth in found.items():
        print(f"{group:42}{''.join(f'{by_warmth[name]:10.1%}' for name in BY_WARMTH)}")
    for size, (p50, p99) in zip(("short", "middling", "long"), cost(turn_model()), strict=True):
        print(f"reading a {size} text: p50 {p50:.0f} µs, p99 {p99:.0f} µs")


if __name__ == "__main__":
    main([Path(argument) for argument in sys.argv[1:]])
