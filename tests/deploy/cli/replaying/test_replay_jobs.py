"""A ledger replayed in several processes: real ones, over a file that nothing but this test has written."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from actors.registry import ACTORS
from deploy.cli import main
from deploy.replaying.parallel_replay import MOST_JOBS, costs_of, jobs_for, shares_of
from events.replay.replay import ActorPartition
from events.routes import partition_names
from schemas.subjects import Partitions
from tests.each import each
from tests.events.ledger.messages import exchanges, write


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("jobs") / "ledger.db"
    write(path, exchanges(50))
    return path


def neuraxis(*arguments: Any) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


@each("more", [(), ("--verify",), ("--verify", "--to", "42", "--actor", "reflex", "--actor", "clock")])
def test_two_processes_report_what_one_reports(ledger: Path, more: tuple[str, ...]) -> None:
    one, two = (neuraxis("replay", "--log", ledger, "--json", "--jobs", jobs, *more) for jobs in (1, 2))
    assert two.stdout == one.stdout
    assert two.exit_code == one.exit_code
    assert '"overall"' in two.stdout


def test_what_one_process_refuses_is_refused_by_all(tmp_path: Path) -> None:
    path = tmp_path / "damaged.db"
    log = exchanges(3)
    write(path, [log[0], msgspec.structs.replace(log[1], data=b"{"), *log[2:]])
    result = neuraxis("replay", "--log", path, "--jobs", 2)
    assert result.exit_code == 2
    assert "its own event at sequence 2 cannot be read" in result.stderr


def test_a_short_log_is_not_worth_another_process() -> None:
    assert jobs_for(10, verify=True) == 1
    assert jobs_for(10**9, verify=True) <= MOST_JOBS


units = [(name, part) for name in ACTORS for part in partition_names(ACTORS[name], Partitions())]


@given(costs=st.dictionaries(st.sampled_from(units), st.integers(1, 1000)), most=st.integers(1, 5))
def test_every_partition_is_in_one_share_and_no_share_is_for_nothing(
    costs: dict[ActorPartition, int], most: int
) -> None:
    shares = shares_of(costs, most)
    assert sorted(unit for share in shares for unit in share) == sorted(costs)
    assert len(shares) <= most
    assert all(shares) or shares == ((),)


@given(costs=st.dictionaries(st.sampled_from(units), st.integers(1, 1000)), most=st.integers(1, 5))
def test_the_most_loaded_share_comes_first_for_it_takes_longest(costs: dict[ActorPartition, int], most: int) -> None:
    loads = [sum(costs[unit] for unit in share) for share in shares_of(costs, most)]
    assert loads == sorted(loads, reverse=True)


def test_partitions_of_one_key_stay_together_unless_they_are_more_than_a_part() -> None:
    subjects = {f"log.00.{number:02d}.input.received": 10 for number in range(8)}
    costs = costs_of([ACTORS["reflex"], ACTORS["breaker"], ACTORS["clock"]], subjects, Partitions(), None)
    first, second = shares_of(costs, 2)
    assert ("clock", "all") in (*first, *second)
    for number in range(8):
        assert (("reflex", f"{number:02d}") in first) == (("breaker", f"{number:02d}") in first)
    alone = {("reflex", "00"): 10, ("breaker", "00"): 10}
    assert len(shares_of(alone, 2)) == 2


def test_processes_for_a_live_stream_are_refused_before_it_is_looked_for(tmp_path: Path) -> None:
    result = neuraxis("replay", "--jobs", 2, "--data", tmp_path / "nowhere")
    assert result.exit_code == 2
    assert "a stream is read by one process" in result.stderr
