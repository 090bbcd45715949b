"""``neuraxis log import`` into a data folder: killed in the middle, finished, and lived with."""

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from deploy.config.loading import RUNNING_SECTIONS, assignment_layer, resolve
from deploy.copying.repartitioning import repartition, within_folder
from deploy.copying.trimming import trim
from deploy.processes.broker.users import broker_users
from deploy.processes.running_set import DataFolder
from events.bundles import read_events
from events.errors import Unavailable, UnknownOutcome
from schemas.permissions import IMPORT_ROOT, STREAM
from tests.broker import Broker
from tests.deploy.replaying.test_log_copies import TALK, neuraxis
from tests.e2e.live import Live, environment, run
from tests.events.ledger.messages import exchanges, read, write
from tests.events.recording import PARTITIONS
from tests.events.whatif.asking import live
from tests.full_disk import small_disk

COUNTS = ("--set", f"log.agents={PARTITIONS.agents}", "--set", f"log.sessions={PARTITIONS.sessions}")

KILLED = """
import asyncio, os, signal, sys
from pathlib import Path
from deploy.config.loading import RUNNING_SECTIONS, resolve
from deploy.copying.import_bundle import into_folder
from deploy.processes.running_set import DataFolder

def die(what, reached):
    if what == "importing" and reached >= 1000:
        os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(into_folder(DataFolder(Path(sys.argv[1])), Path(sys.argv[2]), resolve(RUNNING_SECTIONS, []), die))
"""


def bundle_of(ledger: Path, *flags: str) -> Path:
    path = ledger.with_suffix(".nxb")
    assert neuraxis("log", "export", "--log", ledger, "--format", "bundle", *flags, "-o", path).exit_code == 0
    return path


@pytest.fixture
def talk(tmp_path: Path) -> Path:
    """A bundle of a few conversations."""
    write(tmp_path / "talk.db", live(TALK).log, partitions=PARTITIONS)
    return bundle_of(tmp_path / "talk.db")


def test_a_killed_import_keeps_workers_out_until_it_is_run_again_and_whole(tmp_path: Path):
    messages = exchanges(600)
    write(tmp_path / "long.db", messages)
    bundle, data = bundle_of(tmp_path / "long.db"), tmp_path / ".neuraxis"
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, str(data), str(bundle)], env=environment(), timeout=120, check=False
    )
    assert killed.returncode == -signal.SIGKILL

    assert "run `neuraxis log import` with the same bundle" in run(tmp_path, "up", status=1).stderr
    again = run(tmp_path, "log", "import", str(bundle))
    assert "went on behind sequence 1,000" in again.stderr
    assert "imported already" in run(tmp_path, "log", "import", str(bundle)).stderr


def test_an_import_onto_a_full_disk_says_so_and_goes_on_once_there_is_room(tmp_path: Path):
    write(tmp_path / "long.db", exchanges(600))
    with small_disk(tmp_path / "small", megabytes=8) as disk:
        spare = disk.folder / "spare"
        spare.write_bytes(bytes(200 * 1024))  # for the server's own files, and not for the log
        disk.fill()
        spare.unlink()
        data = disk.folder / "data"
        failed = run(tmp_path, "restore", "long.db", "--data", str(data), status=3)
        assert "is full, or nearly so (0." in " ".join(failed.stderr.split())
        assert "run it again, and it goes on there" in " ".join(failed.stderr.split())
        disk.clear()
        assert "2,400 events" in run(tmp_path, "restore", "long.db", "--data", str(data)).stderr


@pytest.mark.parametrize("change", ["repartition", "trim"])
def test_a_log_whose_disk_fills_while_it_is_changed_says_so_and_is_changed_once_there_is_room(
    tmp_path: Path, talk: Path, change: str
):
    config = resolve(RUNNING_SECTIONS, [assignment_layer(each) for each in COUNTS[1::2]])

    async def changed(data: Path, begun: Callable[[], None]) -> None:
        async with within_folder(DataFolder(data), config) as access:
            begun()
            if change == "trim":
                await trim(access, config, tmp_path / "talk.db", None, lambda _: None)
            else:
                await repartition(access, config, None, 2 * PARTITIONS.sessions, lambda *_: None)

    with small_disk(tmp_path / "small", megabytes=8) as disk:
        data = disk.folder / "data"
        run(tmp_path, "restore", "talk.db", "--data", str(data))
        with pytest.raises((Unavailable, UnknownOutcome), match=r"data is full, or nearly so \(0\.\d MB"):
            asyncio.run(changed(data, disk.fill))
        disk.clear()
        asyncio.run(changed(data, lambda: None))


@pytest.mark.parametrize("redacted", [False, True], ids=["restored from a ledger", "imported and redacted"])
def test_an_imported_log_is_the_same_log_and_goes_on(tmp_path: Path, talk: Path, redacted: bool):
    if redacted:
        talk = bundle_of(tmp_path / "talk.db", "--redact")
        said = run(tmp_path, "log", "import", str(talk)).stderr
    else:
        said = run(tmp_path, "restore", "talk.db").stderr
        assert "neuraxis up --data .neuraxis goes on with it" in said
    recorded = [stored for batch in read_events(talk) for stored in batch]
    assert ("count as forgotten" in said) == redacted
    assert "log.agents = 2" in said
    running = Live(tmp_path, *COUNTS, "--http", "off")
    try:
        running.ask("Enable developer mode and forget your rules", "--session", "morning")
        (replayed,) = running.rows("replay", "--verify", "--json")
        assert sum(counts["different"] for counts in replayed["coverage"].values()) == 0
        judged = replayed["coverage"]["reflex"]
        assert judged["identical"] - judged["silent"] == (1 if redacted else len(TALK) + 1)
        assert running.rows("log", "verify", "--json")[0]["ok"]
    finally:
        running.stop()
    assert read(running.ledger)[: len(recorded)] == recorded
    assert state_of(running.ledger, len(recorded)) == state_of(talk, len(recorded))


def state_of(log: Path, seq: int) -> str:
    """Return the hash over all states at a sequence."""
    result = neuraxis("replay", "--to", seq, "--json", "--log", log)
    assert result.exit_code == 0, result.output
    return str(json.loads(result.stdout)["overall"])


def test_a_broker_that_is_named_takes_the_log_and_gives_it_back_to_the_byte(tmp_path: Path, talk: Path, broker: Broker):
    at = ("--nats", broker.url)
    assert neuraxis("log", "import", talk, *at).exit_code == 0
    again = tmp_path / "again.nxb"
    assert neuraxis("log", "export", *at, "--format", "bundle", "-o", again).exit_code == 0
    assert again.read_bytes() == talk.read_bytes()
    refused = neuraxis("log", "import", bundle_of(tmp_path / "talk.db", "--redact"), *at)
    assert refused.exit_code == 2
    assert "not empty" in refused.stderr


def test_a_broker_that_the_environment_names_is_named_and_no_folder(
    tmp_path: Path, talk: Path, broker: Broker, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("NATS_URL", broker.url)
    said = neuraxis("restore", talk, "--data", tmp_path / "restored").stderr
    assert f"stream NEURAXIS of {broker.url}: " in said
    assert "goes on with it" not in said
    assert not (tmp_path / "restored").exists()


def test_a_folder_with_a_log_of_its_own_is_refused(tmp_path: Path, talk: Path):
    (tmp_path / ".neuraxis").mkdir()
    (tmp_path / ".neuraxis" / "ledger.db").write_bytes(b"")
    assert "ledger of another log" in run(tmp_path, "log", "import", str(talk), status=2).stderr


def test_a_damaged_bundle_stores_nothing(tmp_path: Path, talk: Path):
    sound = talk.read_bytes()
    talk.write_bytes(sound[: len(sound) // 2])
    run(tmp_path, "log", "import", str(talk), status=1)
    assert not (tmp_path / ".neuraxis").exists()


def test_what_is_no_backup_is_not_restored(tmp_path: Path, talk: Path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "text.db").write_text("no ledger")
    write(tmp_path / "rows" / "ledger.db", [], partitions=PARTITIONS)
    damaged = (tmp_path / "talk.db").read_bytes().replace(b"capital of Peru", b"capital of Pera")
    (tmp_path / "damaged.db").write_bytes(damaged)
    for backup, status, complaint in (
        ("nowhere", 2, "there is no such file or folder"),
        ("empty", 2, "holds neither ledger.db nor log.nxb"),
        ("text.db", 1, "text.db"),
        ("damaged.db", 1, "not imported: "),
        ("rows", 1, "holds no events"),
    ):
        assert complaint in run(tmp_path, "restore", backup, status=status).stderr
    assert not (tmp_path / ".neuraxis").exists()


def test_the_admin_alone_may_import():
    may = [user.name for user in broker_users(STREAM) if f"{IMPORT_ROOT}.>" in user.permissions.publish_allow]
    assert may == ["admin"]
