"""The responder: the only writer of an exchange's end, exactly one ``response.emitted`` for each accepted input.

It decides from ``input.received`` (opens the exchange), from what answers are based on (``memory.recalled``,
``act.finished``, a model's answers), from ``operator.forget_ordered`` and ``memory.turns_forgotten`` (drop a session's
text), from the failures of every stage (an exchange fails closed), from ``clock.fired`` (the deadlines), and from the
verdicts by which stages end an exchange or let it be answered:

====================================  ======================================  =========================================
event                                 end                                     reason
====================================  ======================================  =========================================
``reflex.blocked``                    REFLEX / BLOCKED                        the pattern's name
``intuition.rejected``                INTUITION / REJECTED                    the motif's name, or ``scorer``
``coherence.rejected``                COHERENCE / REJECTED                    ``DISSONANT``; ``UNREAD``
``breaker.tripped``                   BREAKER / WITHHELD                      the kind of violation
``breaker.withheld``                  BREAKER / WITHHELD                      lower-case state, or event's ``because``
``breaker.terminated``                BREAKER / WITHHELD                      the rule that ended the session
``arbiter.denied``                    ARBITER / REJECTED                      the arbiter's reason
``arbiter.immediate``                 ARBITER / EXECUTED                      the precedent's name
``arbiter.passed``, of a check        ARBITER / PASSED                        ``check``
``reflex.answer_passed``              DELIBERATIVE / EXECUTED                 ``forward``
``reflex.answer_blocked``             DELIBERATIVE / WITHHELD                 what the answer gives away
``input.abandoned``                   DELIBERATIVE / FAILED                   why, such as ``upstream_refused``
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

``DISSONANT``: the input conflicts with rules or with what is known; ``UNREAD``: too much of it could not be read. A
motif is the signature of a precedent that did harm; a precedent is an earlier situation with its outcome. The verdict
of the first stage on the path ends an exchange. Everything later about the exchange, and every repeated input, is
ignored. Appraisal and the breaker work in parallel with earlier stages. So an end that they ask for is held until the
earlier stages have let the input pass. Otherwise the faster stage would win, and the same known threat would sometimes
be blocked and sometimes withheld. Events by which a stage lets an input pass show which stages are still awaited, and
which one is silent when a deadline passes. A silent guard ends its exchanges with a failure, since an input that no
guard has read must not be answered. Appraisal is not a stage of its own: if it fails or is silent, COHERENCE is named,
the first stage that needs its numbers. Fixed notices are in ``composing/answers.json``.

**Checks and forwarded inputs.** An input that is only checked ends once all guards have let it pass. A forwarded input,
which its sender's own model answers, then stays open until the sender reports that answer (``input.answered``), and
reflex has judged it. Neither becomes a turn of its session.

**Stages that nobody serves.** The actor swarm records them (``swarm.stage_lost``, ``unserved_stages``). An exchange
that waits for such a stage ends at once. An exchange that has not reached it yet ends when it does, so that an earlier
stage can still refuse it.

**Drafts.** A model's answer is held as a draft until guardrails have judged it (setting ``guardrails``). They name the
best draft, which goes out, or have the model asked again with what must be improved. If a draft cannot be judged or
improved, the best draft so far goes out, and the reason after the mode says why: ``guardrails_failed``,
``guardrails_silent`` (at the deadline), ``appraisal_failed``, ``rerun_failed:`` and the model's failure, ``no_time`` or
``deadline``. A caller that wants partial text (``stream``) reads drafts while they are generated; only the end is
final.

Who answers is a setting. The ``composer`` answers at once, by fixed sentences and from what is remembered, and says
that no model is attached. With ``llm`` a model is asked by ``response.requested``, within the time that the exchange
has left; for IGNORE the answer is empty at once in any case. If the model fails or returns nothing, the composer
answers instead: ``backend`` says who wrote the answer, ``mode`` in which mode, and the reason names the failure. The
prompts of RESPOND and CLARIFY include the agent's soul (the text that says who the agent is), that of ACKNOWLEDGE does
not.
"""

from actors.responder.decider import ResponderState, decide, evolve
from actors.responder.ending_events import END_FUNCTIONS, PASSES
from actors.responder.log_lines import log_lines
from actors.responder.settings import ResponderSettings
from schemas.actor import Actor, Scope
from schemas.vocabulary.act import ActFinished
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.memory import MemoryRecalled, TurnsForgotten
from schemas.vocabulary.operator import ForgetOrdered
from schemas.vocabulary.swarm import StageFound, StageLost

FORGETS = (ForgetOrdered, TurnsForgotten)
"""The events that remove turns: all turns of a session, or those that state a fact."""

ACTOR = Actor(
    name="responder",
    scope=Scope.SESSION,
    consumes=tuple(
        dict.fromkeys(
            (InputReceived, MemoryRecalled, ActFinished, StageLost, StageFound, *FORGETS, *PASSES, *END_FUNCTIONS)
        )
    ),
    state_type=ResponderState,
    settings_type=ResponderSettings,
    initial=ResponderState,
    decide=decide,
    evolve=evolve,
    log_lines=log_lines,
)
