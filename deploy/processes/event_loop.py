"""The event loop of a worker and of the gateway: uvloop, where it is installed and the settings allow it.

uvloop does the same work with less processor time (``docs/performance.md``). Nothing depends on which loop runs: the
supervisor (``neuraxis up``), commands and simulations use asyncio's own. Whatever may connect to a server runs by
:func:`run`: on the loops made here, a name server that does not answer keeps no process from ending (``name_lookup``).
"""

import asyncio
import socket
from collections.abc import Callable, Coroutine
from importlib.util import find_spec
from ipaddress import ip_address
from typing import Any, Literal, TypeVar

from deploy.processes.name_lookup import Found, NameLookups

T = TypeVar("T")

Choice = Literal["auto", "asyncio"]


def run(main: Coroutine[Any, Any, T], choice: Choice = "auto") -> T:
    """Run a coroutine to its end on a new event loop, as ``asyncio.run`` does."""
    with asyncio.Runner(loop_factory=_factory(choice)) as runner:
        return runner.run(main)


def run_command(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on Python's own event loop, as commands and the supervisor do."""
    return run(main, "asyncio")


class _OwnLoop(asyncio.SelectorEventLoop):
    """Python's own loop, with look-ups of names that nothing waits for."""

    def __init__(self) -> None:
        super().__init__()
        self._lookups = NameLookups(self)

    async def getaddrinfo(
        self, host: Any, port: Any, *, family: int = 0, type: int = 0, proto: int = 0, flags: int = 0
    ) -> Found:
        return await self._lookups.find(host, port, family, type, proto, flags)


def _factory(choice: Choice) -> Callable[[], asyncio.AbstractEventLoop]:
    """Return what makes an event loop."""
    if choice == "asyncio" or find_spec("uvloop") is None:
        return _OwnLoop
    import uvloop

    class OpenLoop(uvloop.Loop):
        """A loop that stays open when its work is done, with look-ups of names that nothing waits for.

        uvloop's ``close`` waits without a deadline until the last handle is closed. About once in a hundred times, the
        handle of a connection to a broker that does not answer never was. So the loop is left open: the process ends
        next, and its end frees what is left.
        """

        def __init__(self) -> None:
            super().__init__()
            self._lookups = NameLookups(self)

        def close(self) -> None:
            _left_open.append(self)

        async def getaddrinfo(
            self, host: Any, port: Any, *, family: int = 0, type: int = 0, proto: int = 0, flags: int = 0
        ) -> Found:
            return await self._lookups.find(host, port, family, type, proto, flags)

        async def create_connection(
            self, protocol_factory: Any, host: Any = None, port: Any = None, **options: Any
        ) -> Any:
            """Connect as uvloop does, after a look-up of our own: uvloop's is done in a thread of its library."""
            if not isinstance(host, str) or _is_address(host):
                return await super().create_connection(protocol_factory, host, port, **options)
            found = await self.getaddrinfo(host, port, family=options.pop("family", 0), type=socket.SOCK_STREAM)
            if options.get("ssl") and options.get("server_hostname") is None:
                options["server_hostname"] = host
            return await _first_connection(
                lambda at: super(OpenLoop, self).create_connection(protocol_factory, at, port, **options), found
            )

    return OpenLoop


async def _first_connection(connect: Callable[[str], Coroutine[Any, Any, T]], found: Found) -> T:
    """Connect to the first address that takes it, in their order; raises OSError of the last."""
    for *_, address in found[:-1]:
        try:
            return await connect(_written(address))
        except OSError:
            continue
    return await connect(_written(found[-1][-1]))


def _written(address: tuple[Any, ...]) -> str:
    """Return a socket's address without its port; a local one of IPv6 is only valid with its interface."""
    scope = address[3] if len(address) == 4 else 0
    return f"{address[0]}%{scope}" if scope else str(address[0])


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


_left_open: list[asyncio.AbstractEventLoop] = []
"""Loops whose work is done; uvloop reports an error when an open one is freed."""
