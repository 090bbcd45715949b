"""A backup whose bundle could not be written says what is there and how to go on; nothing that is there is replaced."""

import asyncio
from pathlib import Path

import pytest

from deploy.cli.logs import backup as backup_command
from events.bundles import read_manifest
from events.jetstream import JetStreamLog
from events.log import Append, Record, Stored
from tests.broker import Broker
from tests.deploy.cli.logs.test_nothing_there import fails, in_a_folder, neuraxis, talk
from tests.events.ledger.messages import write
from tests.events.recording import PARTITIONS
from tests.events.setting import collect

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


def test_a_backup_that_is_to_be_complete_fails_unless_it_is_known_to_be(
    ledger: Path, talk: list[Stored], broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backup_command, "_COMPLETE_WAIT_S", 0.1)

    async def stream(*messages: Stored) -> list[Stored]:
        log = await JetStreamLog.connect(broker.url, partitions=PARTITIONS)
        await log.append([Append([Record(each.subject, {}, each.data)]) for each in messages])
        found = await collect(log)
        await log.close()
        return found

    unknown = neuraxis("backup", "unknown", "--complete", "--ledger", ledger)
    fails(unknown, "whether the copy holds all of the stream is not known")
    own = Path("own.db")
    write(own, asyncio.run(stream(*talk)), partitions=PARTITIONS)
    known = ("--complete", "--ledger", own, "--nats", broker.url)
    assert neuraxis("backup", "whole", *known).exit_code == 0
    of_another_log = neuraxis("backup", "other", "--complete", "--ledger", ledger, "--nats", broker.url)
    fails(of_another_log, "whether the copy holds all of the stream is not known")
    assert "stream NEURAXIS at nats://127.0.0.1" in of_another_log.stderr
    assert "no broker tells" not in of_another_log.stderr
    missing = neuraxis("backup", "none", "--complete", "--ledger", "missing.db", "--nats", broker.url)
    assert (missing.exit_code != 0, "not known" in missing.stderr, missing.stderr.count("missing.db")) == (
        True,
        False,
        1,
    )
    asyncio.run(stream(*talk[:2]))
    fails(neuraxis("backup", "late", *known), "the copy lacks 2 events of the stream")
    assert neuraxis("backup", "late2", *known[1:]).exit_code == 0
    for each in ("unknown", "late"):
        assert Path(each, "ledger.db").is_file(), "what there is is kept"
