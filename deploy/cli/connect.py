"""Reaching the log from a command."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

from deploy.access import access_of, stated
from deploy.broker import OPERATOR
from deploy.cli.options import Target
from deploy.running_set import NotRunning
from events.jetstream import Access, JetStreamLog

if TYPE_CHECKING:
    from actors.gateway.agents import AgentPer


def access_to(target: Target, user: str = OPERATOR) -> Access:
    """Return how a command reaches the broker it was pointed at; ``user`` applies to an embedded one.

    Raises:
        BadConfiguration, BadContext, NotRunning: see ``deploy.access`` and ``deploy.config``.
    """
    reach = stated(target.flags, target.config().broker, os.environ)
    return access_of(reach, target.data, user=user, name="neuraxis cli")


def stream_of(target: Target) -> str:
    """Return the name of the stream: what the running set says, unless a broker was named; else what is configured."""
    config = target.config()
    if stated(target.flags, config.broker, os.environ).named:
        return config.log.stream
    try:
        return target.data.read().stream
    except NotRunning:
        return config.log.stream


def agent_per(target: Target) -> "AgentPer":
    """Return what an agent is one of: as the running set was started with, unless a flag or a broker was named."""
    config = target.config()
    named = stated(target.flags, config.broker, os.environ).named
    if not (named or target.config_file is not None or target.sets):
        with suppress(NotRunning):
            in_force = target.data.read().in_force
            if in_force is not None:
                return in_force.agent_per
    return config.gateway.agent_per


@asynccontextmanager
async def connected(target: Target, user: str = OPERATOR) -> AsyncIterator[JetStreamLog]:
    """Open the log for a command, and close it after.

    Raises:
        Unavailable: no broker answers.
        Misconfigured: the broker holds no log, or is not what this release needs.
        BadConfiguration, BadContext, NotRunning: see :func:`access_to`.
    """
    log = await JetStreamLog.connect(access_to(target, user), stream=stream_of(target), create=False)
    try:
        yield log
    finally:
        await log.close()
