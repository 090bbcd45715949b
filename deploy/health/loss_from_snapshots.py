"""Detecting, without a ledger, that the end of the log was lost: snapshots show how far the log had reached."""

import asyncio
import time
from importlib.metadata import version
from pathlib import Path

from actors.registry import ACTORS
from deploy.config.configured_log import configured_log
from deploy.config.loading import Config
from events.jetstream import Access, Connection, KeyValueSnapshots
from events.loss_recording import log_loss, record_loss
from events.routes import partition_names
from events.snapshot import partition_key
from schemas.intake.timestamps import rfc3339
from schemas.permissions import SNAPSHOTS_BUCKET
from schemas.vocabulary.ledger import LossRecorded


async def record_loss_from_snapshots(access: Access, config: Config, ledger: Path) -> None:
    """Record a loss in the log if snapshots are ahead of it. With a ledger do nothing: its own check knows more.

    Call it while no worker runs: the next event that a worker appends would reuse a sequence that was lost.

    Raises:
        LogError: the broker cannot be asked.
    """
    if ledger.exists():  # noqa: ASYNC240  # once, before anything else runs
        return
    connection = await Connection.open(access)
    try:
        bucket = await connection.api(f"STREAM.INFO.KV_{SNAPSHOTS_BUCKET}")
        if not bucket["state"]["messages"]:
            return
        log = await configured_log(connection, config.log, create=False)
        snapshots = KeyValueSnapshots(connection)
        keys = [
            partition_key(actor.name, partition)
            for actor in ACTORS.values()
            for partition in partition_names(actor, log.partitions)
        ]
        reached = max((upto or 0 for upto in await asyncio.gather(*map(snapshots.upto, keys))), default=0)
        last = (await log.info()).last_seq
        if reached <= last:
            return
        # given_again: the stream goes on from its end, so that later messages get the sequences of the lost ones.
        loss = LossRecorded(first_seq=last + 1, through_seq=reached, known_by="snapshots", given_again=True)
        await record_loss(log.as_stored(), loss, "neuraxis/up/ledger", rfc3339(time.time_ns()), version("neuraxis"))
        log_loss(loss, None)
    finally:
        await connection.close()
