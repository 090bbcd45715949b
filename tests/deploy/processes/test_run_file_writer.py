"""``run.json`` of a set whose disk takes no file for a while."""

import asyncio
from pathlib import Path

import msgspec

from deploy.processes.run_file_writer import RunFileWriter
from deploy.processes.running_set import DataFolder, RunFile
from tests.deploy.processes.test_running_set import RUN

RETRY_S = 0.01
DEADLINE_S = 20.0


async def _until_written(data: DataFolder) -> RunFile:
    async with asyncio.timeout(DEADLINE_S):
        while not data.run_file.is_file():  # noqa: ASYNC110 - a file tells nobody
            await asyncio.sleep(RETRY_S)
    return data.read()


def test_a_run_file_that_cannot_be_written_is_written_once_it_can_and_says_what_is_so_then(tmp_path: Path) -> None:
    async def main() -> None:
        data, times_told = DataFolder(tmp_path), iter(range(1, 1000))
        told: list[RunFile] = []

        def describe() -> RunFile:
            told.append(msgspec.structs.replace(RUN, version=str(next(times_told))))
            return told[-1]

        writer = RunFileWriter(data, describe, RETRY_S)
        with data.locked():
            data.run_file.mkdir()  # nothing can be put in its place
            writer.write()
            writer.write()
            data.run_file.rmdir()
            assert (await _until_written(data)) == told[-1]
            assert len(told) > 2
            times = len(told)
            await asyncio.sleep(5 * RETRY_S)
            assert len(told) == times, "what is written is not written again"

    asyncio.run(main())


def test_a_run_file_that_somebody_deletes_is_written_again(tmp_path: Path) -> None:
    async def main() -> None:
        data = DataFolder(tmp_path)
        writer = RunFileWriter(data, lambda: RUN, RETRY_S)
        with data.locked():
            writer.write()
            data.run_file.unlink()
            assert await _until_written(data) == RUN
            data.run_file.unlink()
            assert await _until_written(data) == RUN
            writer.close()
            data.run_file.unlink()
            await asyncio.sleep(5 * RETRY_S)
            assert not data.run_file.exists()

    asyncio.run(main())


def test_a_writer_that_is_closed_tries_no_more(tmp_path: Path) -> None:
    async def main() -> None:
        data = DataFolder(tmp_path)
        writer = RunFileWriter(data, lambda: RUN, RETRY_S)
        with data.locked():
            data.run_file.mkdir()
            writer.write()
            writer.close()
            data.run_file.rmdir()
            await asyncio.sleep(5 * RETRY_S)
            assert not data.run_file.exists()

    asyncio.run(main())
