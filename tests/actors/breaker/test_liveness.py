"""Circuit-breaker.md, "Liveness Properties", in the whole reachable graph, under the fairness that inputs keep coming.

Fairness makes each a matter of the graph: no cycle where something must end, and a bound on how long it takes.
"""

from collections import deque

import pytest

from tests.actors.breaker.model import (
    CALM,
    NO_WINDOW,
    PLANES,
    RESET,
    TIMER,
    VIOLATION_COUNT,
    Action,
    Rules,
    Search,
    Session,
    reached,
    step,
)
from tests.actors.breaker.test_model import endless_attempts

every_plane = pytest.mark.parametrize("rules", PLANES.values(), ids=list(PLANES))


def longest_run_in_trouble(search: Search) -> int:
    """Return the most actions that a session can spend outside of NORMAL and TERMINATED; raises on an endless run.

    A timer that changes nothing is no action. The operator's reset, which ends trouble, is left out.
    """
    depth: dict[Session, int] = {}
    in_progress: set[Session] = set()

    def successors(session: Session) -> list[Session]:
        found = {edge.after for edge in search.edges[session] if edge.action != RESET}
        found.discard(session)
        assert not any(edge.after == session for edge in search.edges[session] if edge.action.kind == "input")
        return [each for each in found if each.state in ("VIOLATED", "RECOVERY")]

    for start in search.edges:
        stack = [(start, iter(successors(start)))] if start.state in ("VIOLATED", "RECOVERY") else []
        while stack:
            session, rest = stack[-1]
            in_progress.add(session)
            following = next(rest, None)
            if following is None:
                depth[session] = 1 + max((depth[each] for each in successors(session)), default=0)
                in_progress.discard(session)
                stack.pop()
            elif following in in_progress:
                raise AssertionError(f"an endless run through {following}")
            elif following not in depth:
                stack.append((following, iter(successors(following))))
    return max(depth.values())


@every_plane
def test_eventual_recovery_trouble_ends_within_three_attempts_of_ten_turns(rules: Rules):
    """EventualRecovery: VIOLATED leads to NORMAL or TERMINATED. The bound: each attempt's begin and its ten turns."""
    assert 0 < longest_run_in_trouble(reached(rules)) <= 3 * (1 + 10)


@every_plane
def test_eventual_progress_no_run_stays_without_processing_for_ever(rules: Rules):
    """EventualProgress: always again processing or TERMINATED; in NORMAL the next input is processed or violates."""
    for edge in reached(rules).transitions():
        if edge.before.state == "NORMAL" and edge.action.kind == "input" and not edge.action.violates:
            assert edge.verdict == "cleared" or edge.after.state == "TERMINATED"


@every_plane
@pytest.mark.parametrize("falsehood", [0, 10, 25])
def test_recovery_is_possible_wherever_violations_stop(falsehood: int, rules: Rules):
    """RecoveryPossible: from RECOVERY with five turns left, and from any VIOLATED, five good turns lead to NORMAL."""
    good = Action("input", falsehood)
    for start in reached(rules).edges:
        begins = start.state == "VIOLATED" or (start.state == "RECOVERY" and start.turns <= 5)
        if not begins:
            continue
        session, turns = start, 0
        while session.state != "NORMAL":
            session, _ = step(session, good, rules)
            turns += 1
            assert turns <= 5, start
            assert session.state != "TERMINATED", start


@every_plane
def test_time_alone_ends_trouble_from_everywhere(rules: Rules):
    """EventualRecovery without any input: the timer begins an attempt, and calm ends it."""
    for start in reached(rules).edges:
        begun, _ = step(start, TIMER, rules)
        after, _ = step(begun, CALM, rules)
        assert after.state == ("TERMINATED" if start.state == "TERMINATED" else "NORMAL"), start


@every_plane
def test_persistent_violations_terminate_from_everywhere(rules: Rules):
    """PersistentViolationsTerminate: nobody lives with more than six violations, nor outlasts seven in a row."""
    for start in reached(rules).edges:
        assert start.state == "TERMINATED" or start.violations <= 6
        session, inputs = start, 0
        while session.state != "TERMINATED":
            session, _ = step(session, Action("input", 100), rules)
            inputs += 1
        assert inputs <= 7 - start.violations


def test_the_violation_count_s_own_rule_is_reached_where_nothing_ends_a_session_before():
    ends = (
        edge
        for edge in reached(VIOLATION_COUNT).transitions()
        if edge.before.state == "NORMAL" and edge.after.state == "TERMINATED" and edge.action.violates
    )
    assert {edge.after.violations for edge in ends} == {7}


def test_a_planted_stall_is_found_by_the_liveness_check():
    search = Search(NO_WINDOW, endless_attempts)
    deque(search.run(), maxlen=0)
    with pytest.raises(AssertionError):
        longest_run_in_trouble(search)
