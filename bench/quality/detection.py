"""Detection: which attacks the guards find in sources that they were not trained on, and what judging a text costs.

For every fold of sources the scorer (intuition's trained model) and the trust evaluator (appraisal's) are trained anew
on the other folds, and their thresholds are fixed on those. Rows that quote a held-out row are left out as well. Reflex
is as it ships, with its built-in signatures ``standard``, and with the few of ``seed``: they are written, not trained.
Harmless tasks hidden in texts (``indirect_benign_payload``, ``latent_jailbreak``) and plain requests for harm are
reported apart. ``harm``: appraisal's rules see a request for harm, on which coherence rejects. If
securevector-guardian-model is installed, it is judged on the same rows; what it was trained on is not known.

Run it with ``python -m bench.quality.detection PROMPTS...``.
"""

import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from actors.appraisal.measures.risks import intent_of
from actors.appraisal.measures.trust import trust_of
from actors.intuition.scorer import score
from bench.decisions.router import PARAGRAPH
from bench.harness.table import percentiles, record
from bench.quality.reflex_detection import blocking
from deploy.training.judge_fitting import FOLDS, held_out_scores, prepare
from deploy.training.labelled_corpus import EXCLUDED_CATEGORIES, INDIRECT, Row, is_direct, load_rows
from deploy.training.report import fired_by_fold
from deploy.training.train_judges import RECIPES

Fired = npt.NDArray[np.bool_]
"""For each row of a corpus, whether a guard stops it."""

COST_SIZES = {"200 B": 200, "2 KB": 2_000, "100 KB": 100_000, "1 MB": 1_000_000}
"""Name -> length of a text, in characters."""

_SECONDS_PER_CASE = 1.0


class Group(msgspec.Struct, frozen=True):
    """The share of a group's rows that each guard stops."""

    name: str
    rows: int
    shares: dict[str, float]


class Cost(msgspec.Struct, frozen=True):
    """What judging one text costs, in microseconds."""

    judge: str
    size: str
    p50_us: float
    p99_us: float


class Result(msgspec.Struct, frozen=True):
    """Shares by aim (attacks or benign texts), by category, and by category and source; and costs."""

    aims: tuple[Group, ...]
    categories: tuple[Group, ...]
    sources: tuple[Group, ...]
    costs: tuple[Cost, ...]


def run(files: Sequence[Path], folds: int = FOLDS) -> Result:
    """Judge a corpus by held-out folds of its sources."""
    prepared = prepare([row for file in files for row in load_rows(file)], folds)
    rows = prepared.corpus
    fired = {
        "seed": _stopped(rows, blocking("seed")),
        "reflex": _stopped(rows, blocking("standard")),
        **{
            name: fired_by_fold(prepared, held_out_scores(prepared, recipe), recipe) for name, recipe in RECIPES.items()
        },
        "harm": _stopped(rows, lambda text: intent_of(text).risks.harm),
    }
    fired["together"] = fired["reflex"] | fired["scorer"] | fired["trust"]
    peer = _peer()
    if peer is not None:
        fired["guardian"] = _stopped(rows, peer)
    return Result(_aims(rows, fired), _categories(rows, fired), _sources(rows, fired), costs())


def _stopped(rows: Sequence[Row], guard: Callable[[str], bool]) -> Fired:
    return np.array([guard(row.text) for row in rows])


def _peer() -> Callable[[str], bool] | None:
    try:
        from svguardian import resolve_runtime
        from svguardian.model.pure_infer import PureGuardian
        from svguardian.window import predict_windowed
    except ModuleNotFoundError:
        return None
    guardian = PureGuardian.load(resolve_runtime())

    def stops(text: str) -> bool:
        # With whole long texts, this would take minutes. The peer reads a text in windows, several of which fit here.
        return str(predict_windowed(guardian, text[:4_000])["verdict"]).lower() not in {"benign", "safe", "allow"}

    return stops


def _group(name: str, members: Fired, fired: dict[str, Fired]) -> Group:
    return Group(
        name, int(members.sum()), {guard: round(float(hit[members].mean()), 4) for guard, hit in fired.items()}
    )


def _aims(rows: Sequence[Row], fired: dict[str, Fired]) -> tuple[Group, ...]:
    aims = {
        "direct attacks": [row.attack and is_direct(row.category) for row in rows],
        "indirect injections": [row.category in INDIRECT for row in rows],
        "benign (false alarms)": [row.label == "benign" for row in rows],
        "hard benign (false alarms)": [row.label == "hard_benign" for row in rows],
    }
    return tuple(_group(name, np.array(members), fired) for name, members in aims.items())


def _categories(rows: Sequence[Row], fired: dict[str, Fired]) -> tuple[Group, ...]:
    names = sorted({(row.label, row.category in EXCLUDED_CATEGORIES, row.category) for row in rows})
    return tuple(
        _group(
            f"{label}: {category}{' (apart)' if apart else ''}",
            np.array([(row.label, row.category) == (label, category) for row in rows]),
            fired,
        )
        for label, apart, category in names
    )


def _sources(rows: Sequence[Row], fired: dict[str, Fired]) -> tuple[Group, ...]:
    names = sorted({(row.label, row.category, row.source) for row in rows})
    return tuple(
        _group(
            f"{category}: {source}",
            np.array([(row.label, row.category, row.source) == (label, category, source) for row in rows]),
            fired,
        )
        for label, category, source in names
    )


def costs() -> tuple[Cost, ...]:
    """Measure what judging a text costs, by size."""
    judges: dict[str, Callable[[str], Any]] = {"scorer": score, "trust": lambda text: trust_of("text", text)}
    return tuple(
        Cost(name, size, *percentiles(partial(judge, text), _SECONDS_PER_CASE))
        for name, judge in judges.items()
        for size, text in (
            (size, (PARAGRAPH * (length // len(PARAGRAPH) + 1))[:length]) for size, length in COST_SIZES.items()
        )
    )


def show(result: Result) -> None:
    """Print the result as tables."""
    guards = list(result.aims[0].shares)
    for title, groups in (("", result.aims), ("by category", result.categories), ("by source", result.sources)):
        width = max(len(group.name) for group in groups)
        print(f"{title.ljust(width)} {'rows':>6} " + " ".join(guard.rjust(9) for guard in guards))
        for group in groups:
            shares = " ".join(f"{100 * share:8.1f}%" for share in group.shares.values())
            print(f"{group.name.ljust(width)} {group.rows:6} {shares}")
        print()
    _show_costs(result.costs)


def _show_costs(found: Sequence[Cost]) -> None:
    for cost in found:
        print(f"{cost.judge:8} {cost.size:>7}  p50 {cost.p50_us:10,.1f} us  p99 {cost.p99_us:10,.1f} us")


def main() -> None:
    """Judge the files named on the command line and print the tables; without one, only the costs."""
    if len(sys.argv) > 1:
        result = run(tuple(map(Path, sys.argv[1:])))
        record(result)
        show(result)
        return
    print("no corpus given (python -m bench.quality.detection PROMPTS...): costs only")
    found = costs()
    record(found)
    _show_costs(found)


if __name__ == "__main__":
    main()
