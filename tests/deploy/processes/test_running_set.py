"""The lock of a data folder and what ``run.json`` says."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from deploy.processes.running_set import (
    ENDED_EARLY,
    DataFolder,
    FolderTaken,
    FolderUnusable,
    NotReachableYet,
    NotRunning,
    RunFile,
)
from tests.deploy.waiting import until
from tests.full_disk import small_disk

RUN = RunFile(pid=os.getpid(), started="2030-01-01T00:00:00+00:00", version="0", nats_url="nats://127.0.0.1:4222")

HOLDS = """
import pathlib, signal, sys
from deploy.processes.running_set import DataFolder
with DataFolder(pathlib.Path(sys.argv[1])).locked():
    pathlib.Path(sys.argv[1], "held").touch()
    signal.pause()
"""


def test_a_second_set_is_refused_and_told_the_first_ones_process(tmp_path: Path) -> None:
    holder = subprocess.Popen([sys.executable, "-c", HOLDS, str(tmp_path)])
    try:
        until((tmp_path / "held").exists, "the folder is held")
        with (
            pytest.raises(FolderTaken, match=f"is in use by process {holder.pid}: stop that one"),
            DataFolder(tmp_path).locked(),
        ):
            pass
    finally:
        holder.kill()
        holder.wait()


def test_a_folder_that_cannot_be_made_or_written_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "folder" / "lock").mkdir(parents=True)
    for folder in (tmp_path / "file" / "below", tmp_path / "folder"):
        with pytest.raises(FolderUnusable, match=f"{folder} cannot be written"), DataFolder(folder).locked():
            pass


def test_a_folder_on_a_full_disk_is_refused_by_name(tmp_path: Path) -> None:
    with small_disk(tmp_path / "small", megabytes=1) as disk:
        folder = disk.folder / "set"
        folder.mkdir()
        (folder / "lock").touch()
        disk.fill()
        with pytest.raises(FolderUnusable, match="cannot be written"), DataFolder(folder).locked():
            pass


def test_a_killed_set_leaves_no_lock(tmp_path: Path) -> None:
    holder = subprocess.Popen([sys.executable, "-c", HOLDS, str(tmp_path)])
    until((tmp_path / "held").exists, "the folder is held")
    holder.kill()
    holder.wait()
    with DataFolder(tmp_path).locked():
        assert (tmp_path / "lock").exists()


def test_the_folder_stays_held_while_a_killed_sets_broker_lives(tmp_path: Path) -> None:
    code = HOLDS.replace("locked():", "locked() as lock:").replace(
        "signal.pause()",
        "import subprocess\n"
        "    child = subprocess.Popen([sys.executable, '-c', 'import signal; signal.pause()'], pass_fds=[lock])\n"
        "    pathlib.Path(sys.argv[1], 'child.new').write_text(str(child.pid))\n"
        "    pathlib.Path(sys.argv[1], 'child.new').rename(pathlib.Path(sys.argv[1], 'child'))\n"
        "    signal.pause()",
    )
    holder = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)])
    until((tmp_path / "child").exists, "the child runs")
    holder.kill()
    holder.wait()
    data = DataFolder(tmp_path)
    of_holder = msgspec.structs.replace(RUN, pid=holder.pid)
    data.write(of_holder)
    assert data.read() == of_holder, "the folder is held by the child"
    os.kill(int((tmp_path / "child").read_text()), signal.SIGKILL)
    with data.locked():
        pass


def test_what_was_written_is_read_while_the_folder_is_held(tmp_path: Path) -> None:
    data = DataFolder(tmp_path)
    with data.locked():
        data.write(RUN)
        assert data.read() == RUN
        assert data.run_file.stat().st_mode & 0o077 == 0


def test_a_run_file_that_a_killed_set_left_is_not_believed(tmp_path: Path) -> None:
    data = DataFolder(tmp_path)
    with data.locked():
        data.write(RUN)
    killed = f"{ENDED_EARLY}: start it again with `neuraxis up --data {tmp_path}`"
    with pytest.raises(NotRunning, match=killed):
        data.read()
    data.write(msgspec.structs.replace(RUN, pid=1))  # 1 is another process
    with data.locked():
        with pytest.raises(NotReachableYet, match="starting a set there, or works on its log"):
            data.read()
        data.end_run(ledger_holds_end=False)  # it could not be started
    with pytest.raises(NotRunning, match=killed):
        data.read()


def test_a_set_that_could_not_write_its_run_file_still_leaves_one_if_its_ledger_lacks_the_end(tmp_path: Path) -> None:
    data = DataFolder(tmp_path)
    with data.locked():
        data.end_run(ledger_holds_end=False)
    assert data.run_file.stat().st_mode & 0o077 == 0
    with pytest.raises(NotRunning, match="start the set again"):
        data.read()
    with data.locked():
        data.end_run(ledger_holds_end=True)
        data.end_run(ledger_holds_end=True)
    with pytest.raises(NotRunning, match="no set runs in"):
        data.read()


def test_a_running_set_that_another_release_started_is_not_called_stopped(tmp_path: Path) -> None:
    data = DataFolder(tmp_path)
    with data.locked():
        data.run_file.write_text('{"pid": "node-7/12"}')
        with pytest.raises(NotReachableYet, match=r"a set runs in .*: use the commands of the release that started it"):
            data.read()


def test_a_running_set_that_says_nothing_yet_is_not_called_stopped(tmp_path: Path) -> None:
    data = DataFolder(tmp_path)
    with data.locked(), pytest.raises(NotReachableYet, match=r"a set runs in .*run\.json is not there yet"):
        data.read()
    with pytest.raises(NotRunning, match="no set runs in"):
        data.read()


def test_a_set_whose_files_were_deleted_is_not_called_killed(tmp_path: Path) -> None:
    data = DataFolder(tmp_path)
    with data.locked():
        data.write(msgspec.structs.replace(RUN, pid=os.getpid()))
        (tmp_path / "lock").unlink()
        with pytest.raises(NotReachableYet, match=f"were deleted while it runs .process {os.getpid()}."):
            data.read()


@pytest.mark.parametrize("content", ["", "{", '{"pid": "x"}'])
def test_a_damaged_run_file_is_refused_by_name(content: str, tmp_path: Path) -> None:
    data = DataFolder(tmp_path)
    data.run_file.write_text(content)
    with pytest.raises(NotRunning, match=r"run\.json cannot be read"):
        data.read()
