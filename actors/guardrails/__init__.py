"""Guardrails: a loop of thought that is done, does it run again? (source G, reflection guardrails)

A *loop* is one pass of a deliberation, and its *family* that pass and its reruns (``loop_001``, ``loop_001_r1``,
``loop_001_r2``): a family is found by stripping exactly one ending ``_r<digits>``. A loop comes from an orchestrator
outside (``loop.completed``, with its critics' scores), or is an answer that a model wrote here, named by its exchange
(``appraisal.answer_appraised``). One event decides it, with all that is known in its trace:

==============================  ======================================  =============================================
what speaks                     reason                                  decision
==============================  ======================================  =============================================
reruns at their limit           ``max_reruns_reached``                  ``guardrails.force_finalized``
a bias in too many families     ``bias_echo_detected``                  ``guardrails.force_finalized``
a tired family                  ``fatigue_threshold_exceeded``          ``guardrails.force_finalized``
alignment below its threshold   ``alignment_threshold_not_met``         ``guardrails.rerun_ordered``
drift above its threshold       ``drift_threshold_exceeded``            ``guardrails.rerun_ordered``
an invalid summary              ``summary_invalid``                     ``guardrails.rerun_ordered``
(critics who contradict)        (``critics_conflict``, never first)
a score is missing              ``no_reflection_result``                ``guardrails.finalized``
nothing                         ``no_issues_detected``                  ``guardrails.finalized``
==============================  ======================================  =============================================

In this order; what speaks first names the reason, all of it is kept. A limit ends a family whatever its scores. An
override lifts the rerun limit or fatigue, never a bias echo, for a family and for a time; one given with a completion
adds to those in force, one of ``loop.overridden`` replaces them. A loop that was judged is not judged again
(``guardrails.repeated``), unless a limit ended its family with it and somebody has lifted that limit since. A loop may
name its family's own limit of reruns. Reruns of one deliberation count once for a bias, and a loop that a bias has
halted does not count for it: an echo ends with the window of what began it. A loop that is not done, and an override of
a family that is not known, are ``guardrails.refused``. A family's best-scored loop (alignment minus drift, the earlier
of equals) is its result.

With the source's numbers three reruns come to a fatigue of 0.45, below 0.5: fatigue ends a family only where the rerun
limit was raised or lifted.

**Live.** An answer is scored by appraisal's numbers (``critic = "features"``), by a model that is asked as the
pessimist (``llm``; where it fails, or answers something else, by appraisal's numbers, and ``source`` says so), or by
nobody (``off``: the first answer stands). A loop outside that brings its question and answer, and not both scores, is
scored likewise (``loop_critic``), by a model where one is attached; the senses are asked by
``guardrails.appraisal_requested``, in a session of the family's own. What follows from a decision is the responder's.

**One partition.** The design puts loop families in the session's scope and the history of biases in the agent's. A
partition is one single writer of one scope; so both are here, in the agent's, and an agent's loops are decided in the
order of the log, those of all its sessions.

``family``  names of loops, and what is kept of a family    ``bias``     an agent's biases within the window
``judging`` the decision on a loop                          ``critic``   what a model is asked, and its answer
``live``    what is kept while a model is asked             ``outside``  loops outside that wait for their critic
``state``   what a partition keeps, and its overrides      ``telling``  log lines
"""

from actors.guardrails.decider import decide, evolve
from actors.guardrails.settings import GuardrailsSettings
from actors.guardrails.state import State
from actors.guardrails.telling import tell
from schemas.actor import Actor, Scope
from schemas.vocabulary.appraisal import AnswerAppraised
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.llm import LlmCompleted, LlmFailed
from schemas.vocabulary.loops import LoopCompleted, LoopOverridden
from schemas.vocabulary.responder import ResponseEmitted

ACTOR: Actor[State] = Actor(
    name="guardrails",
    scope=Scope.AGENT,
    consumes=(
        LoopCompleted,
        LoopOverridden,
        InputReceived,
        AnswerAppraised,
        LlmCompleted,
        LlmFailed,
        ResponseEmitted,
    ),
    state_type=State,
    settings_type=GuardrailsSettings,
    initial=State,
    decide=decide,
    evolve=evolve,
    log_lines=tell,
)

__all__ = ["ACTOR"]
