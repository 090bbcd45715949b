"""Three hundred short worlds, and many more by ``make test-sim``: the real runtime and deciders, and all that can fail.

``NEURAXIS_WORLDS`` sets how many; ``NEURAXIS_SEED`` the first seed. A failure prints its seed;
``python -m tests.simulation.run SEED`` lives through that world again.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator

import msgspec
import pytest
import structlog

from actors.runtime.partition.shard import Shard
from events.errors import UnknownOutcome
from events.log import Append
from events.partition_fold import Checkpoint, Delivery, View
from tests.simulated import SimulatedLog
from tests.simulation.world import Outcome, run_world

WORLDS = int(os.environ.get("NEURAXIS_WORLDS", "300"))
FIRST = int(os.environ.get("NEURAXIS_SEED", "0"))
CHUNKS = 3

RARE = ("killed", "outage", "stored_in_doubt", "stored_after_death", "duplicate", "member_expired", "conflict")
"""Incidents of the simulated broker that must be met now and then, or the worlds prove nothing."""


@pytest.fixture(autouse=True)
def _quiet_logs() -> Iterator[None]:
    """A stormy world warns thousands of times."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    yield
    structlog.reset_defaults()


def _live(seeds: Iterable[int]) -> Iterator[Outcome]:
    for seed in seeds:
        yield run_world(seed)


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_no_world_breaks_a_promise(chunk: int) -> None:
    """One end for each accepted input, no decision twice, states equal to a clean fold, replay clean, nothing leaks."""
    met: Counter[str] = Counter()
    done: Counter[str] = Counter()
    for outcome in _live(range(FIRST + chunk, FIRST + WORLDS, CHUNKS)):
        assert not outcome.broken, f"seed {outcome.seed}: {outcome.broken}"
        met += outcome.incidents
        done += outcome.counters
    if WORLDS // CHUNKS >= 100:
        assert all(met[incident] for incident in RARE), f"the storms are too mild: {met}"
        assert done["takeovers"], f"nobody ever took over: {done}"
        assert done["snapshots_used"], f"no snapshot was ever used: {done}"


def test_the_same_seed_gives_the_same_world() -> None:
    first, second = run_world(11), run_world(11)
    assert first == second
    assert first.events > 0


def _skip_the_fence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Shard, "fence", lambda self: None)


def _lose_the_state_of_snapshots(monkeypatch: pytest.MonkeyPatch) -> None:
    def without_state(actor: object, partition: str, data: bytes) -> Checkpoint | None:
        found = real(actor, partition, data)  # type: ignore[arg-type]
        if found is None:
            return None
        return msgspec.structs.replace(found, state=actor.initial())  # type: ignore[attr-defined]

    import actors.runtime.partition.recovery as module

    real = module.unpack
    monkeypatch.setattr(module, "unpack", without_state)


def _decide_again_what_is_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    def forgetful(self: View, own: Delivery) -> None:
        self.own_last = max(self.own_last, own.stored.seq)

    monkeypatch.setattr(View, "apply_own", forgetful)


def _take_a_doubtful_append_for_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    def hopeful(log: SimulatedLog, append: Append, on_done: Callable[[int | BaseException], None]) -> bool:
        def tell(outcome: int | BaseException) -> None:
            on_done((append.fence.last + 1 if append.fence else 1) if isinstance(outcome, UnknownOutcome) else outcome)

        return real(log, append, tell)

    real = SimulatedLog.append_now
    monkeypatch.setattr(SimulatedLog, "append_now", hopeful)


@pytest.mark.parametrize(
    ("plant", "found_by"),
    [
        (_skip_the_fence, 8),
        (_lose_the_state_of_snapshots, 5),
        (_decide_again_what_is_recorded, 0),
        (_take_a_doubtful_append_for_stored, 58),
    ],
    ids=lambda given: getattr(given, "__name__", f"seed_{given}"),
)
def test_a_planted_bug_in_the_runtime_is_found(
    plant: Callable[[pytest.MonkeyPatch], None], found_by: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worlds are only worth something if they find what they are for.

    The seed that found it last is tried first; as the runtime changes, it may be another of two hundred.
    """
    plant(monkeypatch)
    found = next((outcome for outcome in _live((found_by, *range(200))) if outcome.broken), None)
    assert found is not None
    print(f"{plant.__name__}: found by seed {found.seed}: {found.broken[0]}")
