"""Making a deployment's streams and buckets, with the configured number of copies."""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from deploy.config.loading import Config
from deploy.processes.up import prepare
from events.jetstream import Access, Connection
from events.jetstream.stream import find_stream
from schemas.permissions import MEMBERS_BUCKET, SNAPSHOTS_BUCKET, keys_bucket


def streams_of(stream: str) -> tuple[str, ...]:
    """Return the streams of a deployment whose log is in ``stream``: the log's, and those of its buckets."""
    return (stream, *(f"KV_{bucket}" for bucket in (MEMBERS_BUCKET, SNAPSHOTS_BUCKET, keys_bucket(stream))))


async def stream_infos(connection: Connection, stream: str) -> AsyncIterator[tuple[str, Mapping[str, Any]]]:
    """Yield the deployment's streams that exist, each with the server's information; raises LogError."""
    for name in streams_of(stream):
        if (info := await find_stream(connection, name)) is not None:  # only a sealed log has a bucket of keys
            yield name, info


async def prepare_with_copies(access: Access, config: Config) -> Sequence[str]:
    """Make what is missing, give all streams the configured number of copies, and return a line for each.

    No copy is given up because of a default: a command that was not given the deployment's settings does not know them.

    Raises:
        LogError: the broker cannot be reached, is not what this release needs, or has too few servers.
    """
    wanted = config.log.replicas
    lines = []
    async with await Connection.open(access) as connection:
        await _drop_members_in_memory(connection)
        await prepare(access, config, lasting=True)
        async for name, info in stream_infos(connection, config.log.stream):
            found = info["config"]
            before = int(found["num_replicas"])
            if before > wanted and "log.replicas" not in config.origins:
                lines.append(f"{name}: {before} copies, which it keeps: nothing sets log.replicas")
                continue
            if before != wanted:
                await connection.api(f"STREAM.UPDATE.{name}", {**found, "num_replicas": wanted})
            copies = "1 copy" if wanted == 1 else f"{wanted} copies"
            lines.append(f"{name}: {copies}" + (f", before {before}" if before != wanted else ""))
    return lines


async def _drop_members_in_memory(connection: Connection) -> None:
    """Delete the bucket of members if it is kept in memory; a stream's kind of storage cannot be changed.

    Nothing is lost: its entries are heartbeats, which expire after three seconds.
    """
    name = f"KV_{MEMBERS_BUCKET}"
    found = await find_stream(connection, name)
    if found is not None and found["config"]["storage"] != "file":
        await connection.api(f"STREAM.DELETE.{name}")
