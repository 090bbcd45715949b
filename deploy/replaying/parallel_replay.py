"""Replaying a ledger file in several processes: each replays shares of the partitions, and their reports are merged.

A partition's fold needs nothing of another partition. So each share reads the file by itself, and decodes only what its
partitions consume or publish. The merged report equals that of a single process, to the byte.

How long a partition takes cannot be seen from the number of its messages: verifying one decision of the actor memory
takes as long as a hundred of the actor clock. So there are several shares for each process, and a process that is done
takes the next.
"""

import asyncio
import multiprocessing
import os
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from concurrent.futures import FIRST_EXCEPTION, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractAsyncContextManager
from functools import partial
from multiprocessing.sharedctypes import SynchronizedArray
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

import msgspec

from actors.contract.text.judge.weights import add_weights
from actors.registry import ACTORS
from deploy.processes.event_loop import run_command
from events.ledger import Extent
from events.replay.replay import ActorPartition, Replay, Report
from events.replay.run_replay import Point, last_seq_of_complete_log, run_replay
from events.replay.sources import LedgerSource, Source
from events.replay.states.from_snapshots import snapshot_keeper
from events.replay.verifying.report import merged_reports
from events.routes import lineage, partition_filters, routes, without_overlap
from schemas.actor import Actor, Scope
from schemas.subjects import Partitions

MOST_JOBS = 4
"""The most processes that are used unless more are asked for."""

_SHARES_PER_PROCESS = 4
"""Enough that the processes end at about the same time; each share costs another reading of the file."""

_MOST_DIFFERENCES = 20
"""How many differences a report keeps, to be shown."""

_EVENTS_PER_PROCESS = {False: 100_000, True: 10_000}
"""Whether decisions are made again -> how many events justify the two seconds in which another process starts."""

_POLL_INTERVAL_S = 0.1

SourceOpener = Callable[[], AbstractAsyncContextManager[Source]]
"""Opens the source; it must be picklable, since each process calls it."""


class JobEnded(Exception):
    """A process ended before its share was replayed; the message says what to do."""

    code = "job_ended"


class ReplayWork(msgspec.Struct, frozen=True):
    """What is replayed: these ``actors`` up to a point.

    ``only``: actor -> the one partition of it that is replayed; of the other actors all are. ``verify``: decisions are
    made again, and compared with the recorded ones. ``models`` is a folder of older weights
    (``actors.contract.text.judge.weights.add_weights``), or empty.
    """

    actors: tuple[str, ...]
    only: dict[str, str] | None
    verify: bool
    upto: Point
    models: str = ""


class _Share(msgspec.Struct, frozen=True):
    """A share of the work, for one process: its number, its partitions, and the extent of the log that is read.

    ``is_sound``: no damage was found in that extent.
    """

    work: ReplayWork
    partitions: tuple[ActorPartition, ...]
    number: int
    extent: Extent
    is_sound: bool


def jobs_for(events: int, verify: bool) -> int:
    """Return how many processes a replay of ``events`` events should use on this machine."""
    return max(1, min(_cores(), MOST_JOBS, events // _EVENTS_PER_PROCESS[verify]))


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


async def replay_in_jobs(
    source: LedgerSource, opener: SourceOpener, work: ReplayWork, jobs: int, progress: Callable[[int], None]
) -> Report:
    """Replay a ledger in up to ``jobs`` processes.

    Args:
        source: The ledger, from which the shares are made.
        opener: Opens it again, in each process.
        work: What is replayed.
        jobs: The most processes; there are never more than partitions.
        progress: Called now and then with the sequence that the shares have reached on average.

    Raises:
        Misconfigured, LogError: as ``events.replay.run_replay.run_replay`` does.
        JobEnded: the operating system ended a process.
    """
    actors = [ACTORS[name] for name in work.actors]
    upto = min(work.upto.seq, await last_seq_of_complete_log(source))
    extent = source.extent(Replay(actors, source.partitions).filters, upto, work.upto.time_ns)
    costs = costs_of(actors, extent.subjects, source.partitions, work.only)
    shares = shares_of(costs, jobs * _SHARES_PER_PROCESS, source.partitions)
    is_sound = not source.damage.is_found
    parts = [_Share(work, partitions, number, extent, is_sound) for number, partitions in enumerate(shares)]
    # Each process is a new interpreter: a fork of this one would inherit its event loop, and locks of its threads.
    context = multiprocessing.get_context("spawn")
    reached, stop = context.Array("q", len(parts)), context.Event()
    with ProcessPoolExecutor(min(jobs, len(parts)), context, _start_process, (reached, stop)) as pool:
        try:
            futures = [pool.submit(_replay_share, opener, part) for part in parts]
            running: AbstractSet[Future[Report]] = set(futures)
            while running:
                done, running = await asyncio.to_thread(wait, running, _POLL_INTERVAL_S, FIRST_EXCEPTION)
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
        return merged_reports([future.result() for future in futures], _MOST_DIFFERENCES)


def costs_of(
    actors: Sequence[Actor[Any]], subjects: Mapping[str, int], partitions: Partitions, only: Mapping[str, str] | None
) -> dict[ActorPartition, int]:
    """Return how many messages each partition has to fold, given the number of each stored subject."""
    costs: dict[ActorPartition, int] = {}
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
    costs: Mapping[ActorPartition, int], most: int, partitions: Partitions | None = None
) -> tuple[tuple[ActorPartition, ...], ...]:
    """Divide partitions into up to ``most`` shares of about the same load, none of them empty unless there is but one.

    The largest share comes first. Partitions of one name, of actors with the same scope, stay together: they read the
    same messages, which are then decoded once. So do partitions that were divided from the same one: what that one
    decided is then decided again once for all of them. But a group with more than an equal part of the load is divided
    by actor. The largest groups are placed first, each into the share that has the least so far.
    """
    counts = partitions or Partitions()
    groups: dict[tuple[str, str], list[ActorPartition]] = {}
    for name, partition in sorted(costs):
        # The origin is the partition that this one was divided from first of all, or itself.
        scope, origin = ACTORS[name].scope, lineage(ACTORS[name], partition, counts)[0]
        groups.setdefault((name if scope is Scope.GLOBAL else scope.value, origin), []).append((name, partition))
    equal_part = sum(costs.values()) / max(most, 1)
    pieces = [
        piece
        for group in groups.values()
        for piece in ([group] if _cost(group, costs) <= equal_part else _by_actor(group))
    ]
    shares: list[list[ActorPartition]] = [[] for _ in range(most)]
    for piece in sorted(pieces, key=lambda piece: -_cost(piece, costs)):
        min(shares, key=lambda share: _cost(share, costs)).extend(piece)
    shares.sort(key=lambda share: -_cost(share, costs))
    return tuple(tuple(sorted(share)) for share in shares if share) or ((),)


def _by_actor(partitions: Sequence[ActorPartition]) -> list[list[ActorPartition]]:
    found: dict[str, list[ActorPartition]] = {}
    for actor, partition in partitions:
        found.setdefault(actor, []).append((actor, partition))
    return list(found.values())


def _cost(partitions: Sequence[ActorPartition], costs: Mapping[ActorPartition, int]) -> int:
    return sum(costs[each] for each in partitions)


# --- the rest runs in the processes that replay

_shared_with_parent: "tuple[SynchronizedArray[int], Event] | None" = None
"""The sequence that each share has reached, and whether to stop."""


def _start_process(reached: "SynchronizedArray[int]", stop: Event) -> None:
    """Keep what this process shares with its parent; called once in each process."""
    global _shared_with_parent
    _shared_with_parent = reached, stop


def _replay_share(opener: SourceOpener, share: _Share) -> Report:
    return run_command(_replay(opener, share))


async def _replay(opener: SourceOpener, share: _Share) -> Report:
    actors = [ACTORS[name] for name in share.work.actors]
    if share.work.models:
        add_weights(Path(share.work.models))
    async with opener() as source:
        if isinstance(source, LedgerSource):
            source.skip_checks()  # the parent has read and checked every row
        replay = Replay(
            actors,
            source.partitions,
            verify=share.work.verify,
            keep=_MOST_DIFFERENCES,
            only=share.work.only,
            share=frozenset(share.partitions),
        )
        skipped = sum(count for subject, count in share.extent.subjects.items() if not replay.takes(subject))
        replay.skip(skipped, share.extent.first_seq, share.extent.last_seq)
        filters = without_overlap(
            each
            for name, partition in share.partitions
            for each in partition_filters(ACTORS[name], partition, source.partitions)
        )
        upto = Point(seq=share.extent.last_seq)
        progress: Callable[[int], None] = partial(_report_progress, share.number)
        if share.is_sound:
            progress = await snapshot_keeper(source, replay, progress)
        report = await run_replay(source, replay, upto, filters=filters, progress=progress)
        _report_progress(share.number, share.extent.last_seq)
        return report


def _report_progress(number: int, seq: int) -> None:
    """Report how far this process has come; end it if its parent does not wait for it any more."""
    parent = multiprocessing.parent_process()
    if _shared_with_parent is None:
        return
    reached, stop = _shared_with_parent
    if stop.is_set() or (parent is not None and not parent.is_alive()):
        raise SystemExit("nobody waits for this replay")
    reached[number] = seq
