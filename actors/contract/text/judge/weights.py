"""Where the weights of the trained judges are loaded from: the package, or a folder of your own training.

A judge is a linear classifier of texts: the ``scorer`` of attacks, the judge of ``trust`` in a part of a prompt, and
that of the kind of a ``turn`` in a dialogue. Weights are versioned by hash. A decision that uses weights records their
hash. An older log is decided again with the older weights, if a folder with their files is supplied.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, partial
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar

from actors.contract.text.dialogue_act.model import TurnModel, load_turn_model
from actors.contract.text.judge.model import InvalidModel, Model, load_model

FOLDER = "NEURAXIS_MODELS"
"""Environment variable that names a folder; its weights files replace the packaged ones of the same kind."""

Weights = Model | TurnModel
"""The weights of any of these judges."""

Judge = TypeVar("Judge", Model, TurnModel)

_READERS: Mapping[str, Callable[[bytes], Weights]] = MappingProxyType(
    {"scorer": partial(load_model, kind="scorer"), "trust": partial(load_model, kind="trust"), "turn": load_turn_model}
)

KINDS = tuple(_READERS)
"""The kinds of weights files: the file name up to a dot or hyphen (``scorer.npz``, ``trust-of-march.npz``)."""

_replaced_packages: dict[str, str] = {}
"""Kind -> the package whose weights the folder in the environment replaces: old records may still need them."""

_supplied: dict[str, Weights] = {}
"""By name, weights of a supplied folder: for records that were made with them."""

_overriding: dict[str, Weights] = {}
"""By kind, weights that are used whatever weights a record was made with."""


def add_weights(folder: Path) -> tuple[str, ...]:
    """Make the weights in a folder and its subfolders available to this process, by name; return their names.

    They are used only for records that were made with them.

    Raises:
        InvalidModel: the folder holds no weights, or some that cannot be read or do not fit this release.
    """
    found = [(kind, path) for kind in KINDS for path in sorted(folder.rglob(f"{kind}*.npz"))]
    if not found:
        raise InvalidModel(
            f"{folder} holds no weights: give a folder with files such as scorer.npz or trust-of-march.npz in it, "
            "such as the folder `actors` of the release that made the recording"
        )
    models = [_model(kind, path) for kind, path in found]
    _supplied.update({model.name: model for model in models})
    return tuple(model.name for model in models)


@contextmanager
def judging_with(folder: Path) -> Iterator[None]:
    """Judge with the weights in a folder while the block runs, whatever weights the records were made with.

    Used to try weights on a recorded log before adopting them; kinds that the folder lacks do not change.

    Raises:
        InvalidModel: the folder holds no ``scorer.npz``, ``trust.npz`` or ``turn.npz``, or one that cannot be read.
    """
    found = {kind: _model(kind, path) for kind, path in _files_in(folder).items()}
    if not found:
        raise InvalidModel(
            f"{folder} holds no weights: give a folder that `neuraxis train detection` or `neuraxis router train` wrote"
        )
    before = dict(_overriding)
    _overriding.update(found)
    try:
        yield
    finally:
        _overriding.clear()
        _overriding.update(before)


def added_weights(name: str) -> Weights | None:
    """Return the weights that a record names, from those added to this process; None if there are none of that name."""
    return _overriding.get(_kind_of(name)) or _older(name)


def judge_of(names: Iterable[str], own: Judge) -> Judge:
    """Return the added judge of the kind of ``own`` that a record names; else ``own``, the judge of this process."""
    kind = _kind_of(own.name)
    instead = _overriding.get(kind)
    if isinstance(instead, type(own)):
        return instead
    older = (_older(name) for name in names if name != own.name and _kind_of(name) == kind)
    return next((each for each in older if isinstance(each, type(own))), own)


def _older(name: str) -> Weights | None:
    """Return supplied weights, or those of this release where the environment's folder replaces them."""
    package = _replaced_packages.get(_kind_of(name))
    if name not in _supplied and package is not None:
        found = _packaged(_kind_of(name), package)
        return found if found.name == name else None
    return _supplied.get(name)


@cache
def _packaged(kind: str, package: str) -> Weights:
    return _READERS[kind](_bytes_in(kind, package))


def _bytes_in(kind: str, package: str) -> bytes:
    return files(package).joinpath(f"{kind}.npz").read_bytes()


def _kind_of(name: str) -> str:
    return name.partition("-")[0]


def weights_of(kind: str, package: str) -> Model:
    """Return the judge ``kind`` (``scorer``, ``trust``) from the folder in the environment, else from ``package``.

    A process reads it once, at the start. Its name, which includes the file's hash, is recorded with every decision
    that uses it.

    Raises:
        InvalidModel: the folder holds no weights, or some that do not fit this release.
    """
    return load_model(_bytes_of(kind, package), kind)


def turn_weights_of(package: str) -> TurnModel:
    """Return the judge of turns, loaded in the same way as ``weights_of``.

    Raises:
        InvalidModel: the folder holds no weights, or some that do not fit this release.
    """
    return load_turn_model(_bytes_of("turn", package))


def check_configured_weights() -> None:
    """Read the weights that the environment names, if any: a process that cannot read them must not decide anything.

    Raises:
        InvalidModel: the folder holds no weights, or some that cannot be read or do not fit; it names the file.
    """
    for kind, path in _configured().items():
        try:
            _model(kind, path)
        except InvalidModel as wrong:
            raise InvalidModel(f"{wrong}, or unset {FOLDER}") from wrong


def _bytes_of(kind: str, package: str) -> bytes:
    """Return a weights file: from the folder if it has this kind, else the packaged one."""
    path = _configured().get(kind)
    if path is None:
        return _bytes_in(kind, package)
    _replaced_packages[kind] = package
    return _read(path)


def _configured() -> Mapping[str, Path]:
    """Return the files of the folder that the environment names, by kind; empty where it names none."""
    folder = os.environ.get(FOLDER)
    if not folder:
        return {}
    found = _files_in(Path(folder))
    if not found:
        raise InvalidModel(
            f"{folder} holds no weights: {FOLDER} is to name a folder that `neuraxis train detection` or "
            "`neuraxis router train` wrote, or nothing"
        )
    return found


def _files_in(folder: Path) -> dict[str, Path]:
    return {kind: path for kind in KINDS if (path := folder / f"{kind}.npz").exists()}


def _model(kind: str, path: Path) -> Weights:
    data = _read(path)
    try:
        return _READERS[kind](data)
    except InvalidModel as wrong:
        raise InvalidModel(f"{path}: {wrong}") from wrong


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as wrong:
        raise InvalidModel(
            f"{path} cannot be read ({wrong.strerror}): give a folder whose files can be read"
        ) from wrong
