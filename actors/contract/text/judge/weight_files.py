"""Files of weights: a damaged one, or one with other content, is refused before it judges anything."""

import io
import zlib
from collections.abc import Mapping
from typing import Any
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

# What NumPy raises for a damaged file.
_DAMAGED = (OSError, ValueError, TypeError, KeyError, IndexError, EOFError, BadZipFile, NotImplementedError, zlib.error)


class InvalidModel(ValueError):
    """A weights file is damaged, or was trained for features other than those of this release."""

    code = "invalid_model"


def arrays_in(data: bytes, kind: str, integers: tuple[str, ...], floats: str) -> Mapping[str, Array]:
    """Return the arrays of a weights file by name: those in ``integers``, and ``floats``, whose numbers are finite.

    ``kind`` is what errors call the file: ``scorer``, ``trust`` or ``turn``.

    Raises:
        InvalidModel: it is not such a file.
    """
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as archive:
            found = {name: np.asarray(archive[name]) for name in (*integers, floats)}
    except _DAMAGED as wrong:
        raise InvalidModel(f"{kind}: not a weights file; train it anew, or copy it again") from wrong
    if any(found[name].dtype.kind not in "iu" for name in integers):
        raise unfit_model(kind)
    if found[floats].dtype.kind != "f" or found[floats].ndim != 1 or not np.isfinite(found[floats]).all():
        raise unfit_model(kind)
    return found


def weights_file(**arrays: Array) -> bytes:
    """Return a weights file of these arrays; equal arrays give equal bytes."""
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)  # type: ignore[arg-type]  # typed as if a name could be an option of its own
    return buffer.getvalue()


def are_sorted_keys(keys: Array) -> bool:
    """Return whether an array holds searchable keys: 32 bits, ascending, each once."""
    return keys.ndim == 1 and keys.dtype == np.uint32 and bool((keys[1:] > keys[:-1]).all())


def unfit_model(kind: str) -> InvalidModel:
    """Return the error for a file whose arrays this release cannot use."""
    return InvalidModel(f"{kind}: its arrays do not fit the features of this release; train it anew")
