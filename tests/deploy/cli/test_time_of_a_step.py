"""The time of a command counts on while its loop is busy, with a step that takes long or with what comes at the end."""

import asyncio
from threading import Event

import pytest

from deploy.cli.connect import run_until
from deploy.operating.deadline import Deadline
from events.errors import Misconfigured, Unavailable


@pytest.mark.parametrize("when", ["in a step", "at its end"])
def test_a_command_keeps_its_time_whatever_its_loop_is_doing(when: str) -> None:
    on = Event()

    async def work(deadline: Deadline) -> None:
        deadline.note_servers("nats://127.0.0.1:1")
        try:
            if when == "in a step":
                on.wait(60)  # as modules are loaded, or a batch folded: nothing of the loop runs meanwhile
            await asyncio.sleep(60)
        finally:
            on.wait(60)

    try:
        with pytest.raises(Unavailable, match="nothing was sent"):
            run_until(Deadline(0.2), work)
        assert not on.is_set()
    finally:
        on.set()


def test_what_work_raises_or_returns_in_its_time_is_the_command_s() -> None:
    async def fails(deadline: Deadline) -> None:
        raise Misconfigured("no such log")

    async def ends(deadline: Deadline) -> float:
        return deadline.left

    with pytest.raises(Misconfigured, match="no such log"):
        run_until(Deadline(60), fails)
    assert run_until(Deadline(60), ends) > 0
