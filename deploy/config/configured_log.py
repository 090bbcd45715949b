"""Opening the log that a configuration names."""

from deploy.config.settings import LogSettings
from events.jetstream import Connection, JetStreamLog
from schemas.subjects import Partitions


async def configured_log(connection: Connection, settings: LogSettings, *, create: bool = True) -> JetStreamLog:
    """Make or check the stream over an open connection; raises as ``JetStreamLog.over`` does."""
    return await JetStreamLog.over(
        connection,
        stream=settings.stream,
        partitions=Partitions(settings.agents, settings.sessions),
        replicas=settings.replicas,
        create=create,
        sealed=settings.sealed,
    )
