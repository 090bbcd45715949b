"""A broker whose files are deleted or moved while it runs: it says nothing itself, and acknowledges."""

import asyncio
import resource
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from deploy.processes.broker.configuration import Layout, render, server_configuration
from deploy.processes.broker.storage_watch import STORE_GONE, own_store, store_fault, store_limit
from events.jetstream import JetStreamLog
from events.jetstream.storage_check import storage_fault
from tests.broker import Broker
from tests.events.setting import plain, record


def move(store: Path) -> None:
    store.rename(store.with_name("elsewhere"))


def remove_all_but_folders(store: Path) -> None:
    for file in store.rglob("*"):
        if file.is_file():
            file.unlink()


@pytest.mark.parametrize("lose", [shutil.rmtree, move, remove_all_but_folders])
def test_a_store_whose_files_are_gone_is_told_although_the_broker_acknowledges(
    lose: Callable[[Path], None], broker: Broker
) -> None:
    async def append(log: JetStreamLog) -> int:
        return await log.append([plain(record("log.00.00.reflex.passed", b"{}"))])

    async def main() -> None:
        log = await JetStreamLog.connect(broker.url)
        try:
            await append(log)
            assert store_fault(broker.store, log.stream) == ""
            lose(broker.store)
            assert await append(log) == 2
            assert await storage_fault(log.connection, log.stream) == ""
            assert store_fault(broker.store, log.stream).startswith(STORE_GONE)
            assert str(broker.store) not in store_fault(broker.store, log.stream)
            assert store_fault(None, log.stream) == ""
        finally:
            await log.close()

    asyncio.run(main())


def test_a_store_that_cannot_be_looked_at_is_not_said_to_be_gone(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (1, hard))
    try:
        assert store_fault(tmp_path, "NEURAXIS") == ""
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert store_fault(tmp_path, "NEURAXIS").startswith(STORE_GONE)


@pytest.mark.parametrize("left", ["jetstream", "jetstream/$G/streams/NEURAXIS"])
def test_a_file_in_the_place_of_a_folder_is_no_store(left: str, tmp_path: Path) -> None:
    (tmp_path / left).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / left).touch()
    assert store_fault(tmp_path, "NEURAXIS").startswith(STORE_GONE)


def test_a_set_s_own_broker_is_the_one_whose_logins_lie_beside_it(tmp_path: Path) -> None:
    layout = Layout(tmp_path / "broker")
    assert own_store(tmp_path, str(layout.contexts)) == layout.store
    for others in ("", str(tmp_path / "logins"), str(tmp_path)):
        assert own_store(tmp_path, others) is None


def test_how_much_an_embedded_server_may_store_is_read_from_its_configuration(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    assert (store_limit(None), store_limit(layout.store)) == (0, 0)
    configuration = server_configuration(layout, port=-1, sync="always", max_store=4_711, accounts={})
    layout.configuration.write_bytes(render(configuration))
    assert store_limit(layout.store) == 4_711
    layout.configuration.write_bytes(b"{")
    assert store_limit(layout.store) == 0
