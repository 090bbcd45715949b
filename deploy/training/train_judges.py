"""Training the two judges, intuition's scorer and appraisal's trust evaluator, on labelled files.

It writes their weights, and a report of the attacks that they catch in held-out sources.
"""

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from actors.contract.text.judge.model import dump_model
from deploy.training.judge_fitting import Recipe, held_out_scores, prepare, train
from deploy.training.labelled_corpus import EXCLUDED_CATEGORIES, Row, family_of, load_rows
from deploy.training.report import around_report, fired_by_fold, tally_caught, write_report
from events.files.whole_files import replace_files

SCORER = Recipe(
    kind="scorer",
    without=frozenset({"authored_role_reversal"}),
    penalty=0.1,
    rounds=2,
    benign=0.002,
    hard=0.01,
)
"""Intuition's scorer learns attacks of every kind, above all those that a user sends."""

TRUST = Recipe(
    kind="trust",
    without=frozenset({"jailbreak", "authored_persona", "authored_forced_start", "authored_published_techniques"}),
    penalty=0.2,
    rounds=1,
    benign=0.002,
    hard=0.01,
    stressed=frozenset({"authored_role_reversal", "authored_override"}),
)
"""Appraisal's trust evaluator learns role reversal, override, extraction and orders in documents, but not personas.

Role reversal and override are stressed, that is, weighted more: the breaker decides by them, and the corpora have few
rows of the first.
"""


RECIPES = {"scorer": SCORER, "trust": TRUST}
"""Name of a judge -> its recipe."""

LEAST_SOURCES = 3
"""The least number of sources of attacks, and of harmless texts: thresholds are chosen on held-out sources."""


def train_into(
    files: Sequence[Path], folder: Path, report: Path | None = None, more_rows: Sequence[Row] = ()
) -> Iterator[str]:
    """Train every judge on labelled prompts and write it as ``<judge>.npz``; yields a line about each step.

    ``more_rows`` are trained on besides those of the files. ``folder`` is made if it is missing. ``report`` is a
    Markdown file, in which the part between the report's marks is replaced; a missing file is written.

    Raises:
        ValueError: a file cannot be read, or they are too small to train on; the message says where.
    """
    rows = [*(row for file in files for row in load_rows(file)), *more_rows]
    _check(rows, ", ".join(file.name for file in files))
    # Training takes minutes. So a folder or a report that cannot be written is refused before it.
    folder.mkdir(parents=True, exist_ok=True)
    if report is not None:
        around_report(report)
    prepared = prepare(rows)
    yield f"{len(rows)} rows, {len(prepared.rows) - len(rows)} of our own, {len(prepared.grams.keys)} n-grams"
    fired = {}
    written = {}
    for name, recipe in RECIPES.items():
        scores = held_out_scores(prepared, recipe)
        fired[name] = fired_by_fold(prepared, scores, recipe)
        model = train(prepared, recipe, scores)
        data = dump_model(model)
        written[folder / f"{name}.npz"] = data
        yield (
            f"{name}-{hashlib.sha256(data).hexdigest()[:8]}: {len(model.table.keys)} n-grams, {len(data)} bytes, "
            f"threshold {model.threshold:.3f}"
        )
    replace_files(written)  # both or none: their thresholds belong together
    found = tally_caught(rows, fired)
    yield from found.lines()
    if report is not None:
        write_report(found, report)
        yield f"report: {report}"


def _check(rows: Sequence[Row], names: str) -> None:
    for kind, is_attack in (("attacks", True), ("others", False)):
        sources = {
            family_of(row.source) for row in rows if row.attack is is_attack and row.category not in EXCLUDED_CATEGORIES
        }
        if len(sources) < LEAST_SOURCES:
            raise ValueError(
                f"{names}: {kind} of {len(sources)} sources, and thresholds are fixed on held-out ones: "
                f"name at least {LEAST_SOURCES} different `source`s of each"
            )
