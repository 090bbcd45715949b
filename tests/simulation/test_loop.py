"""The virtual-time loop: time jumps, order follows the seed, and what can never end is said to."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from tests.simulation.loop import EPOCH_NS, Deadlock, Livelock, Unhandled, VirtualLoop, run_virtual


def _virtual_loop() -> VirtualLoop:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    return loop


def test_a_thousand_years_pass_at_once() -> None:
    async def main() -> float:
        await asyncio.sleep(1000 * 365 * 86400)
        return asyncio.get_running_loop().time()

    assert run_virtual(main()) == 1000 * 365 * 86400


def test_unix_time_starts_at_the_epoch_and_moves_with_the_timers() -> None:
    async def main() -> list[int]:
        loop = _virtual_loop()
        before = loop.time_ns()
        await asyncio.sleep(1.5)
        return [before, loop.time_ns()]

    assert run_virtual(main()) == [EPOCH_NS, EPOCH_NS + 1_500_000_000]


def test_timers_fire_in_the_order_of_their_times() -> None:
    async def main() -> list[float]:
        seen: list[float] = []

        async def sleeper(delay: float) -> None:
            await asyncio.sleep(delay)
            assert asyncio.get_running_loop().time() == delay
            seen.append(delay)

        async with asyncio.TaskGroup() as group:
            for delay in (3.0, 1.0, 2.0, 0.5):
                group.create_task(sleeper(delay))
        return seen

    assert run_virtual(main(), seed=1) == [0.5, 1.0, 2.0, 3.0]


def test_a_timeout_fires_in_virtual_time() -> None:
    async def main() -> float:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(60):
                await asyncio.get_running_loop().create_future()
        return asyncio.get_running_loop().time()

    assert run_virtual(main()) == 60


def _interleaving(seed: int | None) -> list[str]:
    async def main() -> list[str]:
        seen: list[str] = []

        async def walker(name: str) -> None:
            for step in range(5):
                seen.append(f"{name}{step}")
                await asyncio.sleep(0)

        async with asyncio.TaskGroup() as group:
            for name in "abcdef":
                group.create_task(walker(name))
        return seen

    return run_virtual(main(), seed)


def test_one_seed_always_gives_the_same_interleaving() -> None:
    assert _interleaving(7) == _interleaving(7)


def test_seeds_give_different_interleavings() -> None:
    assert len({tuple(_interleaving(seed)) for seed in range(20)}) > 15


def test_without_a_seed_callbacks_run_in_the_order_they_became_ready() -> None:
    assert _interleaving(None) == [f"{name}{step}" for step in range(5) for name in "abcdef"]


def test_a_callback_never_runs_before_what_made_it_ready() -> None:
    for seed in range(50):
        seen = _interleaving(seed)
        assert all(
            seen.index(f"{name}{step}") < seen.index(f"{name}{step + 1}") for name in "abcdef" for step in range(4)
        )


def test_a_failing_group_cancels_its_tasks_in_an_order_that_the_seed_decides() -> None:
    def cancellations(seed: int) -> list[int]:
        async def main() -> list[int]:
            seen: list[int] = []

            async def waiter(number: int) -> None:
                try:
                    await asyncio.sleep(100)
                finally:
                    seen.append(number)

            async def failing() -> None:
                await asyncio.sleep(1)
                raise ValueError

            async def family() -> None:
                async with asyncio.TaskGroup() as group:
                    for number in range(20):
                        group.create_task(waiter(number))
                    group.create_task(failing())

            with pytest.raises(ExceptionGroup):
                await family()
            return seen

        return run_virtual(main(), seed)

    assert cancellations(3) == cancellations(3)
    assert cancellations(3) != cancellations(4)


def test_a_wait_that_nothing_can_end_is_a_deadlock_and_names_who_waits() -> None:
    async def main() -> None:
        await asyncio.create_task(asyncio.Event().wait(), name="the one that waits")

    with pytest.raises(Deadlock, match="the one that waits"):
        run_virtual(main())


def test_spinning_without_the_clock_moving_is_a_livelock() -> None:
    async def main() -> None:
        while True:  # noqa: ASYNC110  # spinning is the point
            await asyncio.sleep(0)

    with pytest.raises(Livelock):
        run_virtual(main(), standstill=1000)


async def _in_a_thread() -> None:
    await asyncio.to_thread(int)


async def _over_a_socket() -> None:
    await asyncio.open_connection("localhost", 1)


@pytest.mark.parametrize("leaving", [_in_a_thread, _over_a_socket])
def test_threads_and_name_resolution_are_refused(leaving: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        with pytest.raises(RuntimeError, match="virtual time"):
            await leaving()

    run_virtual(main())


def test_a_callback_that_raises_fails_the_run() -> None:
    async def main() -> None:
        asyncio.get_running_loop().call_soon(lambda: 1 / 0)
        await asyncio.sleep(1)

    with pytest.raises(Unhandled) as caught:
        run_virtual(main())
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_tasks_left_behind_are_cancelled_in_the_order_they_were_made() -> None:
    ended: list[int] = []

    async def waiter(number: int) -> None:
        try:
            await asyncio.sleep(1000)
        finally:
            ended.append(number)

    async def main() -> list[asyncio.Task[None]]:
        tasks = [asyncio.create_task(waiter(number)) for number in range(5)]
        await asyncio.sleep(1)
        return tasks

    run_virtual(main())
    assert ended == [0, 1, 2, 3, 4]


def test_cancelled_timers_do_not_pile_up() -> None:
    async def main() -> int:
        loop = _virtual_loop()
        for _ in range(10_000):
            loop.call_later(5, int).cancel()
        return len(loop._scheduled)

    assert run_virtual(main()) < 200


def test_the_result_and_the_error_of_the_main_coroutine_come_through() -> None:
    async def fails() -> None:
        raise LookupError("mine")

    async def returns() -> str:
        return "done"

    assert run_virtual(returns()) == "done"
    with pytest.raises(LookupError, match="mine"):
        run_virtual(fails())
