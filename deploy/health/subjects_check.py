"""Checks that whatever is stored has a reader: a misspelt subject is stored like any other, and no actor reads it."""

import math
from datetime import datetime

import msgspec

from deploy.cli.rendering.layout.counted_nouns import counted
from deploy.health.findings import Finding, Verdict, not_made
from events.errors import LogError
from events.jetstream import Connection
from events.jetstream.stream import subject_counts
from events.unroutable import Unroutable, UnroutableEvents
from schemas.subjects import Partitions

RECENT_S = 24 * 3600.0
"""Seconds for which an event that no actor reads is warned of: it stays in the log, and the warning need not."""

MOST_EXAMINED = 1_000
"""Subjects whose latest event is looked at: a request to the broker for each. Further ones count as written lately."""

_REMEDY = (
    "have its publisher write it again, on the subject and in the partitions that docs/inputs.md describes; `neuraxis "
    "log verify` lists all, and an event of another release is read by that release"
)


class UnroutableSubjects(msgspec.Struct, frozen=True):
    """What no actor of this release reads: the subject written last, the count of events, and the latest one's time."""

    latest: Unroutable | None
    count: int
    latest_s: float


async def examine_subjects(connection: Connection, stream: str, partitions: Partitions, now_s: float) -> Finding:
    """Check the subjects of all stored events; ``now_s`` is the time (Unix seconds)."""
    try:
        return judge_subjects(await _unroutable(connection, stream, partitions), now_s)
    except LogError as wrong:
        return not_made("subjects", "look at the stored subjects", wrong)


async def _unroutable(connection: Connection, stream: str, partitions: Partitions) -> UnroutableSubjects:
    found, latest, latest_s = UnroutableEvents(partitions, MOST_EXAMINED), None, 0.0
    for subject, count in sorted((await subject_counts(connection, stream)).items()):
        found.take(subject, count)
    for each in found.listed:
        answer = await connection.api(f"STREAM.MSG.GET.{stream}", {"last_by_subj": each.subject})
        if (written_s := datetime.fromisoformat(answer["message"]["time"]).timestamp()) >= latest_s:
            latest, latest_s = each, written_s
    if sum(each.events for each in found.listed) < found.count:
        latest_s = math.inf
    return UnroutableSubjects(latest, found.count, latest_s)


def judge_subjects(found: UnroutableSubjects, now_s: float) -> Finding:
    """Judge whether events came lately that no actor of this release reads."""
    if found.latest is None:
        return Finding("subjects", Verdict.OK, "every stored event is one that some actor may read")
    latest = found.latest
    events = f"{counted(found.count, 'event')} that no actor of this release reads"
    seen = f"{events}, such as {ascii(latest.subject)[1:-1]}: {latest.why}"
    if now_s - found.latest_s > RECENT_S:
        return Finding("subjects", Verdict.OK, f"{seen}; none came in the last 24 hours")
    return Finding("subjects", Verdict.WARN, seen, _REMEDY)
