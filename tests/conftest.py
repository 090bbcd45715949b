"""Fixtures that every test may use, how hypothesis searches, and what keeps a run short."""

import contextlib
import gc
import importlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from xdist.scheduler import LoadScopeScheduling

from tests.broker import Broker

MEMORY = Path("/dev/shm")
ROOM_BYTES = 8 * 1024**3
"""Free in memory, of which a run takes less than a tenth: a set plans with the room that its disk has."""


def _keep_files_in_memory() -> None:
    """Have temporary files made in memory where there is room: each append is flushed, which takes several times as
    long on a disk, and seconds where others write to it. What a disk that is full or harmed does has tests of its own.
    """
    try:
        usable = shutil.disk_usage(MEMORY).free >= ROOM_BYTES and not os.statvfs(MEMORY).f_flag & os.ST_NOEXEC
    except OSError:
        return
    if usable and os.access(MEMORY, os.W_OK) and "TMPDIR" not in os.environ:
        os.environ["TMPDIR"] = str(MEMORY)
        tempfile.tempdir = None


_keep_files_in_memory()

# The same examples every time, so that a red run stays red; HYPOTHESIS_PROFILE=searching looks for new ones.
settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.register_profile("searching", deadline=None, print_blob=True)
# What a copy of the project is tested with within a run that tests the project with all examples.
settings.register_profile("short", derandomize=True, deadline=None, max_examples=5)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))

ALLOCATIONS = 100_000
"""Objects made, less those freed, between two searches for garbage cycles; Python's own 700 took a sixth of the time of
tests that only compute."""
gc.set_threshold(ALLOCATIONS, *gc.get_threshold()[1:])


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Where several processes collect, load another share of the test modules first in each: what one has compiled, the
    others find. Compiling all of them, whose asserts pytest rewrites, takes longer than collecting.
    """
    worker = getattr(session.config, "workerinput", None)
    if worker is None or session.config.args != session.config.getini("testpaths"):
        return
    root, number = session.config.rootpath, int(worker["workerid"].removeprefix("gw"))
    files = sorted((root / "tests").rglob("test_*.py"))
    for file in files[number :: worker["workercount"]]:
        # What cannot be loaded is told where it is collected.
        with contextlib.suppress(Exception, pytest.skip.Exception):
            importlib.import_module(".".join(file.relative_to(root).with_suffix("").parts))


def pytest_collection_finish() -> None:
    """Take what was collected out of every later search for garbage: it stays until the end."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="session")
def _compiled_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Where Python may not write bytecode beside the modules, keep it elsewhere: else each of the hundreds of
    processes that tests start compiles all of the project anew, a quarter of a second. Tables that are kept for a user
    are kept there, too."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(shared / "cache"))
        if os.environ.get("PYTHONDONTWRITEBYTECODE"):
            patch.delenv("PYTHONDONTWRITEBYTECODE")
            patch.setenv("PYTHONPYCACHEPREFIX", str(shared / "bytecode"))
        yield


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    """A fresh nats-server, running, that flushes every append; one for each test (it starts in some 20 ms)."""
    with Broker(tmp_path / "broker") as running:
        yield running


ALONE = ("tests/simulation/test_worlds.py",)
"""Where tests share nothing that is worth keeping them together, and each takes many seconds."""

LONG = (*ALONE, "tests/faults/", "tests/test_contributing.py", "tests/e2e/", "tests/deploy/")
"""What comes first, so that no process is left alone with it at the end."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the longest tests first, in the order of ``LONG``."""
    items.sort(
        key=lambda item: next((place for place, long in enumerate(LONG) if item.nodeid.startswith(long)), len(LONG))
    )


TOGETHER = ("tests/e2e/http/", "tests/e2e/test_")
"""Beginnings of modules that one process has all of: each process that has any of them starts the set they share."""


class _ByModule(LoadScopeScheduling):
    """Gives a process whole modules: what a module sets up, such as a running set, is set up once."""

    def _split_scope(self, nodeid: str) -> str:
        if nodeid.startswith(ALONE):
            return nodeid
        return next((place for place in TOGETHER if nodeid.startswith(place)), nodeid.partition("::")[0])


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Run more processes than there are cores: half of the time tests wait, for deadlines, leases and processes."""
    return 2 * (os.cpu_count() or 1)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling | None:
    """Share the tests out by modules, in the order above."""
    if config.getoption("dist") != "load":
        return None
    config.option.loadscopereorder = False
    return _ByModule(config, log)
