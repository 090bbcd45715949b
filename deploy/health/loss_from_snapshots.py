"""Detecting that the end of the log was lost where the ledger does not show it: snapshots do, since they were saved
when the log had reached further.

A ledger shows nothing if there is none, if it is damaged, or if it was behind the log: its disk was full, say.
"""

import asyncio
import time
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

import msgspec

from actors.registry import ACTORS
from deploy.config.configured_log import configured_log
from deploy.config.loading import Config
from events.errors import LogError
from events.jetstream import Access, Connection, KeyValueSnapshots
from events.jetstream.reading.leader import confirmed_end
from events.jetstream.stream import find_stream
from events.ledger import LedgerReader
from events.loss_recording import log_loss, record_loss
from events.losses import Loss, Losses
from events.routes import partition_names
from events.snapshot import last_known_loss, partition_key
from schemas.intake.timestamps import rfc3339
from schemas.permissions import SNAPSHOTS_BUCKET
from schemas.vocabulary.ledger import LossRecorded

FETCHES = 8
"""Snapshots that are fetched at the same time: each may take half a megabyte, though only a header is of use."""


async def record_loss_from_snapshots(
    access: Access, config: Config, ledger: Path, source: str = "neuraxis/up/ledger"
) -> None:
    """Record a loss in the log if snapshots are ahead of both it and the ledger.

    If the ledger holds lost messages, the ledger's process records their loss, since it knows more. Call this before
    workers run where that can be: each event that they append reuses a sequence that was lost, and once all are reused,
    nothing is found. ``source`` is the one named in the event.

    Raises:
        LogError: the broker cannot be asked.
    """
    async with await Connection.open(access) as connection:
        bucket = await find_stream(connection, f"KV_{SNAPSHOTS_BUCKET}")
        if bucket is None or not bucket["state"]["messages"]:
            return  # no worker has ever run here, or none has saved a snapshot
        log = await configured_log(connection, config.log, create=False)
        snapshots = KeyValueSnapshots(connection)
        keys = [
            partition_key(actor.name, partition)
            for actor in ACTORS.values()
            for partition in partition_names(actor, log.partitions)
        ]
        fetches = asyncio.Semaphore(FETCHES)

        async def fetch_upto(key: str) -> int:
            async with fetches:
                return await snapshots.upto(key) or 0

        saved_upto = dict(zip(keys, await asyncio.gather(*map(fetch_upto, keys)), strict=True))
        # After the snapshots: what workers have appended and saved meanwhile is not lost.
        last = await confirmed_end(connection, log.stream, max(saved_upto.values(), default=0))
        known = max(last, await asyncio.to_thread(last_row, ledger))
        ahead = {key: upto for key, upto in saved_upto.items() if upto > known}
        if not ahead:
            return
        losses = (await Losses.of(log.as_stored(), last)).found
        reached = 0
        for key, upto in ahead.items():
            if not await _is_told(snapshots, key, upto, losses):
                reached = max(reached, upto)
        if not reached:
            return  # all of it is recorded already
        # given_again: the stream goes on from its end, so that later messages get the sequences of the lost ones.
        loss = LossRecorded(first_seq=known + 1, through_seq=reached, known_by="snapshots", given_again=True)
        await record_loss(log.as_stored(), loss, source, rfc3339(time.time_ns()), version("neuraxis"))
        log_loss(loss, None)


async def _is_told(snapshots: KeyValueSnapshots, key: str, upto: int, losses: Sequence[Loss]) -> bool:
    """Whether a snapshot ahead of the log shows only a loss that is recorded already.

    A partition without messages keeps a snapshot of before the loss. A snapshot that holds the record of the loss was
    made later, when the stream had used some of the lost sequences again: it shows a second loss, within the first.
    """
    told = [loss.seq for loss in losses if loss.event.first_seq <= upto <= loss.event.through_seq]
    if not told:
        return False
    data = await snapshots.load(key)
    try:
        knew_of = 0 if data is None else last_known_loss(data)
    except msgspec.MsgspecError:
        return True
    return knew_of < max(told) or all(loss.seq != knew_of for loss in losses)


def last_row(ledger: Path) -> int:
    """Return the sequence of a ledger's last row; 0 if there is no ledger, or none that can be read."""
    if not ledger.exists():
        return 0
    try:
        with LedgerReader(ledger, lambda _: None) as reader:
            return reader.info().last_seq
    except LogError:  # its process says what is wrong with it, and writes another one
        return 0
