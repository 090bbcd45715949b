"""A set hurt at random under load: nothing that was accepted is lost or done twice, and all of it verifies.

The short form runs by default, ``make test-faults`` runs two of two minutes, ``make test-campaign SECONDS=1800 SEED=7``
two of any length. The seed and its schedule are printed; the same seed gives the same schedule.
"""

import asyncio
import os
from pathlib import Path

import pytest

from tests.faults.campaign.campaign import Report, campaign
from tests.faults.campaign.cluster import cluster_set
from tests.faults.campaign.embedded import embedded_set
from tests.faults.campaign.schedule import Kind, schedule
from tests.faults.campaign.takeovers import Takeovers
from tests.faults.machines import refusal

SEED = int(os.environ.get("NEURAXIS_SEED", "20"))
SECONDS = float(os.environ.get("NEURAXIS_CAMPAIGN_S", "120"))
SHORT_S, BRISK, RATE = 17.0, (1.0, 5.0), 8.0

MB_PER_S = 3
"""Megabytes of the disk for each second of a long campaign.

At 41 inputs a second, as on two quiet cores, stream, ledger and snapshots grow by two megabytes. A disk that is too
small stays full, and the campaign cannot end.
"""


EVERYTHING = {
    Kind.KILL: ("broker", "deciders-1", "deciders-2", "gateway"),
    Kind.PAUSE: ("broker", "deciders-1"),
    Kind.CUT: ("network",),
    Kind.FILL: (),
}


def test_the_same_seed_gives_the_same_schedule_and_a_longer_one_begins_alike() -> None:
    long, short = schedule(7, 1800, EVERYTHING), schedule(7, 60, EVERYTHING)
    assert long[: len(short)] == short == schedule(7, 60, EVERYTHING)
    assert schedule(8, 60, EVERYTHING) != short
    assert 0 < short[0].at_s <= short[-1].at_s < 60


def test_every_kind_and_every_target_that_there_is_has_its_turn() -> None:
    found = {(fault.kind, fault.target) for fault in schedule(7, 120, EVERYTHING)}
    assert found == {(kind, target) for kind, targets in EVERYTHING.items() for target in targets}
    with pytest.raises(ValueError, match="something to hurt"):
        schedule(7, 60, {Kind.FILL: ()})


def test_a_takeover_lasts_from_the_fault_to_the_first_who_leads_after_it_was_lost() -> None:
    takeovers = Takeovers()
    takeovers.look({"vm-all-17-a": frozenset({"reflex/00", "reflex/01"}), "vm-all-18-b": frozenset({"reflex/02"})}, 0.0)
    takeovers.began([17], 10.0)
    takeovers.look({"vm-all-17-a": frozenset({"reflex/00", "reflex/01"}), "vm-all-18-b": frozenset()}, 11.0)
    assert takeovers.times == [], "what a dead worker said last is no takeover"
    takeovers.look({"vm-all-18-b": frozenset({"reflex/00"})}, 13.5)
    assert takeovers.leaderless == ("reflex/01",)
    takeovers.look({"vm-all-18-b": frozenset({"reflex/00", "reflex/01", "reflex/02"})}, 14.0)
    assert takeovers.times == [3.5, 4.0]
    assert takeovers.leaderless == ()


def kept(report: Report) -> None:
    assert report.verdict.broken == []
    assert report.verdict.accepted > 0
    assert report.verdict.ends == report.verdict.inputs >= report.verdict.accepted
    assert not report.leaderless


def test_nothing_is_lost_or_done_twice_while_all_parts_of_a_set_are_hurt_at_random(tmp_path: Path) -> None:
    with embedded_set(tmp_path / "set", disk_megabytes=192) as place:
        kept(asyncio.run(campaign(place, seed=SEED, seconds=SHORT_S, rate=RATE, gap_s=BRISK)))


@pytest.mark.faults
def test_nothing_is_lost_or_done_twice_in_a_long_campaign(tmp_path: Path) -> None:
    with embedded_set(tmp_path / "set", disk_megabytes=int(256 + MB_PER_S * SECONDS)) as place:
        kept(asyncio.run(campaign(place, seed=SEED, seconds=SECONDS, measured_s=20)))


@pytest.mark.faults
@pytest.mark.skipif(bool(why := refusal()), reason=why)
def test_nothing_is_lost_or_done_twice_in_a_long_campaign_against_a_cluster(tmp_path: Path) -> None:
    with cluster_set(tmp_path) as place:
        kept(asyncio.run(campaign(place, seed=SEED, seconds=SECONDS, measured_s=20)))
