"""Waiting for what other processes do: a condition with a deadline, never a sleep for luck."""

import os
import subprocess
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

DEADLINE_S = 60.0
"""Far more than anything here takes on a busy machine."""


def until(condition: Callable[[], bool], what: str, deadline_s: float = DEADLINE_S) -> None:
    """Wait until the condition holds; raises TimeoutError, naming ``what``."""
    deadline = time.monotonic() + deadline_s
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {deadline_s:g} s")
        time.sleep(0.01)


def is_gone(pid: int) -> bool:
    """Whether a process has ended; one that waits to be collected has."""
    stat = Path(f"/proc/{pid}/stat")
    try:
        if stat.parent.parent.joinpath("self").exists():
            return stat.read_text().rpartition(")")[2].split()[0] in "ZX"
        os.kill(pid, 0)
    except (FileNotFoundError, ProcessLookupError):
        return True
    return False


def run_side_by_side(commands: Sequence[Sequence[str]], **how: Any) -> list["subprocess.CompletedProcess[str]"]:
    """Run commands that mostly wait, four at a time, each as ``subprocess.run`` does; return how each ended."""
    run = partial(subprocess.run, capture_output=True, text=True, check=False, **how)
    with ThreadPoolExecutor(4) as pool:
        return list(pool.map(run, commands))
