"""The loop that worker and gateway run on."""

import asyncio
import sys

import pytest

from deploy.processes import event_loop


async def _name() -> str:
    return type(asyncio.get_running_loop()).__module__.split(".")[0]


def test_a_process_runs_on_uvloop_where_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("uvloop")
    assert event_loop.run(_name()) == "uvloop"
    monkeypatch.setitem(sys.modules, "uvloop", None)
    assert event_loop.run(_name()) == "asyncio"
