"""Which event loop workers and the gateway run on."""

import asyncio
import importlib.util
import os
import signal
import socket
from importlib.machinery import ModuleSpec

import pytest
import uvloop

from deploy.processes import event_loop
from deploy.processes.supervising.lifeline import Lifeline
from deploy.processes.supervising.stopping import stop_signal


async def running() -> type:
    return type(asyncio.get_running_loop())


def test_uvloop_is_taken_where_it_is_installed() -> None:
    assert issubclass(event_loop.run(running()), uvloop.Loop)


def test_uvloop_is_left_open_since_its_close_may_wait_for_ever() -> None:
    async def own() -> asyncio.AbstractEventLoop:
        return asyncio.get_running_loop()

    assert not event_loop.run(own()).is_closed()
    assert event_loop.run(own(), "asyncio").is_closed()


def test_the_setting_asks_for_pythons_own_loop() -> None:
    assert issubclass(event_loop.run(running(), "asyncio"), asyncio.BaseEventLoop)


def test_pythons_own_loop_is_taken_where_uvloop_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.util.find_spec

    def without_uvloop(name: str, package: str | None = None) -> ModuleSpec | None:
        return None if name == "uvloop" else real(name, package)

    monkeypatch.setattr(event_loop, "find_spec", without_uvloop)
    assert issubclass(event_loop.run(running()), asyncio.BaseEventLoop)


@pytest.mark.parametrize("choice", ["auto", "asyncio"])
def test_a_loop_ends_by_a_signal_with_a_lifeline_a_thread_and_a_timer_still_open(choice: event_loop.Choice) -> None:
    ours, theirs = socket.socketpair()

    async def stopped() -> str:
        lifeline = Lifeline(os.dup(theirs.fileno()))
        async with stop_signal(lifeline) as stop:
            asyncio.get_running_loop().call_later(60, stop.set)
            await asyncio.to_thread(os.kill, os.getpid(), signal.SIGTERM)
            async with asyncio.timeout(30):
                await stop.wait()
        lifeline.close()
        return "stopped"

    with ours, theirs:
        assert event_loop.run(stopped(), choice) == "stopped"
