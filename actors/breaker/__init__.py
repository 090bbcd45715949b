"""The circuit breaker of a session's trust (source C): violations that politeness cannot buy off, and the way back.

States: NORMAL (inputs are answered), VIOLATED, RECOVERY and TERMINATED (processing is off). It decides from the numbers
of ``appraisal.completed`` alone: a layer's falsehood above 0.65 confuses roles, above 0.5 in more than 5000 characters
it saturates the context; either is a violation, whatever the trust before. Trust is a moving average of 1 - falsehood.

Every appraised input leads to exactly one of ``cleared``, ``withheld``, ``tripped`` and ``terminated``, always last: it
says what becomes of the input. ``cleared`` lets it go on to the arbiter, each other ends its exchange. What else moved
the session stands before it in the same decision. ``|`` separates what one input can lead to:

==========  ======================================================  ====================================================
state       input without a violation                               input with a violation
==========  ======================================================  ====================================================
NORMAL      cleared | terminated                                    tripped | terminated
VIOLATED    recovery_started, then as in RECOVERY                   recovery_started, then as in RECOVERY
RECOVERY    withheld | recovered, cleared | attempt_failed,         tripped | terminated
            withheld | terminated
TERMINATED  withheld                                                withheld
==========  ======================================================  ====================================================

- The input that begins an attempt is its first turn; were it not counted, every second violation would cost nothing.
- The input that rebuilds trust is answered: after it the session is in NORMAL with the trust that asks for, by the same
  evidence on which any other input of a session in NORMAL is cleared. So ``cleared`` means NORMAL, always.
- A violation that terminates is told by ``terminated`` alone; it counts and costs trust like one that trips.
- One input is one violation, of the kind found first: roles, then context.
- An input is judged once, whether or not a faster guard has ended its exchange meanwhile: what a session is charged
  with must not depend on a race. A verdict on an ended exchange finds nobody waiting.
- An appraisal without layers is withheld and not counted: nothing vouches for the input.
- A window of inputs is judged with an input that is itself of the kind the rule is against, and begins anew with every
  attempt; the share of refusals is judged with a refusal. So a calm input ends no session by what came before it. The
  last turn of a third attempt may.
- ``warned`` and ``calmed`` stand before the answer where a session in NORMAL comes into danger, or out of it: trust is
  low, or one more input of a kind would break a rule. Its stance is then guarded, which the responder heeds.

Other messages: ``appraisal.judged``, where a language model's word came after the input had gone on, is a violation
where it finds one: ``tripped`` or ``terminated``, in NORMAL and RECOVERY. It counts no input a second time, and judges
no window. ``clock.fired`` by the breaker's own timers begins an attempt in VIOLATED (15 minutes after it was entered,
so that nothing stalls), ends an attempt that nothing has failed for a day (``recovered``, with the trust there is: time
buys none), and is ignored elsewhere. A ``response.emitted`` by which reflex, intuition or coherence refused an input
counts as a refusal, which may terminate the session. ``operator.breaker_reset_ordered`` leads to ``reset``: the
machine of a new session, in any state.

TERMINATED is final otherwise, and is remembered for ever, by four numbers: some 220 bytes of memory a session, and 110
of each snapshot. A partition holds 20,000 of them (``terminated_sessions``). With so many it fails closed: sessions it
knows go on, and an input of any other is withheld, with a critical alert (``filled``), until an operator resets some
or raises the setting.
Other sessions are forgotten a day after their last input, those with violations after 30, so "over a session's life"
means as long as it is remembered.

``machine`` holds the rules over plain numbers, ``settings`` their constants, ``decider`` what messages do to the
machine, ``recording`` the events that its moves become.
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

__all__ = ["ACTOR"]
