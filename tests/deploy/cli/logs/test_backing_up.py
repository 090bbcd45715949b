"""A backup whose bundle could not be written says what is there and how to go on; nothing that is there is replaced."""

from pathlib import Path

import pytest

from events.bundles import read_manifest
from events.log import Stored
from tests.deploy.cli.logs.test_nothing_there import in_a_folder, neuraxis, talk
from tests.events.ledger.messages import write
from tests.events.recording import PARTITIONS

__all__ = ["in_a_folder", "talk"]


@pytest.fixture
def ledger(talk: list[Stored], tmp_path: Path) -> Path:
    path = tmp_path / "ledger.db"
    write(path, talk, partitions=PARTITIONS)
    return path


def test_a_backup_whose_bundle_failed_says_what_is_kept_and_a_retry_how_to_write_the_rest(ledger: Path) -> None:
    kept, bundle = Path("kept/ledger.db"), Path("kept/log.nxb")
    in_the_way = Path("kept/log.nxb.part")
    in_the_way.mkdir(parents=True)
    command = ("backup", "kept", "--bundle", "--ledger", ledger)

    failed = neuraxis(*command)
    in_the_way.rmdir()
    again = neuraxis(*command)

    assert "kept/ledger.db is copied and sound" in failed.stderr
    assert (again.exit_code, "kept/ledger.db exists" in again.stderr) == (2, True)
    go_on = ("log", "export", "--format", "bundle", "--log", str(kept), "-o", str(bundle))
    for told in (failed, again):
        assert f"`neuraxis {' '.join(go_on)}` writes its bundle" in told.stderr
    assert neuraxis(*go_on).exit_code == 0
    assert read_manifest(bundle).events > 0
    once_more = neuraxis(*command)
    assert (once_more.exit_code, "writes its bundle" in once_more.stderr) == (2, False)
