"""Keeping ``run.json`` true while a set runs: a disk that is full, or read-only, must not take the set down.

If somebody deletes the file, it is written again: without it, no command finds the set.
"""

import asyncio
from collections.abc import Callable

from deploy.processes.running_set import DataFolder, FolderUnusable, RunFile
from events.loggers import get_logger

RETRY_S = 1.0
"""Seconds after which a failed write is tried again, and between two checks that the file is there."""

_logger = get_logger("neuraxis.up")


class RunFileWriter:
    """Writes what ``describe`` returns into a data folder's ``run.json``; to be used in one event loop.

    What could not be written is written as soon as that is possible: until then the file tells of a state that is over.
    """

    def __init__(self, data: DataFolder, describe: Callable[[], RunFile], retry_s: float = RETRY_S) -> None:
        self._data = data
        self._describe = describe
        self._retry_s = retry_s
        self._again: asyncio.TimerHandle | None = None
        self._is_logged = False

    def write(self) -> None:
        """Write the present description, or try again later, which is logged once."""
        self.close()
        try:
            self._data.write(self._describe())
        except FolderUnusable as wrong:
            if not self._is_logged:
                _logger.warning("run_file_not_written", path=str(self._data.run_file), error=str(wrong))
            self._is_logged = True
            self._again = asyncio.get_running_loop().call_later(self._retry_s, self.write)
        else:
            self._is_logged = False
            self._again = asyncio.get_running_loop().call_later(self._retry_s, self._check)

    def _check(self) -> None:
        """Write the file again if it is gone."""
        if self._data.run_file.exists():
            self._again = asyncio.get_running_loop().call_later(self._retry_s, self._check)
            return
        _logger.warning("run_file_gone", path=str(self._data.run_file), remedy="none: it is written again")
        self.write()

    def close(self) -> None:
        """Try and check no more."""
        if self._again is not None:
            self._again.cancel()
            self._again = None
