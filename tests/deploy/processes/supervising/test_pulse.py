"""How orchestrators tell a live, ready process from a stuck one: the health file, its probe, systemd's watchdog."""

import asyncio
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from deploy.config.loading import BadConfiguration
from deploy.processes.supervising.pulse import STARTING, Pulse
from neuraxis_server.probe import STUCK_AFTER_S, run, why_not
from tests.broker import Broker
from tests.deploy.waiting import until
from tests.each import each
from tests.full_disk import small_disk

ALIVE_S = 60.0


def written(file: Path, **changed: object) -> str:
    file.write_text(json.dumps({"pid": 7, "beat_s": 100.0, "fault": "", **changed}))
    return str(file)


def test_a_process_that_beats_lives_and_is_ready_unless_it_says_why_not(tmp_path: Path) -> None:
    file = written(tmp_path / "health.json")
    assert why_not(file, "live", 101) == why_not(file, "ready", 101) == ""
    file = written(tmp_path / "health.json", fault="router does not advance in 07")
    assert why_not(file, "live", 101) == ""
    assert why_not(file, "ready", 101) == "router does not advance in 07"


def test_a_process_that_has_not_beaten_for_a_while_is_stuck(tmp_path: Path) -> None:
    file = written(tmp_path / "health.json")
    assert why_not(file, "live", 100 + STUCK_AFTER_S) == ""
    assert why_not(file, "live", 101 + STUCK_AFTER_S) == "process 7 has not beaten for 16 s: it hangs, or was killed"
    assert why_not(file, "ready", 101 + STUCK_AFTER_S)


def test_a_file_of_before_the_machine_started_is_nobodys_sign_of_life(tmp_path: Path) -> None:
    assert "before this machine started" in why_not(written(tmp_path / "health.json"), "live", 5)


@each("content", ["", "[1]", '{"pid": 1}', '{"pid": 1, "beat_s": "x", "fault": ""}', "\0", '"x"'])
def test_a_file_that_is_no_health_file_is_no_sign_of_life(content: str, tmp_path: Path) -> None:
    file = tmp_path / "health.json"
    file.write_text(content)
    assert "cannot be read as a health file" in why_not(str(file), "live", 1)


def test_the_probe_answers_by_its_status_and_says_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = written(tmp_path / "health.json", fault="starting")
    assert run(["live", file], "", lambda: 101) == 0
    assert run(["live"], file, lambda: 101) == 0
    assert run(["ready", file], "", lambda: 101) == 1
    assert run(["live", str(tmp_path / "none")], "", lambda: 101) == 1
    told = capsys.readouterr()
    assert told.out == "live\nlive\n"
    assert told.err.splitlines()[0] == "not ready: starting"
    for wrong in ([], ["alive", file], ["live"], ["live", file, file]):
        assert run(wrong, "", lambda: 101) == 2
    assert run(["--help"], "", lambda: 101) == 0


def test_the_probe_imports_nothing_that_takes_long() -> None:
    command = "import neuraxis_server.probe, sys; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-P", "-c", command], capture_output=True, text=True, check=True).stdout
    assert not {"asyncio", "click", "msgspec", "nats", "structlog"} & set(loaded.split())


def test_a_pulse_tells_its_fault_at_each_beat_and_takes_its_file_away(tmp_path: Path) -> None:
    file = tmp_path / "health.json"

    async def live() -> None:
        pulse = Pulse(str(file), supervised=False)
        async with pulse.beating():
            pulse.report()
            assert why_not(str(file), "ready", time.monotonic()) == STARTING
            pulse.fault = lambda: ""
            pulse.report()
            assert why_not(str(file), "ready", time.monotonic()) == ""

    asyncio.run(live())
    assert list(tmp_path.iterdir()) == []


def test_a_file_of_another_kind_is_left_alone(tmp_path: Path) -> None:
    """It was replaced, and removed at the end; as root, even ``/dev/null``."""
    settings = tmp_path / "neuraxis.toml"
    settings.write_text("[log]\n")
    for file in (settings, Path(os.devnull), tmp_path):
        with pytest.raises(BadConfiguration, match="is there, is no health file, and would be replaced"):
            Pulse(str(file), supervised=False)
    assert settings.read_text() == "[log]\n"
    Pulse(str(settings), supervised=True)
    for content in (
        "",
        "\0" * 2048,
        '{"pid": 7, "beat_s": 1.5, "fault": ""}',
        '{"beat_s": 1.5, "of": "another version"}',
    ):
        settings.write_text(content)
        Pulse(str(settings), supervised=False).report()


def test_a_file_that_cannot_be_written_does_not_stop_the_work(tmp_path: Path) -> None:
    pulse = Pulse(str(tmp_path / "absent" / "health.json"), supervised=False)
    pulse.report()
    assert "there is no" in why_not(str(tmp_path / "absent" / "health.json"), "live", time.monotonic())


@pytest.mark.parametrize("harm", ["room", "inodes"])
def test_a_disk_that_is_full_does_not_make_a_live_process_look_dead(harm: str, tmp_path: Path) -> None:
    """It would be killed and started again for ever, which gives no room."""
    with small_disk(tmp_path / "small", megabytes=1) as disk:
        file = disk.folder / "health.json"
        pulse = Pulse(str(file), supervised=False)
        pulse.fault = lambda: ""
        pulse.report()
        disk.fill() if harm == "room" else disk.use_up_inodes()
        before = json.loads(file.read_text())["beat_s"]
        pulse.fault = lambda: "the disk is full " + "\u00e9\n" * 1_000
        pulse.report()
        assert json.loads(file.read_text())["beat_s"] > before
        assert why_not(str(file), "live", time.monotonic()) == ""
        assert why_not(str(file), "ready", time.monotonic()).startswith("the disk is full")
        disk.clear() if harm == "room" else disk.give_inodes()
        pulse.fault = lambda: ""
        pulse.report()
        assert why_not(str(file), "ready", time.monotonic()) == ""
        assert list(disk.folder.glob(".health.json-*")) == []


def test_a_process_under_our_own_supervisor_writes_no_file(tmp_path: Path) -> None:
    Pulse(str(tmp_path / "health.json"), supervised=True).report()
    assert list(tmp_path.iterdir()) == []


def test_a_manager_that_does_not_listen_holds_nothing_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as deaf:
        deaf.bind(str(tmp_path / "notify"))
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        for _ in range(2000):  # more than any queue of such a socket takes: a send that waits would wait for ever
            Pulse("", supervised=False).report()


def worker(broker: Broker, folder: Path, *more: str) -> list[str]:
    file = folder / "health.json"
    return [
        sys.executable, "-P", "-m", "neuraxis_server", "worker", "ledger", "--data", str(folder),
        "--nats", broker.url, "--set", f"runtime.health_file={file}", *more,
    ]  # fmt: skip


def test_orchestrators_see_a_worker_become_ready_lose_its_broker_hang_and_end(broker: Broker, tmp_path: Path) -> None:
    """systemd and the readers of the health file are told the same, by one process here."""
    file = str(tmp_path / "health.json")

    def fault() -> str:
        return why_not(file, "ready", time.monotonic())

    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(ALIVE_S)
        environment = {**os.environ, "NOTIFY_SOCKET": str(tmp_path / "notify")}
        process = subprocess.Popen(worker(broker, tmp_path), env=environment, stderr=subprocess.DEVNULL)
        try:
            first = manager.recv(4096).decode()
            assert first == f"WATCHDOG=1\nSTATUS={STARTING}\nEXTEND_TIMEOUT_USEC=60000000"
            while manager.recv(4096) != b"READY=1":
                continue
            while b"STATUS=ready" not in (beat := manager.recv(4096)):
                continue
            assert b"WATCHDOG=1" in beat
            assert b"EXTEND" not in beat
            until(lambda: not fault(), "the worker is ready")
            broker.kill()
            until(lambda: fault() == "the broker cannot be reached", "its fault is told")
            assert why_not(file, "live", time.monotonic()) == ""
            broker.start()
            until(lambda: not fault(), "the worker is ready again")
            process.send_signal(signal.SIGSTOP)
            assert "it hangs" in why_not(file, "live", time.monotonic() + STUCK_AFTER_S + 1)
            process.send_signal(signal.SIGCONT)
        finally:
            process.send_signal(signal.SIGCONT)
            process.terminate()
            assert process.wait(ALIVE_S) == 0
    assert not Path(file).exists()


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="makes a process namespace: root on Linux")
def test_the_first_process_of_a_container_stops_when_it_is_told_even_while_it_starts(tmp_path: Path) -> None:
    """The kernel drops a signal that the first process has no handler for."""
    if (unshare := shutil.which("unshare")) is None:
        pytest.skip("util-linux has unshare")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        command = [sys.executable, "-P", "-m", "neuraxis_server", "worker", "clock"]
        reach = ["--nats", f"nats://127.0.0.1:{silent.getsockname()[1]}", "--data", str(tmp_path)]
        process = subprocess.Popen(
            [unshare, "--pid", "--fork", "--kill-child", *command, *reach], stderr=subprocess.DEVNULL
        )
        try:
            silent.settimeout(ALIVE_S)
            with silent.accept()[0]:  # it is connecting, and nobody will answer
                [child] = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
                os.kill(int(child), signal.SIGTERM)
                assert process.wait(ALIVE_S) == 128 + signal.SIGTERM, "it ended because it could not connect"
        finally:
            process.kill()
            process.wait()
