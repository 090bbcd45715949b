"""The contract of an effector's package: what it exports, and what the process that runs it provides."""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any

import msgspec

from actors.runtime.clock import Clock
from events.jetstream import Connection
from schemas.effectors.contract import Effector
from schemas.vocabulary.reflex import AnswerFault


@dataclass(frozen=True, slots=True)
class EffectorContext:
    """What the process provides to an effector.

    Attributes:
        connection: The connection to the broker.
        publish: Sends a body, best effort, to an inbox that a request named; it refuses any other subject.
        environment: The process's environment, for secrets.
        clock: The clocks.
        withheld_for: The faults for which reflex withholds answers: pieces of an answer are sent on only as far as they
            were searched for these. None: the faults of reflex's default settings.
    """

    connection: Connection
    publish: Callable[[str, bytes], Awaitable[None]]
    environment: Mapping[str, str]
    clock: Clock
    withheld_for: tuple[AnswerFault, ...] | None = None


@dataclass(frozen=True, slots=True)
class EffectorSpec:
    """What an effector's package exports as ``EFFECTOR``.

    Attributes:
        name: The effector's name, the package's own.
        settings_type: A frozen msgspec struct whose defaults are the default settings.
        open: (settings, context) -> a context manager of the effector. Raises a ``ValueError`` with a message for the
            operator if the settings cannot be used.
    """

    name: str
    settings_type: type[msgspec.Struct]
    open: Callable[[Any, EffectorContext], AbstractAsyncContextManager[Effector]]
