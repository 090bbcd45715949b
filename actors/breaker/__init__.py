"""The circuit breaker of a session's trust: only a recovery attempt makes up for a violation.

States: NORMAL (inputs are answered); VIOLATED, RECOVERY (an attempt to recover is running) and TERMINATED (inputs are
not answered). It decides from the numbers of ``appraisal.completed`` alone. A layer's falsehood, from 0 to 1, says how
far it gives orders to the model itself: above 0.65 it is a role confusion; above 0.5 in more than 5000 characters it is
a context saturation. Either is a violation, whatever the trust before. Trust is a moving average of 1 - falsehood.

Every appraised input leads to exactly one of ``cleared``, ``withheld``, ``tripped`` and ``terminated``. It is the last
event of its decision and says what becomes of the input: ``cleared`` lets it go on to the arbiter, each of the others
ends its exchange. Other state changes of the session come before it in the same decision. In the table, ``|`` separates
alternatives:

==========  ======================================================  ====================================================
state       input without a violation                               input with a violation
==========  ======================================================  ====================================================
NORMAL      cleared | terminated                                    tripped | terminated
VIOLATED    recovery_started, then as in RECOVERY                   recovery_started, then as in RECOVERY
RECOVERY    withheld | recovered, cleared | attempt_failed,         tripped | terminated
            withheld | terminated
TERMINATED  withheld                                                withheld
==========  ======================================================  ====================================================

- The input that begins an attempt is the attempt's first turn. If it were not counted, every second violation would
  cost nothing.
- The input that raises trust to the target is answered: the session is back in NORMAL, on the same evidence on which
  any other input in NORMAL is cleared. So ``cleared`` always means NORMAL.
- A violation that terminates emits ``terminated`` alone. It counts, and lowers trust, like one that trips.
- One input is one violation at most. If it is of both kinds, it counts as a role confusion.
- An input is judged once, even if a faster guard has already ended its exchange. Otherwise the violations of a session
  would depend on which guard was faster. A verdict on an ended exchange has no further effect.
- An input whose appraisal has no layers is withheld and not counted, since nothing is known about it.
- The rules over a window of inputs are checked only when the latest input is itself of the kind that the rule is
  against; the window starts empty with every attempt. The share of refusals is checked only with a refusal. So a calm
  input never ends a session because of earlier ones. The one exception is the last turn of a third attempt.
- ``warned`` comes before the final event when a session in NORMAL comes into danger: trust is low, or one more input of
  some kind would break a rule. Its stance (how careful the responder has to be) is then guarded. ``calmed`` ends this.

Other messages:

- ``appraisal.judged`` carries a language model's answer that came after the input had gone on. If it finds a violation,
  it leads to ``tripped`` or ``terminated``, in NORMAL and RECOVERY. It counts no input a second time, nor a violation
  that the input had by the local numbers alone, and checks no window.
- ``clock.fired`` by the breaker's own timers begins an attempt in VIOLATED, 15 minutes after that state was entered, so
  that a session without inputs recovers too. It ends an attempt that has not failed for a day (``recovered``); trust
  keeps its value, since time alone raises none. In any other state it is ignored.
- ``response.emitted`` by which reflex, intuition or coherence refused an input counts as a refusal, which may terminate
  the session.
- ``operator.breaker_reset_ordered`` leads to ``reset``: the state of a new session, whatever the state was.

TERMINATED is final otherwise, and is never forgotten. Four numbers are kept of each such session: some 220 bytes of
memory, and 110 of each snapshot. A partition holds at most 20,000 of them (``terminated_sessions``). At that number it
fails closed: known sessions go on, and inputs of all others are withheld, with a critical alert (``filled``), until an
operator resets some sessions or raises the setting.

Other sessions are forgotten a day after their last input, and those with violations after 30 days. "Over a session's
life" means for as long as the session is remembered.

``machine`` holds the rules over plain numbers, ``settings`` their constants, ``decider`` what each message does to the
machine, ``move_events`` the events that record its moves (steps from state to state).
"""

from actors.breaker.decider import BreakerState, decide, evolve
from actors.breaker.settings import BreakerSettings
from schemas.actor import Actor, Scope
from schemas.vocabulary.appraisal import AppraisalCompleted, AppraisalJudged
from schemas.vocabulary.clock import ClockFired
from schemas.vocabulary.operator import BreakerRecoveryOrdered, BreakerResetOrdered
from schemas.vocabulary.responder import ResponseEmitted

ACTOR: Actor[BreakerState] = Actor(
    name="breaker",
    scope=Scope.SESSION,
    consumes=(
        AppraisalCompleted,
        AppraisalJudged,
        ClockFired,
        BreakerRecoveryOrdered,
        BreakerResetOrdered,
        ResponseEmitted,
    ),
    state_type=BreakerState,
    settings_type=BreakerSettings,
    initial=BreakerState,
    decide=decide,
    evolve=evolve,
)
