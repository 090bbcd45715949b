"""The log on NATS JetStream: connection, stream, appends, readings, snapshots and membership."""

from events.jetstream.connection import Access, Connection
from events.jetstream.key_value import KeyValueMembership
from events.jetstream.log import JetStreamLog
from events.jetstream.stored_snapshots import KeyValueSnapshots

__all__ = ["Access", "Connection", "JetStreamLog", "KeyValueMembership", "KeyValueSnapshots"]
