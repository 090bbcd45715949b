"""The breaker's settings: thresholds on falsehood and trust, how trust moves, and what terminates a session."""

from typing import Annotated

import msgspec

from schemas.event import Milliseconds, Unit
from schemas.settings.unreachable_settings import at_most

Factor = Annotated[float, msgspec.Meta(ge=0.0, lt=1.0)]
"""What a violation multiplies trust with: always less than before."""

Share = Annotated[float, msgspec.Meta(gt=0.0, le=1.0)]
"""A share above 0."""

Count = Annotated[int, msgspec.Meta(ge=1, le=1000)]
"""A number of inputs, attempts or violations."""

Balance = Annotated[float, msgspec.Meta(ge=-1.0, le=1.0)]
"""Truth minus falsehood, averaged."""


class BreakerSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a breaker decides with. "Above" and "below" are strict: a value equal to the limit is within it.

    Appraisal gives each layer of an input (its text, a document and the like) a truth and a falsehood (how far it gives
    orders to the model itself), from 0 to 1. Trust in a session is a moving average of 1 - falsehood. Its stance says
    how careful answers have to be.

    Attributes:
        initial_trust: Trust of a new session.
        alpha: Weight of the newest input in the moving average of trust.
        role_confusion_above: Falsehood of a layer above which it is a role confusion.
        saturation_above: Falsehood above which a long layer is a context saturation.
        saturation_characters: Characters above which a layer is long.
        violation_factor: What trust is multiplied with by a violation in NORMAL.
        recovery_factor: What trust is multiplied with by a violation during a recovery attempt.
        recovery_target: Trust at which an attempt has succeeded.
        recovery_after_ms: Time after which an attempt begins by itself.
        calm_after_ms: Time after which an attempt that has not failed ends as recovered by itself, whatever the trust.
        max_attempts: Attempts that may fail before the session is terminated; success sets the count to zero.
        attempt_turns: Inputs after which an attempt has failed if it has not succeeded.
        breakers_in_session: Violations at which a session is terminated.
        violations_above: Violations above which a session is terminated; the lower of these two limits decides.
        window: Number of latest inputs that the next three settings look at; they apply once the window is full. It
            begins anew with every recovery attempt.
        recent_falsehood_above: Falsehood that counts as high in the window.
        recent_falsehood_count: Inputs with high falsehood in the window, the latest among them, that terminate a
            session. The window never holds more than ``window`` inputs: a higher number is refused in new settings.
        balance_below: Mean balance over the window below which an input with such a balance terminates a session.
        refusal_share_above: Share of inputs refused by an earlier guard above which a refusal terminates a session.
        refusal_interactions: Fewest inputs of a session to which that share applies.
        guarded_below: Trust below which the stance is guarded.
        cautious_below: Trust below which it is cautious.
        session_lifetime_ms: A session unused for this long is forgotten, at the latest after twice as long.
        marked_lifetime_ms: Instead of ``session_lifetime_ms`` for sessions with a violation. Terminated ones are never
            forgotten.
        terminated_sessions: Most terminated sessions that a partition remembers; at that number no new session is let
            in.
        exchange_lifetime_ms: A repeated input of an exchange is recognised as such for at least this long.

    Raises:
        ValueError: a ``guarded_below`` above ``cautious_below``, or a ``marked_lifetime_ms`` below twice
            ``session_lifetime_ms``. ``msgspec.convert`` reports it as a ``ValidationError``.
    """

    initial_trust: Unit = 0.5
    alpha: Share = 0.3
    role_confusion_above: Unit = 0.65
    saturation_above: Unit = 0.5
    saturation_characters: Annotated[int, msgspec.Meta(ge=0)] = 5000
    violation_factor: Factor = 0.3
    recovery_factor: Factor = 0.5
    recovery_target: Share = 0.6
    recovery_after_ms: Milliseconds = 15 * 60 * 1000
    calm_after_ms: Milliseconds = 24 * 3600 * 1000
    max_attempts: Count = 3
    attempt_turns: Count = 10
    breakers_in_session: Count = 3
    violations_above: Count = 6
    window: Count = 5
    recent_falsehood_above: Unit = 0.6
    recent_falsehood_count: Annotated[Count, at_most("window")] = 3
    balance_below: Balance = -0.3
    refusal_share_above: Unit = 0.4
    refusal_interactions: Count = 10
    guarded_below: Unit = 0.4
    cautious_below: Unit = 0.6
    session_lifetime_ms: Milliseconds = 24 * 3600 * 1000
    marked_lifetime_ms: Milliseconds = 30 * 24 * 3600 * 1000
    terminated_sessions: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] = 20_000
    exchange_lifetime_ms: Milliseconds = 600 * 1000

    def __post_init__(self) -> None:
        """Refuse settings that contradict each other."""
        if self.guarded_below > self.cautious_below:
            raise ValueError("breaker setting 'guarded_below' is above 'cautious_below'")
        if self.marked_lifetime_ms < 2 * self.session_lifetime_ms:
            # With its first violation a session moves from one map of the state to another, which keeps its entries for
            # ``marked_lifetime_ms``. The old entry must expire first, or the session would be found without it.
            raise ValueError("breaker setting 'marked_lifetime_ms' must be at least twice 'session_lifetime_ms'")
