"""Where the weights of the trained judges come from: the package, or a folder of one's own training.

Weights are versions, too. What rests on them names them by their hash; an older log is decided again by older weights,
where a folder with their files is supplied.
"""

import os
from collections.abc import Iterable
from importlib.resources import files
from pathlib import Path

from schemas.reading.model import InvalidModel, Model, load_model

FOLDER = "NEURAXIS_MODELS"
"""Environment variable naming a folder whose ``scorer.npz`` and ``trust.npz`` take the place of those that ship."""


KINDS = ("scorer", "trust")
"""What the files of weights are called, up to a dot or a hyphen: ``scorer.npz``, ``trust-of-march.npz``."""

_supplied: dict[str, Model] = {}


def supply(folder: Path) -> tuple[str, ...]:
    """Have this process know the weights in a folder by their names, besides its own; return those names.

    They judge where a record rests on them, and nowhere else.

    Raises:
        InvalidModel: the folder holds no weights, or some that cannot be read or do not fit this release.
    """
    found = [(kind, path) for kind in KINDS for path in sorted(folder.glob(f"{kind}*.npz"))]
    if not found:
        raise InvalidModel(
            f"{folder} holds no weights: give a folder with files such as scorer.npz or trust-of-march.npz, in their "
            "releases' actors/intuition/scorer and actors/appraisal"
        )
    models = [load_model(_read(path, "give a folder whose files can be read"), kind) for kind, path in found]
    _supplied.update({model.name: model for model in models})
    return tuple(model.name for model in models)


def supplied(name: str) -> Model | None:
    """Return the supplied weights of a name, or None."""
    return _supplied.get(name)


def judge_of(names: Iterable[str], own: Model) -> Model:
    """Return the supplied judge of the kind of ``own`` that is among the models a record rests on; else ``own``."""
    kind = own.name.partition("-")[0]
    older = (_supplied.get(name) for name in names if name != own.name and name.partition("-")[0] == kind)
    return next(filter(None, older), own)


def weights_of(kind: str, package: str) -> Model:
    """Return the judge ``kind`` (``scorer``, ``trust``): from the folder that the environment names, else ``package``.

    A process reads it once, at start; its name, with the file's hash, is part of everything that rests on it.

    Raises:
        InvalidModel: the folder names no such file, or one that does not fit this release.
    """
    folder = os.environ.get(FOLDER)
    if not folder:
        return load_model(files(package).joinpath(f"{kind}.npz").read_bytes(), kind)
    remedy = f"{FOLDER} is to name a folder that `neuraxis precedents train` wrote, or nothing"
    return load_model(_read(Path(folder) / f"{kind}.npz", remedy), kind)


def _read(path: Path, remedy: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as wrong:
        raise InvalidModel(f"{path} cannot be read ({wrong.strerror}): {remedy}") from wrong
