"""What is kept on disk to spare work is used if it is intact, and made anew otherwise: never an error."""

import os
import stat
from pathlib import Path

import numpy as np
import pytest

from actors.reflex.fold_table import _made_table, fold_table
from actors.reflex.library import library_of
from actors.reflex.spellings import cached_spellings, spellings_of
from schemas.disk_cache import cached, read_checked, write_checked
from tests.each import each


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "neuraxis"


class Work:
    """Counts how often it is done."""

    def __init__(self, result: bytes = b"table") -> None:
        self.result, self.done = result, 0

    def __call__(self) -> bytes:
        self.done += 1
        return self.result


def test_the_work_is_done_once_for_a_key(folder: Path):
    work = Work()
    assert [cached("table", key, work) for key in (b"one", b"one", b"two", b"two")] == [b"table"] * 4
    assert work.done == 2


def test_a_file_is_readable_by_its_owner_alone(folder: Path):
    cached("table", b"key", Work())
    (file,) = folder.iterdir()
    assert (stat.S_IMODE(folder.stat().st_mode), stat.S_IMODE(file.stat().st_mode)) == (0o700, 0o600)


@each("damage", [b"", b"x", b"x" * 200])
def test_a_damaged_file_is_made_anew(folder: Path, damage: bytes):
    work = Work()
    cached("table", b"key", work)
    (file,) = folder.iterdir()
    done = work.done
    file.write_bytes(damage)
    assert cached("table", b"key", work) == b"table"
    assert work.done == done + 1
    assert read_checked(file) == b"table"


def test_a_flipped_bit_is_noticed(tmp_path: Path):
    file = tmp_path / "file"
    assert write_checked(file, b"content")
    content = bytearray(file.read_bytes())
    for place in range(len(content)):
        content[place] ^= 1
        file.write_bytes(content)
        assert read_checked(file) is None
        content[place] ^= 1


def test_without_a_folder_to_write_to_the_work_is_done_each_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    work = Work()
    assert [cached("table", b"key", work), cached("table", b"key", work)] == [b"table"] * 2
    assert work.done == 2


def test_what_others_may_write_is_not_read(folder: Path):
    work = Work()
    cached("table", b"key", work)
    (file,) = folder.iterdir()
    file.chmod(0o666)
    assert read_checked(file) is None
    folder.chmod(0o777)
    assert not write_checked(file, b"other")


def test_only_the_latest_of_a_name_stay(folder: Path):
    for number in range(12):
        cached("table", bytes([number]), Work())
        for file in folder.iterdir():
            os.utime(file, ns=(0, file.stat().st_mtime_ns - 10**9))
    cached("other", b"key", Work())
    assert len(list(folder.glob("table-*"))) == 8
    work = Work()
    cached("table", bytes([11]), work)
    assert work.done == 0


def test_the_tables_of_reflex_are_the_same_from_disk(folder: Path):
    signatures = tuple(library_of("seed").signatures())
    made = _made_table()
    for _ in ("made", "read"):
        fold_table.cache_clear()
        table = fold_table()
        assert all(np.array_equal(getattr(table, name), getattr(made, name)) for name in ("single", "pool", "start"))
        assert cached_spellings(signatures) == list(spellings_of(signatures))
    fold_table.cache_clear()
    assert len(list(folder.iterdir())) == 2
