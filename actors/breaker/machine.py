"""The state machine over numbers: where a session stands, and the moves that an input, time or a person leads to.

Functions return the moves in order, each with the machine after it; none is no change. Trust is rounded to six decimals
after every change, so that recorded and recomputed values are the same bytes.
"""

from collections.abc import Sequence
from typing import Literal

import msgspec

from actors.breaker.settings import BreakerSettings
from schemas.vocabulary.appraisal import LayerTrust
from schemas.vocabulary.breaker import BreakerState, Stance, Violation

Starter = Literal["input", "timer", "operator"]
Reason = Literal[
    "attempts_used_up",
    "attempt_budget",
    "breakers_in_session",
    "recent_falsehood",
    "balance_trend",
    "refusal_share",
    "violation_count",
]
MoveName = Literal["cleared", "withheld", "tripped", "recovery_started", "attempt_failed", "recovered", "terminated"]

DECIMALS = 6
"""Decimals of every recorded number."""


class Breakers(msgspec.Struct, frozen=True, gc=False):
    """The violations of a session's life, by kind: one for each violating input."""

    role_confusion: int = 0
    context_saturation: int = 0

    @property
    def total(self) -> int:
        """The violation count."""
        return self.role_confusion + self.context_saturation


class Machine(msgspec.Struct, frozen=True):
    """Where a session stands.

    ``attempts`` counts the recovery attempts since the last success, ``attempt_turns`` the inputs of the running one.
    ``falsehoods`` and ``balances`` are those of the latest inputs, oldest first. ``interactions`` counts the appraised
    inputs, ``refusals`` those of them that an earlier guard refused.
    """

    state: BreakerState = "NORMAL"
    trust: float = 0.5
    attempts: int = 0
    attempt_turns: int = 0
    breakers: Breakers = Breakers()
    falsehoods: tuple[float, ...] = ()
    balances: tuple[float, ...] = ()
    interactions: int = 0
    refusals: int = 0


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """An appraised input in the breaker's numbers.

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

    ``violation`` says what tripped or terminated it, if an input did; ``reason`` which rule terminated it; ``by`` what
    started an attempt.
    """

    name: MoveName
    after: Machine
    violation: Violation | None = None
    reason: Reason | None = None
    by: Starter | None = None


def new_machine(settings: BreakerSettings) -> Machine:
    """Return the machine of a session nothing is known of."""
    return Machine(trust=settings.initial_trust)


def read(layers: Sequence[LayerTrust], settings: BreakerSettings, refused: bool = False) -> Reading | None:
    """Turn an appraisal's layers into a reading; None when there are none, and so nothing to judge by."""
    if not layers:
        return None
    worst = max(layers, key=_falsehood)
    saturated = [
        layer
        for layer in layers
        if layer.characters > settings.saturation_characters and layer.falsehood > settings.saturation_above
    ]
    violation: Violation | None = None
    if worst.falsehood > settings.role_confusion_above:
        violation = "role_confusion"
    elif saturated:
        violation, worst = "context_saturation", max(saturated, key=_falsehood)
    return Reading(
        falsehood=round(max(layer.falsehood for layer in layers), DECIMALS),
        balance=round(sum(layer.truth - layer.falsehood for layer in layers) / len(layers), DECIMALS),
        violation=violation,
        layer=worst.layer if violation else "",
        refused=refused,
    )


def observe(machine: Machine, reading: Reading, settings: BreakerSettings) -> Machine:
    """Count an input and remember its numbers; nothing is counted any more once a session is terminated."""
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
    """Count the refusal, by an earlier guard, of an input that was observed before."""
    if machine.state == "TERMINATED":
        return machine
    return msgspec.structs.replace(machine, refusals=machine.refusals + 1)


def judge(machine: Machine, reading: Reading, settings: BreakerSettings) -> tuple[Move, ...]:
    """Judge an input: exactly one of the moves answers it, the last."""
    if machine.state == "TERMINATED":
        return (Move(name="withheld", after=machine),)
    machine = observe(machine, reading, settings)
    weigh = _violated if reading.violation else _kept
    if machine.state != "VIOLATED":
        return weigh(machine, reading, settings)
    started = _start(machine, "input")
    # The input that begins an attempt is its first turn, or every second violation would go uncounted.
    return (started, *weigh(started.after, reading, settings))


def refuse(machine: Machine, settings: BreakerSettings) -> tuple[Move, ...]:
    """Count a refusal, which may be one too many."""
    counted = count_refusal(machine)
    reason = pattern(counted, settings)
    return _terminate(counted, reason) if reason and counted.state != "TERMINATED" else ()


def start_recovery(machine: Machine, by: Starter) -> tuple[Move, ...]:
    """Begin a recovery attempt, where the session is in VIOLATED."""
    return (_start(machine, by),) if machine.state == "VIOLATED" else ()


def pattern(machine: Machine, settings: BreakerSettings) -> Reason | None:
    """Return the first of the rules over a session's life that its memory breaks, or None."""
    if machine.breakers.total > settings.violations_above:
        return "violation_count"
    if machine.breakers.total >= settings.breakers_in_session:
        return "breakers_in_session"
    falsehoods, balances = machine.falsehoods, machine.balances
    if len(falsehoods) >= settings.window:
        high = sum(falsehood > settings.recent_falsehood_above for falsehood in falsehoods)
        if high >= settings.recent_falsehood_count:
            return "recent_falsehood"
        if round(sum(balances) / len(balances), DECIMALS) < settings.balance_below:
            return "balance_trend"
    if machine.interactions >= settings.refusal_interactions:
        share = machine.refusals / machine.interactions
        if round(share, DECIMALS) > settings.refusal_share_above:
            return "refusal_share"
    return None


def stance_of(machine: Machine, settings: BreakerSettings) -> Stance:
    """Derive the stance from trust and its trajectory: the lower of trust and of where the latest inputs lead it."""
    if machine.state == "TERMINATED":
        return "terminated"
    falsehoods = machine.falsehoods
    heading = 1.0 - sum(falsehoods) / len(falsehoods) if falsehoods else machine.trust
    level = round(min(machine.trust, heading), DECIMALS)
    if level < settings.guarded_below:
        return "guarded"
    return "cautious" if level < settings.cautious_below else "normal"


def with_violation(breakers: Breakers, violation: Violation | None) -> Breakers:
    """Count a violation under its kind; None counts nothing."""
    match violation:
        case "role_confusion":
            return Breakers(breakers.role_confusion + 1, breakers.context_saturation)
        case "context_saturation":
            return Breakers(breakers.role_confusion, breakers.context_saturation + 1)
    return breakers


def _falsehood(layer: LayerTrust) -> float:
    return layer.falsehood


def _start(machine: Machine, by: Starter) -> Move:
    begun = msgspec.structs.replace(machine, state="RECOVERY", attempts=machine.attempts + 1, attempt_turns=0)
    return Move(name="recovery_started", after=begun, by=by)


def _violated(machine: Machine, reading: Reading, settings: BreakerSettings) -> tuple[Move, ...]:
    """A violation, which no trust of before compensates."""
    recovering = machine.state == "RECOVERY"
    factor = settings.recovery_factor if recovering else settings.violation_factor
    tripped = msgspec.structs.replace(
        machine,
        state="VIOLATED",
        trust=round(machine.trust * factor, DECIMALS),
        attempt_turns=0,
        breakers=with_violation(machine.breakers, reading.violation),
    )
    if recovering and machine.attempts >= settings.max_attempts:
        return _terminate(tripped, "attempts_used_up", reading.violation)
    if reason := pattern(tripped, settings):
        return _terminate(tripped, reason, reading.violation)
    return (Move(name="tripped", after=tripped, violation=reading.violation),)


def _kept(machine: Machine, reading: Reading, settings: BreakerSettings) -> tuple[Move, ...]:
    """An input without a violation, in NORMAL or RECOVERY."""
    alpha = settings.alpha
    trust = round(alpha * (1.0 - reading.falsehood) + (1.0 - alpha) * machine.trust, DECIMALS)
    recovering = machine.state == "RECOVERY"
    after = msgspec.structs.replace(machine, trust=trust, attempt_turns=machine.attempt_turns + recovering)
    if reason := pattern(after, settings):
        return _terminate(after, reason)
    if not recovering:
        return (Move(name="cleared", after=after),)
    if trust >= settings.recovery_target:
        rebuilt = msgspec.structs.replace(after, state="NORMAL", attempts=0, attempt_turns=0)
        return (Move(name="recovered", after=rebuilt), Move(name="cleared", after=rebuilt))
    if after.attempt_turns < settings.attempt_turns:
        return (Move(name="withheld", after=after),)
    if after.attempts >= settings.max_attempts:
        return _terminate(after, "attempt_budget")
    failed = msgspec.structs.replace(after, state="VIOLATED", attempt_turns=0)
    return (Move(name="attempt_failed", after=failed), Move(name="withheld", after=failed))


def _terminate(machine: Machine, reason: Reason, violation: Violation | None = None) -> tuple[Move, ...]:
    ended = msgspec.structs.replace(machine, state="TERMINATED", attempt_turns=0)
    return (Move(name="terminated", after=ended, violation=violation, reason=reason),)
