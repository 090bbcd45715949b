"""The breaker's state machine: a session's state in numbers, and the moves that inputs, timers and operators cause.

Functions return the moves in order, each with the machine after it; an empty tuple is no change. Trust is rounded to
six decimals after every change, so that recorded and recomputed values are the same bytes.
"""

from collections.abc import Sequence
from operator import attrgetter
from typing import Literal

import msgspec

from actors.breaker.settings import BreakerSettings
from schemas.vocabulary.appraisal import LayerTrust
from schemas.vocabulary.breaker import BreakerState, Stance, Violation

AttemptTrigger = Literal["input", "timer", "operator"]
"""What starts or ends a recovery attempt."""

Reason = Literal[
    "attempts_used_up",
    "attempt_budget",
    "breakers_in_session",
    "recent_falsehood",
    "balance_trend",
    "refusal_share",
    "violation_count",
]
"""The rule that terminates a session; ``attempts_used_up``: by a violation in the last attempt to recover;
``attempt_budget``: that attempt has had all its inputs without success."""

Danger = Literal["trust", "recent_falsehood", "balance_trend", "refusal_share"]
"""Why a session may soon be tripped or terminated: low trust, or the rule that one more bad input would break."""

MoveName = Literal[
    "cleared",
    "withheld",
    "tripped",
    "recovery_started",
    "attempt_failed",
    "recovered",
    "terminated",
    "warned",
    "calmed",
]
"""What happens to a session; each move becomes the event of its name."""

FINAL_MOVES: frozenset[MoveName] = frozenset({"cleared", "withheld", "tripped", "terminated"})
"""The moves that say what becomes of an input: the last of its decision."""

DECIMALS = 6
"""Decimals of every recorded number."""


class ViolationCounts(msgspec.Struct, frozen=True, gc=False):
    """The number of a session's violations, by kind; an input adds one at most."""

    role_confusion: int = 0
    context_saturation: int = 0

    @property
    def total(self) -> int:
        """The violation count."""
        return self.role_confusion + self.context_saturation


class Machine(msgspec.Struct, frozen=True):
    """The state of one session.

    ``attempts`` counts the recovery attempts since the last success, ``attempt_turns`` the inputs of the running one.
    ``breakers`` are the counts of its violations by kind.
    ``falsehoods`` and ``balances`` are those of the latest inputs since the last attempt began, oldest first.
    ``interactions`` counts the appraised inputs, ``refusals`` those of them that an earlier guard refused. ``warned``
    says whether ``breaker.warned`` was emitted for the present danger. ``calm_ns`` is the earliest time at which the
    running attempt may end without a further input. ``reset_seq`` is the sequence of the operator's last reset: inputs
    before it no longer count.

    A terminated session keeps its state, trust, attempts and violations, and nothing else.
    """

    state: BreakerState = "NORMAL"
    trust: float = 0.5
    attempts: int = 0
    attempt_turns: int = 0
    breakers: ViolationCounts = ViolationCounts()
    falsehoods: tuple[float, ...] = ()
    balances: tuple[float, ...] = ()
    interactions: int = 0
    refusals: int = 0
    warned: bool = False
    calm_ns: int = 0
    reset_seq: int = 0


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """An appraised input in the breaker's numbers. A layer's falsehood is how far it gives orders to the model itself.

    ``falsehood`` is the highest over the layers, ``balance`` the mean of truth minus falsehood. ``layer`` is where
    ``violation`` was found. ``refused`` says that an earlier guard had already refused the input.
    """

    falsehood: float
    balance: float
    violation: Violation | None = None
    layer: str = ""
    refused: bool = False


class Move(msgspec.Struct, frozen=True, kw_only=True):
    """One step of a session, and the machine after it.

    ``violation`` is the kind of violation that tripped or terminated it, if any; ``reason`` the rule that terminated
    it; ``by`` what started or ended an attempt; ``danger`` the danger that is warned of.
    """

    name: MoveName
    after: Machine
    violation: Violation | None = None
    reason: Reason | None = None
    by: AttemptTrigger | None = None
    danger: Danger | None = None


def new_machine(settings: BreakerSettings) -> Machine:
    """Return the machine of a new session."""
    return Machine(trust=settings.initial_trust)


def reading_of(layers: Sequence[LayerTrust], settings: BreakerSettings, refused: bool = False) -> Reading | None:
    """Turn an appraisal's layers into a reading; None if there are none.

    ``refused``: an earlier guard refused the input.
    """
    if not layers:
        return None
    worst = max(layers, key=attrgetter("falsehood"))
    saturated = [
        layer
        for layer in layers
        if layer.characters > settings.saturation_characters and layer.falsehood > settings.saturation_above
    ]
    violation: Violation | None = None
    if worst.falsehood > settings.role_confusion_above:
        violation = "role_confusion"
    elif saturated:
        violation, worst = "context_saturation", max(saturated, key=attrgetter("falsehood"))
    return Reading(
        falsehood=round(max(layer.falsehood for layer in layers), DECIMALS),
        balance=round(sum(layer.truth - layer.falsehood for layer in layers) / len(layers), DECIMALS),
        violation=violation,
        layer=worst.layer if violation else "",
        refused=refused,
    )


def observe(machine: Machine, reading: Reading, settings: BreakerSettings) -> Machine:
    """Count an input and keep its numbers. A terminated session counts nothing."""
    if machine.state == "TERMINATED":
        return machine
    return msgspec.structs.replace(
        machine,
        falsehoods=(*machine.falsehoods, reading.falsehood)[-settings.window :],
        balances=(*machine.balances, reading.balance)[-settings.window :],
        interactions=machine.interactions + 1,
        refusals=machine.refusals + reading.refused,
    )


def count_refusal(machine: Machine) -> Machine:
    """Count that an earlier guard refused an input which was observed before."""
    if machine.state == "TERMINATED":
        return machine
    return msgspec.structs.replace(machine, refusals=machine.refusals + 1)


def judge(machine: Machine, reading: Reading, settings: BreakerSettings) -> tuple[Move, ...]:
    """Judge an input. Exactly one of the moves says what becomes of it: the last."""
    if machine.state == "TERMINATED":
        return (Move(name="withheld", after=machine),)
    moves_of = _moves_of_violation if reading.violation else _moves_without_violation
    if machine.state != "VIOLATED":
        return _with_warning(moves_of(observe(machine, reading, settings), reading, settings), settings)
    started = _start(machine, "input")
    # The input that begins an attempt is its first turn. Otherwise every second violation would not be counted.
    return _with_warning((started, *moves_of(observe(started.after, reading, settings), reading, settings)), settings)


def judge_again(machine: Machine, reading: Reading, settings: BreakerSettings) -> tuple[Move, ...]:
    """Judge an input again, by a language model's late answer that found a violation.

    The input was counted, and its window checked, when it came in. So only the violation is added. In VIOLATED and
    TERMINATED nothing changes: a late answer begins no recovery attempt.
    """
    if machine.state in ("VIOLATED", "TERMINATED") or reading.violation is None:
        return ()
    return _moves_of_violation(machine, reading, settings, fresh=False)


def refuse(machine: Machine, settings: BreakerSettings) -> tuple[Move, ...]:
    """Count a refusal; terminate if their share is too high. The window of inputs is not checked again."""
    if machine.state == "TERMINATED":
        return ()
    counted = count_refusal(machine)
    if _refused_too_often(counted.refusals, counted.interactions, settings):
        return _terminate(counted, "refusal_share")
    warning = _warning(counted, settings)
    return (warning,) if warning is not None else ()


def start_recovery(machine: Machine, by: AttemptTrigger) -> tuple[Move, ...]:
    """Begin a recovery attempt, if the session is in VIOLATED."""
    return (_start(machine, by),) if machine.state == "VIOLATED" else ()


def end_by_calm(machine: Machine, due_ns: int, settings: BreakerSettings) -> tuple[Move, ...]:
    """End the running attempt as recovered, since it has been calm long enough. Trust and stance stay as they are.

    ``due_ns`` is the time that the timer was set to. The timer of an earlier attempt ends nothing.
    """
    if machine.state != "RECOVERY" or due_ns < machine.calm_ns:
        return ()
    return _with_warning((Move(name="recovered", after=_recovered(machine), by="timer"),), settings)


def broken_rule(
    machine: Machine, settings: BreakerSettings, *, violated: bool = False, refused: bool = False, fresh: bool = True
) -> Reason | None:
    """Return the first of the rules over a session's life that its latest input breaks, or None.

    ``violated``: that input has a violation; ``refused``: an earlier guard refused it. A rule is checked
    only with an input of the kind that it is against: the counts of violations with a violation, the share of refusals
    with a refusal, a window with a high falsehood or a low balance. Otherwise a calm input could end a session because
    of earlier ones, which were checked when they came. ``fresh``: the latest input is in the window.
    """
    if violated and machine.breakers.total > settings.violations_above:
        return "violation_count"
    if violated and machine.breakers.total >= settings.breakers_in_session:
        return "breakers_in_session"
    falsehoods, balances = machine.falsehoods, machine.balances
    if fresh and len(falsehoods) >= settings.window:
        if falsehoods[-1] > settings.recent_falsehood_above and _many_high(falsehoods, settings):
            return "recent_falsehood"
        mean = round(sum(balances) / len(balances), DECIMALS)
        if balances[-1] < settings.balance_below and mean < settings.balance_below:
            return "balance_trend"
    if refused and _refused_too_often(machine.refusals, machine.interactions, settings):
        return "refusal_share"
    return None


def danger_of(machine: Machine, settings: BreakerSettings) -> Danger | None:
    """Return why a session may soon be tripped or terminated (low trust, or one more input of a kind); None if not."""
    if _expected_trust(machine) < settings.guarded_below:
        return "trust"
    earlier_inputs = settings.window - 1
    falsehoods, balances = (
        machine.falsehoods[-earlier_inputs:] if earlier_inputs else (),
        machine.balances[-earlier_inputs:] if earlier_inputs else (),
    )
    if _many_high((*falsehoods, 1.0), settings):
        return "recent_falsehood"
    if len(balances) >= earlier_inputs:
        # The mean balance if the next input has the lowest balance that one without a violation can have.
        worst = (sum(balances) - settings.role_confusion_above) / settings.window
        if round(worst, DECIMALS) < settings.balance_below:
            return "balance_trend"
    if _refused_too_often(machine.refusals + 1, machine.interactions + 1, settings):
        return "refusal_share"
    return None


def stance_of(machine: Machine, settings: BreakerSettings) -> Stance:
    """Derive the stance: guarded in danger, cautious at moderate trust or where one more violation is the last."""
    if machine.state == "TERMINATED":
        return "terminated"
    if danger_of(machine, settings) is not None:
        return "guarded"
    last_violation = machine.breakers.total + 1 >= min(settings.breakers_in_session, settings.violations_above + 1)
    return (
        "cautious"
        if _expected_trust(machine) < settings.cautious_below or (machine.breakers.total and last_violation)
        else "normal"
    )


def _expected_trust(machine: Machine) -> float:
    """Return trust, or the value that it approaches with inputs like the latest ones, whichever is lower."""
    falsehoods = machine.falsehoods
    approached = 1.0 - sum(falsehoods) / len(falsehoods) if falsehoods else machine.trust
    return round(min(machine.trust, approached), DECIMALS)


def _many_high(falsehoods: Sequence[float], settings: BreakerSettings) -> bool:
    high = sum(falsehood > settings.recent_falsehood_above for falsehood in falsehoods)
    return high >= settings.recent_falsehood_count


def _refused_too_often(refusals: int, interactions: int, settings: BreakerSettings) -> bool:
    if interactions < settings.refusal_interactions:
        return False
    return round(refusals / interactions, DECIMALS) > settings.refusal_share_above


def _warning(machine: Machine, settings: BreakerSettings) -> Move | None:
    """Return the move by which a session in NORMAL comes into danger, or out of it; None if that has not changed."""
    if machine.state != "NORMAL":
        return None
    danger = danger_of(machine, settings)
    if (danger is not None) == machine.warned:
        return None
    after = msgspec.structs.replace(machine, warned=danger is not None)
    return Move(name="warned" if danger is not None else "calmed", after=after, danger=danger)


def _with_warning(moves: tuple[Move, ...], settings: BreakerSettings) -> tuple[Move, ...]:
    """Return the moves with a warning, or its end, put before the last move, if that says what becomes of an input."""
    warning = _warning(moves[-1].after, settings)
    if warning is None:
        return moves
    if moves[-1].name not in FINAL_MOVES:
        return (*moves, warning)
    return (*moves[:-1], warning, msgspec.structs.replace(moves[-1], after=warning.after))


def with_violation(counts: ViolationCounts, violation: Violation | None) -> ViolationCounts:
    """Count a violation under its kind; None counts nothing."""
    match violation:
        case "role_confusion":
            return ViolationCounts(counts.role_confusion + 1, counts.context_saturation)
        case "context_saturation":
            return ViolationCounts(counts.role_confusion, counts.context_saturation + 1)
    return counts


def _start(machine: Machine, by: AttemptTrigger) -> Move:
    # The window starts empty: its inputs have been checked already.
    started = msgspec.structs.replace(
        machine, state="RECOVERY", attempts=machine.attempts + 1, attempt_turns=0, falsehoods=(), balances=()
    )
    return Move(name="recovery_started", after=started, by=by)


def _moves_of_violation(
    machine: Machine, reading: Reading, settings: BreakerSettings, *, fresh: bool = True
) -> tuple[Move, ...]:
    """Return the moves of an input with a violation. Earlier trust never makes up for it."""
    recovering = machine.state == "RECOVERY"
    factor = settings.recovery_factor if recovering else settings.violation_factor
    tripped = msgspec.structs.replace(
        machine,
        state="VIOLATED",
        trust=round(machine.trust * factor, DECIMALS),
        attempt_turns=0,
        breakers=with_violation(machine.breakers, reading.violation),
        warned=False,
    )
    if recovering and machine.attempts >= settings.max_attempts:
        return _terminate(tripped, "attempts_used_up", reading.violation)
    if reason := broken_rule(tripped, settings, violated=True, refused=reading.refused, fresh=fresh):
        return _terminate(tripped, reason, reading.violation)
    return (Move(name="tripped", after=tripped, violation=reading.violation),)


def _moves_without_violation(machine: Machine, reading: Reading, settings: BreakerSettings) -> tuple[Move, ...]:
    """Return the moves of an input without a violation, in NORMAL or RECOVERY."""
    alpha = settings.alpha
    trust = round(alpha * (1.0 - reading.falsehood) + (1.0 - alpha) * machine.trust, DECIMALS)
    recovering = machine.state == "RECOVERY"
    after = msgspec.structs.replace(machine, trust=trust, attempt_turns=machine.attempt_turns + recovering)
    if reason := broken_rule(after, settings, refused=reading.refused):
        return _terminate(after, reason)
    if not recovering:
        return (Move(name="cleared", after=after),)
    if trust >= settings.recovery_target:
        recovered = _recovered(after)
        return (Move(name="recovered", after=recovered, by="input"), Move(name="cleared", after=recovered))
    if after.attempt_turns < settings.attempt_turns:
        return (Move(name="withheld", after=after),)
    if after.attempts >= settings.max_attempts:
        return _terminate(after, "attempt_budget")
    failed = msgspec.structs.replace(after, state="VIOLATED", attempt_turns=0)
    return (Move(name="attempt_failed", after=failed), Move(name="withheld", after=failed))


def _recovered(machine: Machine) -> Machine:
    return msgspec.structs.replace(machine, state="NORMAL", attempts=0, attempt_turns=0, calm_ns=0)


def _terminate(machine: Machine, reason: Reason, violation: Violation | None = None) -> tuple[Move, ...]:
    ended = Machine("TERMINATED", machine.trust, machine.attempts, breakers=machine.breakers)
    return (Move(name="terminated", after=ended, violation=violation, reason=reason),)
