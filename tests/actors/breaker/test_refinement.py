"""The real machine takes the integer model's steps: in every state the model can reach, for every action it knows.

So every invariant and liveness property that is searched for in the model holds of the machine within its bounds.
"""

from math import floor

from actors.breaker.machine import Machine, Move, ViolationCounts, end_by_calm, judge, reading_of, start_recovery
from actors.breaker.settings import BreakerSettings
from tests.actors.breaker.builders import LONG, SHORT, layer
from tests.actors.breaker.model import CALM, INPUTS, TIMER, Action, Rules, Session, explored
from tests.each import each

READINGS = {
    action: reading_of([layer(action.falsehood / 100, characters=LONG if action.long else SHORT)], BreakerSettings())
    for action in INPUTS
}


def machine_of(session: Session) -> Machine:
    """Return the real machine that stands where the model does; balances are even and nothing was refused."""
    return Machine(
        state=session.state,
        trust=session.trust / 100,
        attempts=session.attempts,
        attempt_turns=session.turns,
        breakers=ViolationCounts(role_confusion=session.violations),
        falsehoods=tuple(0.61 if high else 0.0 for high in session.high),
        balances=(0.0,) * len(session.high),
    )


def session_of(machine: Machine, rules: Rules) -> Session:
    """Return the state of the model that a real machine stands for: its trust rounded down to hundredths."""
    alive = machine.state != "TERMINATED"
    return Session(
        machine.state,
        floor(100 * machine.trust + 1e-6),
        machine.attempts,
        machine.attempt_turns,
        machine.breakers.total,
        tuple(each > 0.6 for each in machine.falsehoods) if alive and rules.recent else (),
    )


def real(machine: Machine, action: Action, settings: BreakerSettings) -> tuple[Move, ...]:
    if action == TIMER:
        return start_recovery(machine, "timer")
    if action == CALM:
        return end_by_calm(machine, 0, settings)
    reading = READINGS[action]
    assert reading is not None
    return judge(machine, reading, settings)


@each(
    ("rules", "settings"),
    [
        (Rules(), BreakerSettings()),
        (Rules(breakers=0, recent=0), BreakerSettings(breakers_in_session=1000, recent_falsehood_count=1000)),
    ],
    named=["everything", "violation_count"],
)
def test_in_every_state_of_the_model_the_real_machine_takes_the_same_step(rules: Rules, settings: BreakerSettings):
    steps = 0
    for session, edges in explored(rules, actions=(*INPUTS, TIMER, CALM)).edges.items():
        machine = machine_of(session)
        for edge in edges:
            moves = real(machine, edge.action, settings)
            after = moves[-1].after if moves else machine
            assert session_of(after, rules) == edge.after, (edge, after)
            assert (moves[-1].name if edge.verdict else None) == edge.verdict, edge
            steps += 1
    assert steps > 100_000
