"""The embedded broker: a nats-server with its store, its users and its configuration in the data folder."""

from deploy.processes.broker.binary import BinaryMissing, find_nats_server
from deploy.processes.broker.embedded import EmbeddedBroker
from deploy.processes.broker.users import (
    ADMIN,
    DECIDERS,
    EFFECTORS,
    GATEWAY,
    LEDGER,
    OBSERVER,
    OPERATOR,
    READER,
    SPECIALIST,
    SYSTEM,
    Login,
    Logins,
    load_logins,
)

__all__ = [
    "ADMIN",
    "DECIDERS",
    "EFFECTORS",
    "GATEWAY",
    "LEDGER",
    "OBSERVER",
    "OPERATOR",
    "READER",
    "SPECIALIST",
    "SYSTEM",
    "BinaryMissing",
    "EmbeddedBroker",
    "Login",
    "Logins",
    "find_nats_server",
    "load_logins",
]
