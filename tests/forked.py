"""Commands of ``neuraxis`` in processes of their own, forked from one that has loaded the project already.

Starting Python and loading the project is most of what a command costs, and the tests run hundreds. Each still has its
own process, folder, environment, streams and exit status. ``python -m deploy.cli`` itself is run wherever a program
goes on while a test does something else.
"""

import multiprocessing
import os
import pkgutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import deploy
from deploy.cli import main

NOT_LOADED = ("deploy.training", "deploy.simulating", "deploy.demo", "deploy.examples")
"""What belongs to no command, or to one whose libraries take long."""

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(
    sorted(
        module.name
        for module in pkgutil.walk_packages(deploy.__path__, "deploy.")
        if not module.name.startswith(NOT_LOADED) and not module.name.endswith("__main__")
    )
)


def forked(
    arguments: Sequence[str],
    *,
    folder: Path,
    environment: Mapping[str, str] = os.environ,
    stdin: bytes = b"",
    timeout: float = 120.0,
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, as ``subprocess.run`` does; raises TimeoutExpired where it does not end in time."""
    with TemporaryDirectory() as streams:
        ends = [Path(streams, name) for name in ("stdin", "stdout", "stderr")]
        for end, content in zip(ends, (stdin, b"", b""), strict=True):
            end.write_bytes(content)
        process = _CONTEXT.Process(target=_run, args=(tuple(arguments), folder, dict(environment), ends))
        process.start()
        process.join(timeout)
        status = process.exitcode
        if status is None:
            process.kill()
            process.join()
        process.close()
        said, told = (end.read_bytes().decode() for end in ends[1:])
    if status is None:
        raise subprocess.TimeoutExpired(["neuraxis", *arguments], timeout, said, told)
    return subprocess.CompletedProcess(["neuraxis", *arguments], status, said, told)


def _run(arguments: Sequence[str], folder: Path, environment: Mapping[str, str], ends: Sequence[Path]) -> None:
    for number, end in enumerate(ends):
        opened = os.open(end, os.O_WRONLY | os.O_APPEND if number else os.O_RDONLY)
        os.dup2(opened, number)
        os.close(opened)
    sys.stdin = os.fdopen(0, closefd=False)  # multiprocessing has put another there; the two others write as ever
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    sys.argv = ["neuraxis", *arguments]
    main(arguments)
