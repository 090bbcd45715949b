"""Training both judges on labelled files: writes their weights, and a report of what they catch in held-out sources."""

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from actors.contract.text.judge.model import dump_model
from deploy.training.judge_fitting import held_out_scores, prepare, trained
from deploy.training.labelled_corpus import APART, Row, family_of, load_rows
from deploy.training.recipes import SCORER, TRUST
from deploy.training.report import around_report, fired_by_fold, tally_caught, write_report

RECIPES = {"scorer": SCORER, "trust": TRUST}
"""Judge -> how it is trained."""

LEAST_SOURCES = 3
"""Sources of attacks, and of harmless texts, that there must be: thresholds are fixed on held-out ones."""


def train_into(
    files: Sequence[Path], into: Path, report: Path | None = None, judged: Sequence[Row] = ()
) -> Iterator[str]:
    """Train every judge on labelled prompts and write it as ``<judge>.npz``; yields a line about each step.

    ``judged`` are rows besides those of the files. ``into`` is made where it is missing. ``report`` is a Markdown file:
    a part of it between the report's own marks is replaced, a missing file is written.

    Raises:
        ValueError: a file cannot be read, or they are too small to train on; the message says where.
    """
    rows = [*(row for file in files for row in load_rows(file)), *judged]
    _check(rows, ", ".join(file.name for file in files))
    # Training takes minutes: what could not be written at its end is refused before.
    into.mkdir(parents=True, exist_ok=True)
    if report is not None:
        around_report(report)
    prepared = prepare(rows)
    yield f"{len(rows)} rows, {len(prepared.rows) - len(rows)} of our own, {len(prepared.grams.keys)} n-grams"
    fired = {}
    for name, recipe in RECIPES.items():
        scores = held_out_scores(prepared, recipe)
        fired[name] = fired_by_fold(prepared, scores, recipe)
        model = trained(prepared, recipe, scores)
        data = dump_model(model)
        (into / f"{name}.npz").write_bytes(data)
        yield (
            f"{name}-{hashlib.sha256(data).hexdigest()[:8]}: {len(model.table.keys)} n-grams, {len(data)} bytes, "
            f"threshold {model.threshold:.3f}"
        )
    found = tally_caught(rows, fired)
    yield from found.lines()
    if report is not None:
        write_report(found, report)
        yield f"report: {report}"


def _check(rows: Sequence[Row], names: str) -> None:
    for wanted, there in (("attacks", True), ("others", False)):
        sources = {family_of(row.source) for row in rows if row.attack is there and row.category not in APART}
        if len(sources) < LEAST_SOURCES:
            raise ValueError(
                f"{names}: {wanted} of {len(sources)} sources, and thresholds are fixed on held-out ones: "
                f"name at least {LEAST_SOURCES} different `source`s of each"
            )
