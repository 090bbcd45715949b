"""Events that nobody reads are found by their subjects, and told with what was probably meant."""

from dataclasses import dataclass
from pathlib import Path

import msgspec

from events.ledger import verify
from events.unroutable import MOST_LISTED, UnroutableEvents, why_unroutable
from schemas.catalogue import CATALOGUE
from schemas.subjects import NO_PARTITION, FormerCounts, Partitions, stored_subject
from tests.each import each
from tests.events.ledger.messages import exchanges, write

HERE = Partitions(4, 16)
REPARTITIONED = Partitions(8, 32, (FormerCounts(100, 4, 16),))


def test_every_event_of_the_catalogue_is_read_in_every_partition() -> None:
    for topic in CATALOGUE:
        for agent in (*HERE.tokens(False), NO_PARTITION):
            assert why_unroutable(stored_subject(topic, agent, "15"), HERE) == ""


@dataclass(frozen=True)
class Case:
    """A subject, the partition counts, and what is said of it."""

    subject: str
    partitions: Partitions
    said: str


@each(
    "case",
    [
        Case(
            "log.02.00.input.recieved",
            HERE,
            "no event 'forged_id.input.recieved': did you mean forged_id.input.re",
        ),
        Case("log.02.00.input.received.extra", HERE, "did you mean forged_id.input.received?"),
        Case("log.02.00.oracle.foretold", HERE, "this release has no event 'forged_id.oracle.foretold'"),
        Case("log.04.00.input.received", HERE, "no partition '04' of agents: there are 4"),
        Case("log.00.16.input.received", HERE, "no partition '16' of sessions: there are 16"),
        Case("log.xx.00.input.received", HERE, "no partition 'xx' of agents"),
        Case("log.1-00.00.input.received", HERE, "no partition '1-00' of agents"),
        Case("log.04.00.input.received", REPARTITIONED, "no partition '04' of agents: there are 8"),
        Case("log.00.00.input.\x1b[2J", HERE, r"no event 'forged_id.input.\x1b[2J'"),
        Case("input.received", HERE, "no subject of stored events"),
    ],
    named=lambda case: case.subject,
)
def test_what_nobody_reads_is_told_with_what_is_wrong_about_it(case: Case) -> None:
    assert case.said in why_unroutable(case.subject, case.partitions)


@each("subject", ["log.03.15.input.received", "log.1-07.1-31.input.received", "log._._.alert.configured"])
def test_former_and_present_partitions_are_read_after_a_repartitioning(subject: str) -> None:
    assert why_unroutable(subject, REPARTITIONED) == ""


def test_any_number_of_such_subjects_is_counted_and_the_first_are_listed() -> None:
    found = UnroutableEvents(HERE)
    for number in range(MOST_LISTED + 5):
        for seq in (2 * number + 1, 2 * number + 2):
            found.take(f"log.00.00.input.no_{number}", seq=seq)
    assert found.count == 2 * (MOST_LISTED + 5)
    assert len(found.listed) == MOST_LISTED
    assert [(each.events, each.first_seq) for each in found.listed[:2]] == [(2, 1), (2, 3)]


def test_a_ledger_s_verification_lists_them_and_is_sound(tmp_path: Path) -> None:
    messages = exchanges(2)
    stray = messages[1].subject.rsplit(".", 1)[0] + ".pased"
    messages[1] = msgspec.structs.replace(messages[1], subject=stray)
    write(tmp_path / "ledger.db", messages)
    found = verify(tmp_path / "ledger.db")
    assert (found.ok, found.unroutable_count) == (True, 1)
    assert [(each.subject, each.first_seq) for each in found.unroutable] == [(stray, messages[1].seq)]
