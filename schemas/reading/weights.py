"""Where the weights of the trained judges come from: the package, or a folder of one's own training."""

import os
from importlib.resources import files
from pathlib import Path

from schemas.reading.model import InvalidModel, Model, load_model

FOLDER = "NEURAXIS_MODELS"
"""Environment variable naming a folder whose ``scorer.npz`` and ``trust.npz`` take the place of those that ship."""


def weights_of(kind: str, package: str) -> Model:
    """Return the judge ``kind`` (``scorer``, ``trust``): from the folder that the environment names, else ``package``.

    A process reads it once, at start; its name, with the file's hash, is part of everything that rests on it.

    Raises:
        InvalidModel: the folder names no such file, or one that does not fit this release.
    """
    folder = os.environ.get(FOLDER)
    if not folder:
        return load_model(files(package).joinpath(f"{kind}.npz").read_bytes(), kind)
    path = Path(folder) / f"{kind}.npz"
    try:
        data = path.read_bytes()
    except OSError as wrong:
        raise InvalidModel(
            f"{path} cannot be read ({wrong.strerror}): {FOLDER} is to name a folder that "
            "`neuraxis precedents train` wrote, or nothing"
        ) from wrong
    return load_model(data, kind)
