"""The breaker as an integer model: trust from 0 to 100, rounded down, so that every reachable state can be looked at.

Written from the design's rules, not from the actor: where both agree, two readings of the rules agree. It holds the
last inputs only as "falsehood was high" bits; what the windows of balances and refusals may do is one action,
``pattern``, possible at any time. So it can do more than the machine, and what holds here of every state holds there.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Literal, NamedTuple

State = Literal["NORMAL", "VIOLATED", "RECOVERY", "TERMINATED"]
Verdict = Literal["cleared", "withheld", "tripped", "terminated"]

FALSEHOODS = (0, 10, 25, 50, 65, 75, 90, 100)


class Session(NamedTuple):
    """A state of the model.

    ``high`` tells of the last five inputs since an attempt began, oldest first, whether falsehood was above 60.
    """

    state: State = "NORMAL"
    trust: int = 50
    attempts: int = 0
    turns: int = 0
    violations: int = 0
    high: tuple[bool, ...] = ()


class Rules(NamedTuple):
    """The rules over a session's life that apply; 0 switches one off."""

    breakers: int = 3
    recent: int = 3
    violations_above: int = 6


class Action(NamedTuple):
    """What can happen to a session; the numbers are an input's."""

    kind: Literal["input", "timer", "calm", "pattern", "reset"]
    falsehood: int = 0
    long: bool = False

    @property
    def violates(self) -> bool:
        """Whether it is a violating input."""
        return self.kind == "input" and (self.falsehood > 65 or (self.long and self.falsehood > 50))


INPUTS = tuple(Action("input", falsehood, long) for falsehood in FALSEHOODS for long in (False, True))
TIMER, CALM, PATTERN, RESET = Action("timer"), Action("calm"), Action("pattern"), Action("reset")
ACTIONS = (*INPUTS, TIMER, CALM, PATTERN, RESET)

Step = Callable[[Session, Action, Rules], tuple[Session, Verdict | None]]


def step(session: Session, action: Action, rules: Rules) -> tuple[Session, Verdict | None]:
    """Return the session after an action, and what became of the input if it was one."""
    if action.kind == "reset":
        return Session(), None
    if session.state == "TERMINATED":
        return session, "withheld" if action.kind == "input" else None
    if action.kind == "pattern":
        return terminated(session), None
    if action.kind == "timer":
        return (begun(session) if session.state == "VIOLATED" else session), None
    if action.kind == "calm":
        return (recovered(session) if session.state == "RECOVERY" else session), None
    at = begun(session) if session.state == "VIOLATED" else session
    high = (*at.high, action.falsehood > 60)[-5:] if rules.recent else ()
    heard = Session(at.state, at.trust, at.attempts, at.turns, at.violations, high)
    return violated(heard, rules) if action.violates else kept(heard, action.falsehood, rules)


def begun(session: Session) -> Session:
    """Begin an attempt, and the window with it."""
    return Session("RECOVERY", session.trust, session.attempts + 1, 0, session.violations)


def recovered(session: Session) -> Session:
    """End an attempt well, whatever the trust."""
    return Session("NORMAL", session.trust, 0, 0, session.violations, session.high)


def violated(session: Session, rules: Rules) -> tuple[Session, Verdict]:
    """Take a violation in NORMAL or RECOVERY."""
    _, trust, attempts, _, violations, high = session
    recovering = session.state == "RECOVERY"
    trust = trust * (50 if recovering else 30) // 100
    after = Session("VIOLATED", trust, attempts, 0, violations + 1, high)
    if (recovering and attempts >= 3) or breaks_a_rule(after, rules):
        return terminated(after), "terminated"
    return after, "tripped"


def kept(session: Session, falsehood: int, rules: Rules) -> tuple[Session, Verdict]:
    """Take an input without a violation in NORMAL or RECOVERY."""
    state, trust, attempts, turns, violations, high = session
    trust = (30 * (100 - falsehood) + 70 * trust) // 100
    after = Session(state, trust, attempts, turns, violations, high)
    if breaks_a_rule(after, rules):
        return terminated(after), "terminated"
    if state == "NORMAL":
        return after, "cleared"
    if trust >= 60:
        return recovered(after), "cleared"
    if turns + 1 < 10:
        return Session("RECOVERY", trust, attempts, turns + 1, violations, high), "withheld"
    if attempts >= 3:
        return terminated(after), "terminated"
    return Session("VIOLATED", trust, attempts, 0, violations, high), "withheld"


def breaks_a_rule(session: Session, rules: Rules) -> bool:
    """Whether a session has come to what ends it for good, whatever its state."""
    if rules.breakers and session.violations >= rules.breakers:
        return True
    if session.violations > rules.violations_above:
        return True
    # A calm input brings nothing against the session, so it is no occasion to judge what came before.
    return bool(rules.recent and len(session.high) == 5 and session.high[-1] and sum(session.high) >= rules.recent)


def terminated(session: Session) -> Session:
    """End a session for good; its last inputs matter no more."""
    return Session("TERMINATED", session.trust, session.attempts, 0, session.violations)


class Transition(NamedTuple):
    """One edge of the reachable graph."""

    before: Session
    action: Action
    after: Session
    verdict: Verdict | None


class Search:
    """A breadth-first search from a new session.

    Attributes:
        edges: The transitions of each state that was looked at.
        first: How each state that was seen was first reached.
    """

    def __init__(self, rules: Rules, step: Step = step, actions: Iterable[Action] = ACTIONS) -> None:
        self.rules = rules
        self.edges: dict[Session, tuple[Transition, ...]] = {}
        self.first: dict[Session, Transition | None] = {Session(): None}
        self._step = step
        self._actions = tuple(actions)

    def run(self) -> Iterator[Transition]:
        """Yield every transition as it is found, until nothing new is reached."""
        waiting = deque(self.first)
        while waiting:
            session = waiting.popleft()
            found = []
            for action in self._actions:
                after, verdict = self._step(session, action, self.rules)
                transition = Transition(session, action, after, verdict)
                found.append(transition)
                if after not in self.first:
                    self.first[after] = transition
                    waiting.append(after)
                yield transition
            self.edges[session] = tuple(found)

    def transitions(self) -> Iterator[Transition]:
        """Yield every transition that was found."""
        for edges in self.edges.values():
            yield from edges

    def path_to(self, session: Session) -> list[Action]:
        """Return the shortest actions that lead to a session: the story of a counterexample."""
        actions: list[Action] = []
        while (transition := self.first[session]) is not None:
            actions.append(transition.action)
            session = transition.before
        return actions[::-1]


def explored(rules: Rules, actions: Iterable[Action] = ACTIONS) -> Search:
    """Return the search of the rules, run to its end."""
    search = Search(rules, actions=actions)
    deque(search.run(), maxlen=0)
    return search


EVERYTHING = Rules()
NO_WINDOW = Rules(recent=0)
VIOLATION_COUNT = Rules(breakers=0, recent=0)
"""Here nothing ends a session before its seventh violation, so that the violation count's own rule is reached."""

PLANES = {"everything": EVERYTHING, "no_window": NO_WINDOW, "violation_count": VIOLATION_COUNT}
"""The rules that are searched, each once in a process."""


@cache
def reached(rules: Rules) -> Search:
    """Return the finished search of a plane."""
    return explored(rules)
