"""Which stretch of the log a partition has to see proved before it appends what may repeat a lost message."""

import asyncio
from collections.abc import Awaitable, Callable

from actors.registry import ACTORS
from actors.runtime.partition.completeness_proof import CompletenessProof
from actors.runtime.partition.gap_check import GapCheck
from events.partition_fold import View
from schemas.subjects import Partitions

AFTER, UPTO = 10, 90


class Asked(GapCheck):
    """Notes which stretches are asked for, and finds each whole."""

    def __init__(self) -> None:
        self.stretches: list[tuple[int, int]] = []

    def note_read_back(self, after: int) -> None:
        """Nothing is ever missing here."""

    async def ensure_gaps_recorded(self, after: int, upto: int, read_at: float) -> None:
        """Note a stretch."""
        self.stretches.append((after, upto))


def proved(body: Callable[[CompletenessProof], Awaitable[None]]) -> list[tuple[int, int]]:
    asked = Asked()

    async def run() -> None:
        proof = CompletenessProof(asked)
        proof.read_back(AFTER, UPTO)
        proof.begin(View(ACTORS["clock"], "all", Partitions(agents=1, sessions=1)), UPTO)
        await body(proof)

    asyncio.run(run())
    return asked.stretches


def test_a_timer_is_proved_from_the_beginning_also_after_a_decision_was_proved_from_its_cause_on() -> None:
    """The event that a timer fired before may be lost, and stand before all that is decided now."""

    async def body(proof: CompletenessProof) -> None:
        assert proof.is_needed(40)
        await proof.ensure_gaps_recorded(40)
        proof.note_proved(40)
        assert not proof.is_needed(40)
        assert not proof.is_needed(41)
        assert proof.is_needed()
        await proof.ensure_gaps_recorded(None)
        proof.note_proved()
        assert not proof.is_needed()

    assert proved(body) == [(40, UPTO), (AFTER, 40)]


def test_a_decision_about_what_came_later_owes_nothing_and_settles_nothing() -> None:
    async def body(proof: CompletenessProof) -> None:
        assert not proof.is_needed(UPTO)
        assert proof.is_needed()
        assert proof.is_needed(UPTO - 1)

    assert proved(body) == []


def test_nothing_is_owed_once_all_is_proved() -> None:
    async def body(proof: CompletenessProof) -> None:
        await proof.ensure_gaps_recorded(AFTER)
        proof.note_proved(AFTER)
        assert not proof.is_needed()

    assert proved(body) == [(AFTER, UPTO)]
