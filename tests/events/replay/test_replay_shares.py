"""Replays of shares of the partitions: put together, they report what one replay reports."""

from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from events.log import Stored
from events.replay.replay import ActorPartition, Replay, Report
from events.replay.verifying.report import Difference, Differences, merged_reports
from events.routes import partition_names
from schemas.actor import Actor
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.reflex import ReflexPassed
from tests.actors.scenario import Address
from tests.events.plans import conversations, few
from tests.events.recording import PARTITIONS, Recording
from tests.events.replaying import asked, changed, verified
from tests.events.small_actors import DIARIST, deciding

KEEP = 3


def units_of(actors: Sequence[Actor[Any]]) -> list[ActorPartition]:
    return [(actor.name, name) for actor in actors for name in partition_names(actor, PARTITIONS)]


def share_of(actors: Sequence[Actor[Any]], log: Sequence[Stored], units: frozenset[ActorPartition]) -> Report:
    """Replay a share of the partitions, fed with what it takes alone."""
    replay = Replay(actors, PARTITIONS, verify=True, keep=KEEP, share=units)
    skipped = [stored for stored in log if not replay.takes(stored.subject)]
    if log:
        replay.skip(len(skipped), log[0].seq, log[-1].seq)
    for stored in log:
        if replay.takes(stored.subject):
            replay.feed(stored)
    return replay.finish()


def shared(actors: Sequence[Actor[Any]], log: Sequence[Stored], jobs: dict[ActorPartition, int]) -> Report:
    shares = {number: frozenset(unit for unit in jobs if jobs[unit] == number) for number in set(jobs.values())}
    return merged_reports([share_of(actors, log, units) for units in shares.values()], KEEP)


@given(recording=conversations(), data=st.data())
@few
def test_shares_add_up_to_the_whole_however_a_log_is_shared_out(recording: Recording, data: st.DataObject) -> None:
    units = units_of(recording.actors)
    numbers = data.draw(st.lists(st.integers(0, 2), min_size=len(units), max_size=len(units)))
    length = data.draw(st.integers(1, len(recording.log)))
    whole = verified(recording.actors, recording.log[:length], keep=KEEP)
    assert shared(recording.actors, recording.log[:length], dict(zip(units, numbers, strict=True))) == whole


@given(data=st.data())
@few
def test_differences_and_damage_are_counted_once_and_in_one_order(data: st.DataObject) -> None:
    recording = Recording([DIARIST])
    for number in range(8):
        recording.send(InputReceived(text="1"), Address("ann", f"session-{number}", f"exchange-{number}"))
        recording.settle()
    damaged = changed(recording.log, data.draw(st.sampled_from(range(1, 17))), data=b"{")
    units = units_of([DIARIST])
    numbers = data.draw(st.lists(st.integers(0, 2), min_size=len(units), max_size=len(units)))
    actors = [deciding(lambda diary, message: (ReflexPassed(),))]
    whole = verified(actors, damaged, keep=KEEP)
    assert sum(whole.unreadable.values()) == 1
    assert len(whole.differences) == KEEP
    assert shared(actors, damaged, dict(zip(units, numbers, strict=True))) == whole


def test_the_first_differences_are_kept_in_whatever_order_they_are_added() -> None:
    found = [difference(shown_at) for shown_at in (5, 1, 4, 2, 3)]
    kept = Differences(3)
    for each in found:
        kept.add(each)
    assert [each.shown_at for each in kept.first] == [1, 2, 3]


def difference(shown_at: int) -> Difference:
    return Difference("reflex", "00", 1, "forged_id.input.received", "", "count", "", "", shown_at)


def test_an_event_that_never_came_is_noticed_though_its_share_saw_nothing_later() -> None:
    """A decision's second event is lost; what follows it in the log belongs to another share."""
    recording = asked("2")
    lost = recording.log[:2]
    elsewhere = asked("0", "0").log[1]
    log = [*lost, Stored(3, elsewhere.time_ns, "log.00.00.unknown", elsewhere.headers, elsewhere.data)]
    here = frozenset(units_of([DIARIST]))
    assert share_of([DIARIST], log, here) == verified([DIARIST], log, keep=KEEP)
    assert not share_of([DIARIST], log, here).clean
