"""Deployment files on a full disk: no half file, no secret that stops the next run, and what is missing is said."""

from pathlib import Path

import pytest

from tests.deploy.deploying.written import deploy, refusal
from tests.full_disk import small_disk


@pytest.mark.parametrize("kind", ["compose", "systemd", "helm"])
def test_a_deployment_is_written_completely_or_not_at_all(kind: str, tmp_path: Path) -> None:
    with small_disk(tmp_path / "small", megabytes=1) as disk:
        kept = disk.folder / "spare"
        kept.write_bytes(bytes(4096))
        disk.fill()
        kept.unlink()  # room for a part of it, or for none
        out = disk.folder / "deployment"
        assert "cannot be written: No space left on device" in refusal(kind, "--out", str(out))
        assert not out.exists()
        disk.clear()
        assert deploy(kind, "--out", str(out)).exit_code == 0


@pytest.mark.parametrize("flags", [(), ("--passwords",)], ids=["nkeys", "passwords"])
def test_logins_that_a_full_disk_cut_short_are_made_by_the_next_run(flags: tuple[str, ...], tmp_path: Path) -> None:
    with small_disk(tmp_path / "small", megabytes=1) as disk:
        spare = disk.folder / "spare"
        spare.write_bytes(bytes(4 * 4096))
        disk.fill()
        spare.unlink()
        out = disk.folder / "broker"
        command = ("nats-conf", "--out", str(out), *flags)
        assert "cannot be written: No space left on device" in refusal(*command)
        assert all(file.stat().st_size for file in out.rglob("*") if file.is_file())
        disk.clear()
        told = deploy(*command)
        assert told.exit_code == 0, told.stderr
