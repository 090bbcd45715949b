"""A forked command is what a started one is: status, streams, folder and environment of its own, and an end in time."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.e2e.live import environment
from tests.forked import forked


def test_it_reads_and_writes_its_own_streams_in_its_own_folder_and_ends_with_its_own_status(tmp_path: Path) -> None:
    (tmp_path / "neuraxis.toml").write_text("[router]\nprofil = 1\n")
    wrong = forked(("config", "show", "router"), folder=tmp_path, environment=environment())
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert "did you mean 'profile'" in wrong.stderr
    read = forked(("patterns", "validate", "-"), folder=tmp_path, environment=environment(), stdin=b"[1]")
    assert read.returncode == 2
    assert os.getcwd() != str(tmp_path)


def test_it_has_the_environment_that_it_is_given_and_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEURAXIS_LOG__AGENTS", "7")
    shown = [
        forked(("config", "show", "log"), folder=tmp_path, environment=given).stdout
        for given in (environment(), {**environment(), "NEURAXIS_LOG__AGENTS": "9"})
    ]
    assert "9" in shown[1]
    assert shown[0] != shown[1]
    assert "7" not in shown[0]


def test_one_that_does_not_end_in_time_is_killed(tmp_path: Path) -> None:
    away = ("alerts", "--nats", "nats://127.0.0.1:1")
    with pytest.raises(subprocess.TimeoutExpired):
        forked(away, folder=tmp_path, environment=environment(), timeout=0.2)
