"""How effectors are hosted: what their packages export, and what the host provides."""

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
    """What the host provides to an effector.

    Attributes:
        connection: The connection to the broker.
        publish: Sends a body, best effort, to an inbox that a request named; it refuses any other subject.
        environment: The process's environment, for secrets.
        clock: The clocks.
        withheld_for: What reflex withholds answers for: pieces of one are told no further than that was looked for.
            None: what it withholds them for unless told otherwise.
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
        open: (settings, context) -> the effector, open for the length of a block. Raises a ``ValueError`` with a
            message for the operator where the settings cannot be used.
    """

    name: str
    settings_type: type[msgspec.Struct]
    open: Callable[[Any, EffectorContext], AbstractAsyncContextManager[Effector]]
