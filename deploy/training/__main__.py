"""``python -m deploy.training PROMPTS``: train both judges and write their weights files into the actors' packages."""

import hashlib
from importlib.resources import files
from pathlib import Path

import click

from deploy.training.corpus import load_rows
from deploy.training.fitting import fit, prepare
from deploy.training.recipes import SCORER, TRUST
from schemas.reading.model import dump_model

_PLACES = {"scorer": ("intuition/scorer", SCORER), "trust": ("appraisal", TRUST)}
"""Name -> folder below ``actors`` (not imported: the packages need the files that are written here), and recipe."""


@click.command()
@click.argument("prompts", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--into", type=click.Path(file_okay=False, path_type=Path), help="Folder for the files instead.")
def main(prompts: Path, into: Path | None) -> None:
    """Train the scorer and the trust evaluator on labelled PROMPTS (JSON Lines)."""
    try:
        rows = load_rows(prompts)
    except ValueError as wrong:
        raise click.ClickException(str(wrong)) from wrong
    prepared = prepare(rows)
    click.echo(
        f"{len(rows)} rows, {len(prepared.rows) - len(rows)} of our own, {prepared.grams.first_segment[-1]} segments"
    )
    for name, (place, recipe) in _PLACES.items():
        model = fit(prepared, recipe)
        data = dump_model(model)
        folder = Path(str(files("actors"))) / place if into is None else into
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.npz").write_bytes(data)
        click.echo(
            f"{name}-{hashlib.sha256(data).hexdigest()[:8]}: {len(model.table.keys)} n-grams, {len(data)} bytes, "
            f"threshold {model.threshold:.3f}, for long texts {model.long_threshold:.3f}"
        )


if __name__ == "__main__":
    main()
