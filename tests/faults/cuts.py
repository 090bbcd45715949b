"""Harming the files of a stopped broker's store as a power cut or a rotten disk does."""

from pathlib import Path
from struct import Struct

_RECORD = Struct("<IQ")
"""How a record of a block begins: its length, and its sequence."""

_WITH_HEADERS = 1 << 31
"""Set in the length of a record that has headers."""


def _messages(store: Path, stream: str) -> Path:
    return next(store.glob(f"jetstream/*/streams/{stream}/msgs"))


def _newest(store: Path, stream: str) -> Path:
    return max(_messages(store, stream).glob("*.blk"), key=lambda path: int(path.stem))


def size_of(store: Path, stream: str = "NEURAXIS") -> int:
    """Return the bytes of a stream's newest block."""
    return _newest(store, stream).stat().st_size


def cut_tail(store: Path, size: int, stream: str = "NEURAXIS") -> None:
    """Cut the last ``size`` bytes off a stream's newest block."""
    block = _newest(store, stream)
    with block.open("r+b") as file:
        file.truncate(max(0, block.stat().st_size - size))


def cut_after(store: Path, sequence: int, stream: str = "NEURAXIS") -> None:
    """Cut a stream's newest block behind the record of a sequence."""
    block = _newest(store, stream)
    content, place = block.read_bytes(), 0
    while place < len(content):
        length, found = _RECORD.unpack_from(content, place)
        place += length & ~_WITH_HEADERS
        if found == sequence:
            break
    with block.open("r+b") as file:
        file.truncate(place)


def flip_bit(store: Path, where: float, stream: str = "NEURAXIS") -> None:
    """Flip a bit of a stream's newest block, at a fraction of its length."""
    block = _newest(store, stream)
    with block.open("r+b") as file:
        place = int(block.stat().st_size * where)
        file.seek(place)
        (byte,) = file.read(1)
        file.seek(place)
        file.write(bytes([byte ^ 4]))


def flip_bit_of(store: Path, sequence: int, stream: str = "NEURAXIS") -> None:
    """Flip a bit in the record of a sequence, which is to be in a stream's newest block."""
    block = _newest(store, stream)
    content, place = block.read_bytes(), 0
    while place < len(content):
        length, found = _RECORD.unpack_from(content, place)
        size = length & ~_WITH_HEADERS
        if found == sequence:
            flip_bit(store, (place + size // 2) / len(content), stream)
            return
        place += size
    raise AssertionError(f"no record of sequence {sequence} in {block}")


def drop_index(store: Path, stream: str = "NEURAXIS") -> None:
    """Remove the index beside a stream's blocks: the server then reads these anew, and goes by what they hold."""
    (_messages(store, stream) / "index.db").unlink(missing_ok=True)
