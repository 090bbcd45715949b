"""The responder: the only writer of an exchange's end, exactly one ``response.emitted`` for each accepted input.

Decides from ``input.received`` (opens the exchange), the verdicts by which stages end one or let it be answered, the
failures of every stage (fail closed) and ``clock.fired`` (the deadlines):

====================================  ======================================  =========================================
event                                 end                                     reason
====================================  ======================================  =========================================
``reflex.blocked``                    REFLEX / BLOCKED                        the pattern's name
``intuition.rejected``                INTUITION / REJECTED                    the motif's name, or ``scorer``
``coherence.rejected``                COHERENCE / REJECTED                    ``DISSONANT``
``breaker.tripped``                   BREAKER / WITHHELD                      the kind of violation
``breaker.withheld``                  BREAKER / WITHHELD                      the session's state in lower case
``breaker.terminated``                BREAKER / WITHHELD                      the rule that ended the session
``arbiter.denied``                    ARBITER / REJECTED                      the arbiter's reason
``arbiter.immediate``                 ARBITER / EXECUTED                      the precedent's name
``router.mode_selected``              DELIBERATIVE / EXECUTED                 the mode
``<actor>.failed``                    that stage / FAILED                     ``<actor>_failed``
``clock.fired``, the input's          the first silent stage / FAILED         ``deadline``
``clock.fired``, the arbiter's        DELIBERATIVE / FAILED                   ``deliberation_deadline``
====================================  ======================================  =========================================

The first stage of the path that asks for an end ends an exchange; everything later about it, and every repeated input,
is ignored. Since appraisal and the breaker work side by side with the stages before them, what they ask for waits
until those have let the input pass: which stage ends an exchange may not depend on who is faster, or a known threat
would now be blocked and now be withheld, and count as a refusal or not. Events by which a stage lets an input pass
say what is still waited for, and which stage is silent when a deadline passes: a guard that does not speak ends its
exchanges, since one that is silently dead is worse than none. Appraisal is no stage of its own: where it fails or
is silent, COHERENCE is named, the first stage that needs its numbers. Fixed notices are texts of the package. Answers
come from the composer, which needs no language model and says that there is none.

Behaviour 2: the guards between reflex and the router have verdicts, and deliberation has a deadline of its own.
"""

from actors.responder.decider import ResponderState, decide, evolve
from actors.responder.settings import ResponderSettings
from actors.responder.verdicts import PASSES, VERDICTS
from schemas.actor import Actor, Scope
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.responder import ResponderConfigured, ResponderFailed

ACTOR = Actor(
    name="responder",
    scope=Scope.SESSION,
    consumes=tuple(dict.fromkeys((InputReceived, *PASSES, *VERDICTS))),
    state_type=ResponderState,
    settings_type=ResponderSettings,
    initial=ResponderState,
    decide=decide,
    evolve=evolve,
    configured=ResponderConfigured,
    failed=ResponderFailed,
    behaviour=2,
)
