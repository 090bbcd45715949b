"""Replaying a ledger file in several processes: each folds shares of the partitions, and their reports are merged.

A partition's fold needs nothing of another's. So each share reads the file by itself, and decodes only what its
partitions consume or publish. The merged report equals that of a single process, to the byte.

The number of a partition's messages does not tell how long it takes: verifying one decision of memory costs as much as
a hundred of the clock. So there are several shares for each process, and a process that is done takes the next.
"""

import asyncio
import multiprocessing
import os
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from concurrent.futures import FIRST_EXCEPTION, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractAsyncContextManager
from multiprocessing.sharedctypes import SynchronizedArray
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

import msgspec

from actors.contract.text.judge.weights import add_weights
from actors.registry import ACTORS
from events.ledger import Extent
from events.replay.replay import Replay, Report, Unit
from events.replay.run_replay import Point, last_of_whole, run_replay
from events.replay.sources import LedgerSource, Source
from events.replay.verifying.report import merged_reports
from events.routes import lineage, partition_filters, routes, without_overlap
from schemas.actor import Actor, Scope
from schemas.subjects import Partitions

MOST_JOBS = 4
"""Processes that are used unless more are asked for."""

_SHARES_A_JOB = 4
"""Enough that the processes end close together; each costs another reading of the file."""

_KEPT = 20
_LEAST_EVENTS = {False: 100_000, True: 10_000}
"""By whether decisions are made again: events that are worth the two seconds in which another process starts."""

_LOOK_S = 0.1

SourceOpener = Callable[[], AbstractAsyncContextManager[Source]]
"""Opens the source; must be picklable."""


class JobEnded(Exception):
    """A process ended before its share was replayed; the message says what to do."""

    code = "job_ended"


class Work(msgspec.Struct, frozen=True):
    """What is replayed: these actors, of them only certain partitions (see ``Replay``), up to a point.

    ``models`` is a folder of older weights (``actors.contract.text.judge.weights.add_weights``), or empty.
    """

    actors: tuple[str, ...]
    only: dict[str, str] | None
    verify: bool
    upto: Point
    models: str = ""


class _Job(msgspec.Struct, frozen=True):
    """One process's share, of a log of which so much is read."""

    work: Work
    units: tuple[Unit, ...]
    number: int
    extent: Extent


def jobs_for(events: int, verify: bool) -> int:
    """Return how many processes a replay of ``events`` events should use on this machine."""
    return max(1, min(_cores(), MOST_JOBS, events // _LEAST_EVENTS[verify]))


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


async def replay_in_jobs(
    source: LedgerSource, opener: SourceOpener, work: Work, jobs: int, progress: Callable[[int], None]
) -> Report:
    """Replay a ledger in up to ``jobs`` processes.

    Args:
        source: The ledger, to see what there is to do.
        opener: Opens it again, in each process.
        work: What is replayed.
        jobs: Processes; there are no more than there are partitions to share out.
        progress: Called now and then with how far the shares are on average, as a sequence.

    Raises:
        Misconfigured, LogError: as ``events.replay.run_replay.run_replay`` does.
        JobEnded: the operating system ended a process.
    """
    actors = [ACTORS[name] for name in work.actors]
    upto = min(work.upto.seq, await last_of_whole(source))
    extent = source.extent(Replay(actors, source.partitions).filters, upto, work.upto.time_ns)
    costs = costs_of(actors, extent.subjects, source.partitions, work.only)
    shares = shares_of(costs, jobs * _SHARES_A_JOB, source.partitions)
    parts = [_Job(work, share, number, extent) for number, share in enumerate(shares)]
    # A fresh interpreter each: this one has a loop and threads, which a forked child would have the ruins of.
    context = multiprocessing.get_context("spawn")
    reached, stop = context.Array("q", len(parts)), context.Event()
    with ProcessPoolExecutor(min(jobs, len(parts)), context, _begin, (reached, stop)) as pool:
        try:
            futures = [pool.submit(_replay_share, opener, part) for part in parts]
            running: AbstractSet[Future[Report]] = set(futures)
            while running:
                done, running = await asyncio.to_thread(wait, running, _LOOK_S, FIRST_EXCEPTION)
                for future in done:
                    future.result()
                progress(sum(reached[:]) // len(parts))
        except BrokenProcessPool as ended:
            why = "a process of the replay was ended from outside, for want of memory most likely: try --jobs 1"
            raise JobEnded(why) from ended
        except BaseException:
            stop.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
        return merged_reports([future.result() for future in futures], _KEPT)


def costs_of(
    actors: Sequence[Actor[Any]], subjects: Mapping[str, int], partitions: Partitions, only: Mapping[str, str] | None
) -> dict[Unit, int]:
    """Return how many messages each partition has to fold, given the number of each stored subject."""
    costs: dict[Unit, int] = {}
    for subject, count in subjects.items():
        try:
            found = tuple(routes(actors, subject, partitions))
        except ValueError:
            continue
        for actor, partition, _ in found:
            if (only or {}).get(actor.name, partition) == partition:
                costs[actor.name, partition] = costs.get((actor.name, partition), 0) + count
    return costs


def shares_of(
    costs: Mapping[Unit, int], most: int, partitions: Partitions | None = None
) -> tuple[tuple[Unit, ...], ...]:
    """Divide partitions into up to ``most`` shares of much the same load; at least one, none of them empty.

    The most loaded comes first. Partitions of one key stay together: they read the same messages, which are then
    decoded once. So do partitions that were divided from one: what that one decided is decided again once, for all of
    them. But what would be more than an equal part is divided among its actors. The largest are placed first, each with
    the share that has least.
    """
    counts = partitions or Partitions()
    groups: dict[tuple[str, str], list[Unit]] = {}
    for unit in sorted(costs):
        name, partition = unit
        scope, origin = ACTORS[name].scope, lineage(ACTORS[name], partition, counts)[0]
        groups.setdefault((name if scope is Scope.GLOBAL else scope.value, origin), []).append(unit)
    part = sum(costs.values()) / max(most, 1)
    pieces = [
        piece for group in groups.values() for piece in ([group] if _cost(group, costs) <= part else _by_actor(group))
    ]
    shares: list[list[Unit]] = [[] for _ in range(most)]
    for piece in sorted(pieces, key=lambda piece: -_cost(piece, costs)):
        min(shares, key=lambda share: _cost(share, costs)).extend(piece)
    shares.sort(key=lambda share: -_cost(share, costs))
    return tuple(tuple(sorted(share)) for share in shares if share) or ((),)


def _by_actor(units: Sequence[Unit]) -> list[list[Unit]]:
    found: dict[str, list[Unit]] = {}
    for unit in units:
        found.setdefault(unit[0], []).append(unit)
    return list(found.values())


def _cost(units: Sequence[Unit], costs: Mapping[Unit, int]) -> int:
    return sum(costs[unit] for unit in units)


# --- in a process of its own

_asker: "tuple[SynchronizedArray[int], Event] | None" = None
"""What whoever asked shares: the sequence that each has reached, and whether to stop."""


def _begin(reached: "SynchronizedArray[int]", stop: Event) -> None:
    global _asker
    _asker = reached, stop


def _replay_share(opener: SourceOpener, job: _Job) -> Report:
    return asyncio.run(_replay(opener, job))


async def _replay(opener: SourceOpener, job: _Job) -> Report:
    actors = [ACTORS[name] for name in job.work.actors]
    if job.work.models:
        add_weights(Path(job.work.models))
    async with opener() as source:
        if isinstance(source, LedgerSource):
            source.skip_checks()  # whoever shares the work out has read every row
        replay = Replay(
            actors,
            source.partitions,
            verify=job.work.verify,
            keep=_KEPT,
            only=job.work.only,
            share=frozenset(job.units),
        )
        skipped = sum(count for subject, count in job.extent.subjects.items() if not replay.takes(subject))
        replay.skip(skipped, job.extent.first_seq, job.extent.last_seq)
        filters = without_overlap(
            each
            for name, partition in job.units
            for each in partition_filters(ACTORS[name], partition, source.partitions)
        )
        upto = Point(seq=job.extent.last_seq)
        report = await run_replay(source, replay, upto, filters=filters, progress=lambda seq: _tell(job.number, seq))
        _tell(job.number, job.extent.last_seq)
        return report


def _tell(number: int, seq: int) -> None:
    """Report how far this process is; end it if its parent no longer waits for it."""
    parent = multiprocessing.parent_process()
    if _asker is None:
        return
    reached, stop = _asker
    if stop.is_set() or (parent is not None and not parent.is_alive()):
        raise SystemExit("nobody waits for this replay")
    reached[number] = seq
