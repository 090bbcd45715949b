"""Reading lines beside the event loop."""

import asyncio
import os
from io import BytesIO

import pytest

from deploy.feeding import Line, lines_of
from deploy.feeding import line_reader as reading


def read(raw: bytes) -> list[Line]:
    async def main() -> list[Line]:
        return [line async for line in lines_of(BytesIO(raw))]

    return asyncio.run(main())


def test_lines_come_with_their_numbers_and_the_bytes_up_to_their_ends() -> None:
    assert read(b"one\n\nthree") == [Line(1, b"one\n", 4), Line(2, b"\n", 5), Line(3, b"three", 10)]


def test_a_line_too_long_to_be_held_is_passed_over_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MAX_LINE_BYTES", 8)
    assert read(b"1234567\n" + b"x" * 30 + b"\nlast\n") == [
        Line(1, b"1234567\n", 8),
        Line(2, None, 39),
        Line(3, b"last\n", 44),
    ]


def test_a_pipe_is_read_as_it_fills_and_left_without_waiting_for_its_end() -> None:
    ours, theirs = os.pipe()

    async def main() -> bytes | None:
        lines = lines_of(os.fdopen(ours, "rb", closefd=False))
        os.write(theirs, b"first\n")
        first = await anext(lines)
        await lines.aclose()  # type: ignore[attr-defined]
        return first.raw

    try:
        assert asyncio.run(main()) == b"first\n"
    finally:
        os.close(theirs)  # the reading thread sees the end, and ends


class Counting(BytesIO):
    """A file that counts the lines that are read of it."""

    taken = 0

    def readline(self, size: int | None = -1) -> bytes:
        self.taken += 1
        return super().readline(size)


def test_of_long_lines_few_are_read_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    """256 of the longest ones took four gigabytes, while the first were refused one by one."""
    monkeypatch.setattr(reading, "BYTES_AHEAD", 1_000)
    file = Counting((b"x" * 399 + b"\n") * 500)

    async def main() -> tuple[int, int]:
        lines = lines_of(file)
        await anext(lines)
        await asyncio.sleep(0.3)  # the reader goes on as far as it may
        ahead = file.taken
        rest = [line async for line in lines]
        return ahead, len(rest)

    ahead, rest = asyncio.run(main())
    assert ahead <= 5
    assert rest == 499


def test_no_more_is_read_ahead_than_there_is_room_for() -> None:
    file = Counting(b"x\n" * 10_000)

    async def main() -> int:
        lines = lines_of(file)
        async for line in lines:
            if line.number == 1_000:
                break
        await lines.aclose()  # type: ignore[attr-defined]
        return file.taken

    assert asyncio.run(main()) <= 1_000 + 300
