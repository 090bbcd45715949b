"""A set that is stopped in order: whether its ledger holds all of the log is found out before its broker ends."""

import asyncio
import json
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import httpx

from deploy.processes.broker_access import BadContext
from deploy.processes.ledger_end import DEADLINE_S, LedgerEnd
from deploy.processes.running_set import DataFolder
from events.jetstream import Access
from tests.deploy.waiting import until
from tests.e2e.live import Live
from tests.full_disk import small_disk

ENDED_EARLY = "was killed, or stopped before its ledger held all of the log"


def _stop(live: Live) -> bool:
    """Stop a set in order; return whether ``run.json`` is left."""
    live.stop()
    return (live.data / "run.json").exists()


def test_what_a_set_leaves_whose_ledger_could_not_be_written_is_not_taken_for_all(tmp_path: Path) -> None:
    """``neuraxis alerts --open || page-somebody``: nobody was paged, since the ledger ended before the alert."""
    (tmp_path / "store").mkdir()
    with small_disk(tmp_path / ".neuraxis", megabytes=8) as disk:
        (disk.folder / "broker").symlink_to(tmp_path / "store", target_is_directory=True)  # a disk with room
        live = Live(tmp_path, "--http", "off")
        try:
            live.ask("Hello")
            disk.fill()
            live.ask("What is the capital of Peru?")
            until(lambda: "ledger_waits" in live.output.read_text(), "the ledger cannot be written")
            assert _stop(live), live.output.read_text()
        finally:
            live.process.kill()
            live.process.wait()
        assert "ledger_end_missing" in live.output.read_text()
        disk.clear()

        def told(*arguments: str, status: int) -> str:
            return " ".join(live.run(*arguments, status=status).stderr.split())

        assert f"whether an alert fires is not known: the set {ENDED_EARLY}" in told("alerts", "--open", status=1)
        assert f"the set {ENDED_EARLY}: this is read from its ledger" in told("log", "info", status=0)
        unknown = "whether the stream holds more than the ledger is not known: the set in .neuraxis"
        assert unknown in told("backup", "copy", status=0)
        assert "whether the copy holds all of the stream is not known" in told("backup", "2", "--complete", status=1)
        assert ENDED_EARLY in live.run("log", "verify").stdout

        again = Live(tmp_path, "--http", "off")
        try:
            (stream, ledger) = again.rows("log", "info", "--json")
            until(lambda: again.rows("log", "info", "--json")[1]["last_seq"] >= stream["last_seq"], "it is caught up")
            assert ledger["source"] != stream["source"]
            assert not _stop(again), again.output.read_text()
        finally:
            again.process.kill()
            again.process.wait()
        assert "the set is stopped: this is read from its ledger" in told("alerts", "--open", status=0)


def test_a_set_that_is_stopped_at_work_leaves_a_ledger_that_holds_all(tmp_path: Path) -> None:
    """What the deciders append until they have ended is written, too: the ledger's process is told to stop last."""
    live = Live(tmp_path, "--http", "127.0.0.1:0")
    url = json.loads((live.data / "run.json").read_text())["http"]
    answered: list[int] = []

    def talk(number: int) -> None:
        body = {"model": "neuraxis", "messages": [{"role": "user", "content": f"Hello {number}"}]}
        with httpx.Client(base_url=url, timeout=10, trust_env=False) as client, suppress(httpx.HTTPError):
            while live.process.poll() is None:
                answered.append(client.post("/v1/chat/completions", json=body).status_code)

    try:
        with ThreadPoolExecutor(4) as pool:
            talks = [pool.submit(talk, number) for number in range(4)]
            until(lambda: answered.count(200) > 8 or all(each.done() for each in talks), "the set is at work")
            is_left = _stop(live)
    finally:
        live.process.kill()
        live.process.wait()
    assert answered.count(200) > 8, answered
    assert not is_left, live.output.read_text()


def test_where_the_broker_is_gone_the_end_counts_as_missing_and_nothing_hangs(tmp_path: Path) -> None:
    found = LedgerEnd(DataFolder(tmp_path))
    assert found.is_held, "no set has left anything"
    started = time.monotonic()
    asyncio.run(found.check(lambda: Access(servers="nats://127.0.0.1:1"), "NEURAXIS"))
    assert time.monotonic() - started < 2 * DEADLINE_S
    assert not found.is_held


def test_a_set_that_is_killed_is_not_kept_from_its_end(tmp_path: Path) -> None:
    found = LedgerEnd(DataFolder(tmp_path))
    found.skip_check()
    started = time.monotonic()
    asyncio.run(found.check(lambda: Access(servers="nats://127.0.0.1:1"), "NEURAXIS"))
    assert time.monotonic() - started < DEADLINE_S / 2
    assert not found.is_held


def test_where_the_login_is_gone_the_end_counts_as_missing(tmp_path: Path) -> None:
    def gone() -> Access:
        raise BadContext("there is no such file")

    found = LedgerEnd(DataFolder(tmp_path))
    asyncio.run(found.check(gone, "NEURAXIS"))
    assert not found.is_held


def test_what_the_last_set_left_holds_until_it_is_looked_at(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text("{}")
    assert not LedgerEnd(DataFolder(tmp_path)).is_held
