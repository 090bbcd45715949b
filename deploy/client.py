"""A client of a running set, for programs that run in its environment: see docs/client.md."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from actors.gateway import Client
from deploy.config.settings import BrokerSettings
from deploy.health.stage_watch import watching_stages
from deploy.processes.broker_access import BrokerChoice, access_of, effective_choice
from deploy.processes.inbox import listening_inbox
from deploy.processes.running_set import DataFolder
from events.jetstream import JetStreamLog
from schemas.intake.limits import InputLimits
from schemas.permissions import STREAM


@asynccontextmanager
async def connect(
    data: str | Path = ".neuraxis",
    *,
    nats: str = "",
    context: str = "",
    creds: str = "",
    tls_ca: str = "",
    stream: str = "",
    limits: InputLimits | None = None,
) -> AsyncIterator[Client]:
    """Open a client of a running set for the length of an ``async with`` block.

    Args:
        data: The data folder of the set.
        nats: The broker's URL, instead of a folder; as ``--nats``. ``NATS_URL`` counts as well.
        context: A context of the NATS command line, instead of a URL.
        creds: A credentials file.
        tls_ca: A file of certificate authorities.
        stream: The stream that is the log; that of the set, or ``NEURAXIS``, if not given.
        limits: How large an input may be; the gateway's defaults, if not given.

    Raises:
        NotRunning: no set runs in the folder.
        BadContext: the URL, context or credentials cannot be used.
        Unavailable: no broker answers.
        Misconfigured: the broker holds no log, or is not what this release needs.
    """
    folder = DataFolder(Path(data))
    choice = effective_choice(
        BrokerChoice(url=nats, context=context, creds=creds, tls_ca=tls_ca), BrokerSettings(), os.environ
    )
    access = access_of(choice, folder, name="neuraxis client")
    named = stream or (STREAM if choice.named else folder.read().stream)
    async with await JetStreamLog.connect(access, stream=named, create=False) as log, client_on(log, limits) as client:
        yield client


@asynccontextmanager
async def client_on(log: JetStreamLog, limits: InputLimits | None = None) -> AsyncIterator[Client]:
    """Open a client on a broker's log. It streams models' answers, and knows which stages are served."""
    async with (
        watching_stages(log.connection, log.partitions) as stages,
        Client.open(
            log,
            why_no_end=stages.why_no_end,
            open_inbox=partial(listening_inbox, log.connection),
            limits=limits or InputLimits(),
        ) as client,
    ):
        yield client
