"""Files on a disk that gets full: each is whole or as it was, and the error names it."""

import errno
from collections.abc import Iterator
from pathlib import Path

import pytest

from events.files.whole_files import PRIVATE, replace_file, replace_files
from tests.full_disk import SmallDisk, small_disk

BIG = bytes(2 * 1024 * 1024)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "small", megabytes=1) as disk:
        yield disk


def test_on_a_full_disk_all_files_stay_as_they_were(disk: SmallDisk) -> None:
    first, second = disk.folder / "first", disk.folder / "second"
    first.write_bytes(b"old")
    with pytest.raises(OSError, match="No space left on device") as raised:
        replace_files({first: b"new", second: BIG})
    assert (raised.value.errno, raised.value.filename) == (errno.ENOSPC, str(second))
    assert [path.name for path in disk.folder.iterdir()] == ["first"]
    assert first.read_bytes() == b"old"


def test_a_file_is_replaced_as_a_whole_and_a_private_one_is_its_owners(tmp_path: Path) -> None:
    replace_file(tmp_path / "plain", b"old")
    replace_file(tmp_path / "plain", b"new")
    replace_file(tmp_path / "private", b"", PRIVATE)
    assert (tmp_path / "plain").read_bytes() == b"new"
    assert (tmp_path / "private").stat().st_mode & 0o777 == PRIVATE
    assert len(list(tmp_path.iterdir())) == 2


def test_a_folder_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as raised:
        replace_file(tmp_path / "nowhere" / "file", b"")
    assert raised.value.filename == str(tmp_path / "nowhere" / "file")
