"""Exhaustive search of the integer model: circuit-breaker.md, "Safety Invariants" and its theorems.

Each plane of rules is searched once, from a new session, over every falsehood of the design in a short and in a long
layer, the timer, the rules over balances and refusals (which may end a session at any time) and the operator.
"""

from collections.abc import Callable, Iterable, Iterator

import pytest

from tests.actors.breaker.model import (
    ACTIONS,
    EVERYTHING,
    FALSEHOODS,
    INPUTS,
    NO_WINDOW,
    PATTERN,
    PLANES,
    RESET,
    TIMER,
    VIOLATION_COUNT,
    Action,
    Rules,
    Search,
    Session,
    Transition,
    Verdict,
    breaks_a_rule,
    kept,
    reached,
    step,
)
from tests.each import each

every_plane = pytest.mark.parametrize("rules", PLANES.values(), ids=list(PLANES))

Holds = Callable[[Transition, Rules], bool]


def safety(edge: Transition, rules: Rules) -> bool:
    """Nothing is processed but what leaves the session in NORMAL."""
    return (edge.verdict == "cleared") is (edge.action.kind == "input" and edge.after.state == "NORMAL")


def non_compensable(edge: Transition, rules: Rules) -> bool:
    """A violation switches processing off whatever the trust."""
    return not edge.action.violates or edge.after.state in ("VIOLATED", "TERMINATED")


def no_false_positives(edge: Transition, rules: Rules) -> bool:
    """Without a violation none is counted, and NORMAL is not left for VIOLATED."""
    if edge.action.violates or edge.action == RESET:
        return True
    left = edge.before.state == "NORMAL" and edge.after.state in ("VIOLATED", "RECOVERY")
    return edge.after.violations == edge.before.violations and not left


def recovery_attempts_bounded(edge: Transition, rules: Rules) -> bool:
    """At most three attempts of at most ten turns, and none outside of trouble."""
    _, _, attempts, turns, _, _ = edge.after
    idle = edge.after.state != "RECOVERY"
    return attempts <= 3 and turns < 10 and (not idle or turns == 0) and (edge.after.state != "NORMAL" or attempts == 0)


def terminal_state_stable(edge: Transition, rules: Rules) -> bool:
    """Nothing but an operator changes a terminated session, in any respect."""
    return edge.before.state != "TERMINATED" or edge.action == RESET or edge.after == edge.before


def trust_degradation_on_violation(edge: Transition, rules: Rules) -> bool:
    """Every violation costs most of the trust, and is counted, until the session is terminated."""
    if not edge.action.violates or edge.before.state == "TERMINATED":
        return True
    factor = 30 if edge.before.state == "NORMAL" else 50
    return edge.after.trust == edge.before.trust * factor // 100 and edge.after.violations == edge.before.violations + 1


def termination_correct(edge: Transition, rules: Rules) -> bool:
    """A session is terminated when, and only when, a rule says so."""
    if edge.before.state == "TERMINATED" or edge.action == RESET:
        return True
    return (edge.after.state == "TERMINATED") is (edge.action == PATTERN or must_end(edge, rules))


def must_end(edge: Transition, rules: Rules) -> bool:
    """Whether an input ends a session by the letter of the rules."""
    if edge.action.kind != "input":
        return False
    before = edge.before
    attempts = before.attempts + (before.state == "VIOLATED")
    turns = 0 if before.state == "VIOLATED" else before.turns
    violations = before.violations + edge.action.violates
    seen = () if before.state == "VIOLATED" else before.high
    high = (*seen, edge.action.falsehood > 60)[-5:]
    by_life = (
        (rules.breakers and violations >= rules.breakers)
        or violations > rules.violations_above
        or (rules.recent and len(high) == 5 and high[-1] and sum(high) >= rules.recent)
    )
    if by_life or before.state == "NORMAL":
        return bool(by_life)
    used_up = turns == 9 and (30 * (100 - edge.action.falsehood) + 70 * before.trust) // 100 < 60
    return attempts >= 3 and (edge.action.violates or used_up)


def no_state_is_skipped(edge: Transition, rules: Rules) -> bool:
    """Only the arrows of the state diagram, and the ends by a rule over the session's life."""
    if edge.action == RESET or edge.after.state == "TERMINATED":
        return True
    return (edge.before.state, edge.after.state) in {
        ("NORMAL", "NORMAL"),
        ("NORMAL", "VIOLATED"),
        ("VIOLATED", "VIOLATED"),
        ("VIOLATED", "RECOVERY"),
        ("VIOLATED", "NORMAL"),  # one input both begins and completes an attempt
        ("RECOVERY", "RECOVERY"),
        ("RECOVERY", "VIOLATED"),
        ("RECOVERY", "NORMAL"),
    }


def calm_inputs_end_nothing(edge: Transition, rules: Rules) -> bool:
    """No input that is neither a violation nor of high falsehood ends a session, but the last turn of an attempt."""
    if edge.action.kind != "input" or edge.action.falsehood > 60 or edge.action.violates:
        return True
    ended = edge.before.state != "TERMINATED" and edge.after.state == "TERMINATED"
    return not ended or (edge.before.state == "RECOVERY" and edge.before.turns == 9 and edge.before.attempts == 3)


def calm_time_ends_recovery(edge: Transition, rules: Rules) -> bool:
    """A day of calm ends a running attempt well, buys no trust, and changes nothing elsewhere."""
    if edge.action.kind != "calm":
        return True
    recovering = edge.before.state == "RECOVERY"
    return edge.after == (edge.before._replace(state="NORMAL", attempts=0, turns=0) if recovering else edge.before)


def recovery_begins_with_a_clean_window(edge: Transition, rules: Rules) -> bool:
    """What led to a violation is not held against the attempt that follows it."""
    if edge.before.state != "VIOLATED" or edge.after.state == "TERMINATED":
        return True
    return edge.after.state == "VIOLATED" or len(edge.after.high) <= (edge.action.kind == "input")


INVARIANTS: dict[str, Holds] = {
    "SafetyInvariant": safety,
    "NonCompensableViolations": non_compensable,
    "NoFalsePositives": no_false_positives,
    "RecoveryAttemptsBounded": recovery_attempts_bounded,
    "TerminalStateStable": terminal_state_stable,
    "TrustDegradationOnViolation": trust_degradation_on_violation,
    "TerminationCorrect": termination_correct,
    "NoStateIsSkipped": no_state_is_skipped,
    "CalmInputsEndNothing": calm_inputs_end_nothing,
    "CalmTimeEndsRecovery": calm_time_ends_recovery,
    "RecoveryBeginsWithACleanWindow": recovery_begins_with_a_clean_window,
}


def broken(search: Search, holds: Holds, edges: Iterable[Transition]) -> Iterator[str]:
    """Yield the stories of the transitions that break an invariant."""
    for edge in edges:
        if not holds(edge, search.rules):
            story = " ".join(shown(action) for action in [*search.path_to(edge.before), edge.action])
            yield f"after {story}: {edge.before} -> {edge.after} {edge.verdict}"


def shown(action: Action) -> str:
    return f"{action.falsehood}{'L' if action.long else ''}" if action.kind == "input" else action.kind


@every_plane
def test_every_invariant_holds_in_every_reachable_state(rules: Rules):
    # All at once: the search takes longer than any look at what it found.
    search = reached(rules)
    holding = tuple(INVARIANTS.values())
    wrong = (edge for edge in search.transitions() if not all(holds(edge, rules) for holds in holding))
    for edge in wrong:
        stories = {name: next(broken(search, holds, [edge]), None) for name, holds in INVARIANTS.items()}
        pytest.fail(str({name: story for name, story in stories.items() if story}))


@every_plane
def test_the_search_reached_every_state_by_every_action(rules: Rules):
    edges = reached(rules).edges
    assert {session.state for session in edges} == {"NORMAL", "VIOLATED", "RECOVERY", "TERMINATED"}
    assert all(len(found) == len(ACTIONS) == 2 * len(FALSEHOODS) + 4 for found in edges.values())
    assert max(session.attempts for session in edges) == 3
    assert max(session.turns for session in edges) == 9
    assert max(session.trust for session in edges) >= 96


def test_the_search_is_not_small():
    assert len(reached(EVERYTHING).edges) > 10_000


@every_plane
def test_no_living_session_breaks_a_rule(rules: Rules):
    alive = (session for session in reached(rules).edges if session.state != "TERMINATED")
    assert not any(breaks_a_rule(session, rules) for session in alive)


# Planted mistakes, to show that the search would see them


def compensable(session: Session, action: Action, rules: Rules) -> tuple[Session, Verdict | None]:
    """High trust buys off a violation."""
    if action.violates and session.state == "NORMAL" and session.trust >= 90:
        return kept(session._replace(high=(*session.high, True)[-5:]), action.falsehood, rules)
    return step(session, action, rules)


def deaf_to_long_layers(session: Session, action: Action, rules: Rules) -> tuple[Session, Verdict | None]:
    """Saturation is not looked for."""
    return step(session, action._replace(long=False), rules)


def answering_in_recovery(session: Session, action: Action, rules: Rules) -> tuple[Session, Verdict | None]:
    """What would be withheld is processed."""
    after, verdict = step(session, action, rules)
    return after, "cleared" if verdict == "withheld" and after.state == "RECOVERY" else verdict


def endless_attempts(session: Session, action: Action, rules: Rules) -> tuple[Session, Verdict | None]:
    """An attempt has no budget of turns."""
    if session.state == "RECOVERY" and action.kind == "input" and session.turns == 9 and not action.violates:
        session = session._replace(turns=8)
    return step(session, action, rules)


def forgiving_at_the_end(session: Session, action: Action, rules: Rules) -> tuple[Session, Verdict | None]:
    """Good words reopen a terminated session."""
    if session.state == "TERMINATED" and action == Action("input", 0):
        return session._replace(state="RECOVERY"), "withheld"
    return step(session, action, rules)


def judging_calm_inputs_by_the_window(session: Session, action: Action, rules: Rules) -> tuple[Session, Verdict | None]:
    """The window is judged again with every input."""
    after, verdict = step(session, action, rules)
    if after.state != "TERMINATED" and len(after.high) == 5 and sum(after.high) >= 3:
        return Session("TERMINATED", after.trust, after.attempts, 0, after.violations), "terminated"
    return after, verdict


def recovering_with_the_old_window(session: Session, action: Action, rules: Rules) -> tuple[Session, Verdict | None]:
    """An attempt goes on with the window that led to it."""
    after, verdict = step(session, action, rules)
    return (
        (after._replace(high=session.high), verdict)
        if session.state == "VIOLATED" and action == TIMER
        else (after, verdict)
    )


def uncounted_in_violated(session: Session, action: Action, rules: Rules) -> tuple[Session, Verdict | None]:
    """The input that begins an attempt is not judged."""
    if session.state == "VIOLATED" and action.kind == "input":
        return step(session, TIMER, rules)[0], "withheld"
    return step(session, action, rules)


@each(
    ("mistaken", "name"),
    [
        (compensable, "NonCompensableViolations"),
        (deaf_to_long_layers, "NonCompensableViolations"),
        (deaf_to_long_layers, "TrustDegradationOnViolation"),
        (answering_in_recovery, "SafetyInvariant"),
        (endless_attempts, "TerminationCorrect"),
        (forgiving_at_the_end, "TerminalStateStable"),
        (uncounted_in_violated, "TrustDegradationOnViolation"),
    ],
)
def test_a_planted_mistake_is_found_with_its_story(
    mistaken: Callable[[Session, Action, Rules], tuple[Session, Verdict | None]], name: str
):
    search = Search(VIOLATION_COUNT, mistaken)
    story = next(broken(search, INVARIANTS[name], search.run()), None)
    assert story is not None
    assert story.startswith("after ")


@each(
    ("mistaken", "name"),
    [
        (judging_calm_inputs_by_the_window, "CalmInputsEndNothing"),
        (recovering_with_the_old_window, "RecoveryBeginsWithACleanWindow"),
    ],
)
def test_a_planted_mistake_with_the_window_is_found_with_its_story(
    mistaken: Callable[[Session, Action, Rules], tuple[Session, Verdict | None]], name: str
):
    search = Search(EVERYTHING, mistaken)
    story = next(broken(search, INVARIANTS[name], search.run()), None)
    assert story is not None
    assert story.startswith("after ")


# The design's numbers


def test_a_violation_at_50_leaves_15():
    assert step(Session(), Action("input", 75), EVERYTHING)[0].trust == 15


@each(
    ("falsehood", "turns"),
    [(0, 3), (10, 3), (20, 4), (25, 4), (30, 5), (35, 7), (37, 9), (40, None), (50, None), (65, None)],
)
def test_good_turns_from_15_to_recovery(falsehood: int, turns: int | None):
    session = Session("RECOVERY", trust=15, attempts=1)
    for turn in range(1, 11):
        session, _ = step(session, Action("input", falsehood), NO_WINDOW)
        if session.state == "NORMAL":
            assert turn == turns
            return
    assert turns is None
    assert session.state == "VIOLATED"


@each(("falsehood", "trusts"), [(100, [35, 24, 16, 11, 7, 4, 2, 1]), (0, [65, 75, 82, 87, 90, 93, 95, 96])])
def test_moving_average_from_50(falsehood: int, trusts: list[int]):
    session = Session(trust=50)
    heard = []
    for _ in trusts:
        session, _ = kept(session, falsehood, NO_WINDOW)
        heard.append(session.trust)
    assert heard == trusts


def test_inputs_are_every_falsehood_in_short_and_long_layers():
    assert {(each.falsehood, each.long) for each in INPUTS} == {(f, long) for f in FALSEHOODS for long in (False, True)}
