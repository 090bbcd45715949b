"""Training both judges on a corpus, and writing their weights files."""

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path

from deploy.training.corpus import APART, load_rows
from deploy.training.fitting import SPLITS, fit, prepare
from deploy.training.recipes import SCORER, TRUST
from schemas.reading.model import dump_model

RECIPES = {"scorer": SCORER, "trust": TRUST}
"""Judge -> how it is trained."""


def train_into(prompts: Path, folder_of: Callable[[str], Path]) -> Iterator[str]:
    """Train every judge on labelled prompts and write it as ``<judge>.npz``; yields a line about each step.

    ``folder_of`` names the folder for a judge's file; it is made where it is missing.

    Raises:
        ValueError: the corpus cannot be read, or is too small to train on; the message says where.
    """
    rows = load_rows(prompts)
    for wanted, there in (("attacks", True), ("others", False)):
        sources = {row.source for row in rows if row.attack is there and row.category not in APART}
        if len(sources) < SPLITS:
            raise ValueError(
                f"{prompts.name}: {wanted} of {len(sources)} sources, and thresholds are fixed on held-out ones: "
                f"name at least {SPLITS} different `source`s of each"
            )
    prepared = prepare(rows)
    yield f"{len(rows)} rows, {len(prepared.rows) - len(rows)} of our own, {prepared.grams.first_segment[-1]} segments"
    for name, recipe in RECIPES.items():
        model = fit(prepared, recipe)
        data = dump_model(model)
        folder = folder_of(name)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.npz").write_bytes(data)
        yield (
            f"{name}-{hashlib.sha256(data).hexdigest()[:8]}: {len(model.table.keys)} n-grams, {len(data)} bytes, "
            f"threshold {model.threshold:.3f}, for long texts {model.long_threshold:.3f}"
        )
