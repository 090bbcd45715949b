"""Guardrails: decides whether a finished deliberation (a model's answer, say) is final or must run again.

A *loop* is one pass of a deliberation. Its *family* is that pass and its reruns (``loop_001``, ``loop_001_r1``,
``loop_001_r2``): the family's name is the loop's without exactly one ending ``_r<digits>``. Its scores are alignment
(how well the answer fits its question) and drift (how far it strays from it), both from 0 to 1. A loop comes from an
external orchestrator (``loop.completed``, with its critics' scores), or is an answer that a model wrote here
(``appraisal.answer_appraised``), with a name made of its exchange's. One event records the decision, with all its
numbers in a trace:

==============================  ======================================  =============================================
trigger                         reason                                  decision
==============================  ======================================  =============================================
reruns at their limit           ``max_reruns_reached``                  ``guardrails.force_finalized``
a bias in too many families     ``bias_echo_detected``                  ``guardrails.force_finalized``
fatigue at its threshold        ``fatigue_threshold_exceeded``          ``guardrails.force_finalized``
alignment below its threshold   ``alignment_threshold_not_met``         ``guardrails.rerun_ordered``
drift above its threshold       ``drift_threshold_exceeded``            ``guardrails.rerun_ordered``
an invalid summary              ``summary_invalid``                     ``guardrails.rerun_ordered``
critics contradict each other   ``critics_conflict`` (recorded, but     (as ``summary_invalid``, which always comes
                                never the first)                        with it)
none, as a score is missing     ``no_reflection_result``                ``guardrails.finalized``
none                            ``no_issues_detected``                  ``guardrails.finalized``
==============================  ======================================  =============================================

The triggers are checked in this order. The first one that applies is the reason; all that apply are recorded. *Summary*
is the API's word for the judgement as a whole, no text. It is valid if both scores pass thresholds of their own, and
the critics agree.

- A limit (reruns, bias, fatigue) ends a family whatever its scores. A loop may name its family's own limit of reruns.
- An override (a person's order) lifts the rerun limit or fatigue, for one family and for a time; it never lifts a bias
  echo. An override that comes with a completion adds to those in force; ``loop.overridden`` replaces them.
- A loop is judged once; a second completion is ``guardrails.repeated``. The exception: a limit ended the family with
  this loop, and somebody has lifted that limit since.
- A bias that shows in too many families within the window is an *echo*. The reruns of one deliberation count once, and
  a loop that was ended by the bias does not count. Otherwise each further attempt would prolong the echo.
- A loop that is not done, and an override of an unknown family, are ``guardrails.refused``.
- The result of a family is its best-scored loop (alignment minus drift, the earlier of equals).

Fatigue grows with each rerun that improves nothing. With the default settings, three reruns lead to a fatigue of 0.45,
below the limit of 0.5. So fatigue ends a family only if its rerun limit was raised or lifted.

**Answers of our own.** An answer is scored by appraisal's numbers (``critic = "features"``); by a model that is asked
as the pessimist (``llm``; if it fails or answers something else, by appraisal's numbers, and ``source`` says so); or
not at all (``off``: the first answer stands). An external loop that brings its question and answer, but not both
scores, is scored in the same way (``loop_critic``), by a model if one is attached. Appraisal is asked by
``guardrails.appraisal_requested``, in a session that belongs to the family. The responder acts on the decisions.

**Scope.** Loop families belong to a session, biases to an agent, and a partition has one scope. So both are kept by
agent, and the loops of all sessions of an agent are decided in the order of the log.

``loop_family``     names of loops, and what is kept of a family
``bias``            an agent's biases within the window
``loop_judging``    the decision on a loop
``critic``          what a model is asked, and its answer
``open_exchange``   what is kept while a model is asked
``external_loops``  external loops that wait for their critic
``state``           what a partition keeps, and its overrides
``log_lines``       log lines
"""

from actors.guardrails.decider import decide, evolve
from actors.guardrails.log_lines import log_lines
from actors.guardrails.settings import GuardrailsSettings
from actors.guardrails.state import State
from schemas.actor import Actor, Scope
from schemas.vocabulary.appraisal import AnswerAppraised
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.llm import LlmCompleted, LlmFailed
from schemas.vocabulary.loops import LoopCompleted, LoopOverridden
from schemas.vocabulary.responder import ResponseEmitted

ACTOR: Actor[State] = Actor(
    name="guardrails",
    scope=Scope.AGENT,
    consumes=(LoopCompleted, LoopOverridden, InputReceived, AnswerAppraised, LlmCompleted, LlmFailed, ResponseEmitted),
    state_type=State,
    settings_type=GuardrailsSettings,
    initial=State,
    decide=decide,
    evolve=evolve,
    log_lines=log_lines,
)
