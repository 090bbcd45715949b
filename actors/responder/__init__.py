"""The responder: the only writer of an exchange's end, exactly one ``response.emitted`` for each accepted input.

Decides from ``input.received`` (opens the exchange), what answers draw on (``memory.recalled``, ``act.finished``, a
model's answers), ``operator.forget_ordered`` (drops a session's words), the failures of every stage (fail closed),
``clock.fired`` (the deadlines), and the verdicts by which stages end an exchange or let it be answered:

====================================  ======================================  =========================================
event                                 end                                     reason
====================================  ======================================  =========================================
``reflex.blocked``                    REFLEX / BLOCKED                        the pattern's name
``intuition.rejected``                INTUITION / REJECTED                    the motif's name, or ``scorer``
``coherence.rejected``                COHERENCE / REJECTED                    ``DISSONANT``; ``UNREAD``
``breaker.tripped``                   BREAKER / WITHHELD                      the kind of violation
``breaker.withheld``                  BREAKER / WITHHELD                      the state in lower case, or ``because``
``breaker.terminated``                BREAKER / WITHHELD                      the rule that ended the session
``arbiter.denied``                    ARBITER / REJECTED                      the arbiter's reason
``arbiter.immediate``                 ARBITER / EXECUTED                      the precedent's name
``arbiter.passed``, of a check        ARBITER / PASSED                        ``check``
``reflex.answer_passed``              DELIBERATIVE / EXECUTED                 ``forward``
``reflex.answer_blocked``             DELIBERATIVE / WITHHELD                 what the answer gives away
``input.abandoned``, likewise         DELIBERATIVE / FAILED                   why, such as ``upstream_refused``
``router.mode_selected``              DELIBERATIVE / EXECUTED                 the mode
``llm.completed``, not judged         DELIBERATIVE / EXECUTED                 the mode
``llm.failed``                        DELIBERATIVE / EXECUTED                 ``llm_failed:`` and the failure's reason
``guardrails.finalized``              DELIBERATIVE / EXECUTED                 the mode
``guardrails.force_finalized``        DELIBERATIVE / EXECUTED                 the mode, ``:`` and guardrails' reason
``<actor>.failed``                    that stage / FAILED                     ``<actor>_failed``
``clock.fired``, the input's          the first silent stage / FAILED         ``deadline``
``clock.fired``, once forwarded       DELIBERATIVE / FAILED                   ``upstream_silent``
``clock.fired``, the arbiter's        DELIBERATIVE / FAILED                   ``deliberation_deadline``
``swarm.stage_lost``                  the stage that waits / FAILED           ``no_owner: arbiter`` and the like
====================================  ======================================  =========================================

The first stage of the path that asks for an end ends an exchange; everything later about it, and every repeated input,
is ignored. Since appraisal and the breaker work side by side with the stages before them, what they ask for waits
until those have let the input pass: which stage ends an exchange may not depend on who is faster, or a known threat
would now be blocked and now be withheld, and count as a refusal or not. Events by which a stage lets an input pass
say what is still waited for, and which stage is silent when a deadline passes: a guard that does not speak ends its
exchanges, since one that is silently dead is worse than none. Appraisal is no stage of its own: where it fails or
is silent, COHERENCE is named, the first stage that needs its numbers. Fixed notices are texts of the package.

**Answers of others.** An input that is only checked ends once all guards have let it pass. One that is forwarded stays
open then, until its sender tells what its own model said (``input.answered``), and reflex what it makes of that.
Nothing of either is a turn of its session.

**Stages that nobody serves.** Swarm records which (``swarm.stage_lost``, ``unserved_stages``). An exchange that waits
for one ends at once; one that will, as soon as it does, so that what an earlier stage refuses is refused by that stage.

**Drafts.** A model's answer is held until guardrails have judged its loop (setting ``guardrails``): they let the best
of its loops go out, or have the model asked once more, with what is to be mended. A draft is never lost: where it
cannot be judged or bettered, the best so far goes out, and the reason says why after the mode: ``guardrails_failed``,
``guardrails_silent`` (at the deadline), ``appraisal_failed``, ``rerun_failed:`` and the model's failure, ``no_time`` or
``deadline``. Who wants partial text (``stream``) reads drafts while they are written: what counts is the end.

Who answers is a setting. The ``composer`` writes at once, from what is remembered, and says that no model is attached.
``llm`` has a model asked by ``response.requested``, within the time that the exchange has left; IGNORE is empty at once
in any case. Where the model fails, or says nothing, the composer answers instead: ``backend`` says who wrote, ``mode``
in which mode, and the reason names the failure. Source: the mode router's prompts and models by mode (mode-specific
generation); RESPOND and CLARIFY speak with the agent's soul, ACKNOWLEDGE without.
"""

from actors.responder.decider import ResponderState, decide, evolve
from actors.responder.log_lines import log_lines
from actors.responder.settings import ResponderSettings
from actors.responder.verdicts import PASSES, VERDICTS
from schemas.actor import Actor, Scope
from schemas.vocabulary.act import ActFinished
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.memory import MemoryRecalled, TurnsForgotten
from schemas.vocabulary.operator import ForgetOrdered
from schemas.vocabulary.swarm import StageFound, StageLost

FORGETS = (ForgetOrdered, TurnsForgotten)
"""What makes it forget turns: of a session, or of those in which a fact was told."""

ACTOR = Actor(
    name="responder",
    scope=Scope.SESSION,
    consumes=tuple(
        dict.fromkeys((InputReceived, MemoryRecalled, ActFinished, StageLost, StageFound, *FORGETS, *PASSES, *VERDICTS))
    ),
    state_type=ResponderState,
    settings_type=ResponderSettings,
    initial=ResponderState,
    decide=decide,
    evolve=evolve,
    log_lines=log_lines,
)
