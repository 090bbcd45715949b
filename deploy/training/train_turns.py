"""Training the turn model, which reads what kind of turn an utterance is, and writing its weights file."""

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec
import numpy as np

from actors.contract.text.dialogue_act.model import MODEL_KIND, dump_turn_model
from deploy.training.turn_fitting import calibrated_sharpness, fit_turns, folds_of, prepare
from deploy.training.turn_rows import WRITTEN, load_turns, thin_out, written_turns
from events.files.whole_files import replace_file

LEAST_SOURCES = 5
"""The least number of sources: the sharpness (inverse temperature) is measured on sources that were left out."""


def train_turns(paths: Iterable[Path], folder: Path) -> Iterator[str]:
    """Train on labelled files and write ``turn.npz``; yields a line about each step.

    Raises:
        ValueError: a file cannot be read, or there is too little to train on; the message says where.
    """
    labelled = load_turns(paths)
    sources = {row.source for row in labelled}
    if len(sources) < LEAST_SOURCES:
        raise ValueError(
            f"the files name {len(sources)} different `source`s: name at least {LEAST_SOURCES}, since how far "
            "the weights may be trusted is judged on sources that were left out"
        )
    rows = [*thin_out(labelled), *written_turns()]
    own = sum(row.source.startswith(WRITTEN) for row in rows)
    yield f"{len(rows)} texts of {len(sources)} sources, {own} of them phrases of our own"
    prepared = prepare(rows)
    indices = np.arange(len(rows))
    sharpness = calibrated_sharpness(prepared, folds_of(prepared), indices)
    model = msgspec.structs.replace(fit_turns(prepared, indices), sharpness=sharpness)
    data = dump_turn_model(model)
    folder.mkdir(parents=True, exist_ok=True)
    replace_file(folder / f"{MODEL_KIND}.npz", data)
    name = f"{MODEL_KIND}-{hashlib.sha256(data).hexdigest()[:8]}"
    yield f"{name}: {len(model.keys)} features, {len(data)} bytes, sharpness {sharpness:g} by sources left out"
