"""The router: selects the mode an exchange is answered in, by arithmetic on recorded signals.

It decides one ``router.mode_selected`` for every input after memory's recall. The terminal mode says how to answer: in
substance (RESPOND), by asking back (CLARIFY), by a brief word (ACKNOWLEDGE), or not at all (IGNORE). Or ACT, which
looks things up, comes first, and after its loop a second decision without ACT. If the best two modes are closer than
the margin, and the setting ``tiebreak`` is ``llm``, a model is asked first. If the model fails, or names neither of the
two, the higher score decides. Apart from that no model takes part.

It consumes:

- ``input.received``: the text
- ``appraisal.completed``: the kind of turn that the text is
- ``memory.recalled``: how familiar the topic is; with it the router decides
- ``llm.completed`` and ``llm.failed``: the answer to a tie-break
- ``act.finished``: what an ACT loop (looking things up) has found
- ``response.emitted``: what was answered, since the session's next input may praise or criticise it
  (``router.feedback_observed``)
- ``feedback.given``: explicit feedback of an application
- ``operator.forget_ordered`` and ``memory.turns_forgotten``: sessions whose words are dropped
- ``regulator.adjusted`` and ``.reverted``: offsets to the agent's weights from there on
- ``regulator.scheduled`` and ``.cycle_completed``: which agents are still active, and the offsets of an agent that
  was dropped here

``signals`` reads texts, ``scoring`` holds the formula, ``settings`` its numbers, ``selection`` combines them,
``tiebreak`` asks the model, ``feedback`` judges a choice by the next input, ``regulator_offsets`` holds what the
regulator adds to the weights, ``log_lines`` writes the log lines, ``decider`` keeps the state.
"""

from actors.router.decider import State, decide, evolve
from actors.router.log_lines import log_lines
from actors.router.settings import RouterSettings
from schemas.actor import Actor, Scope
from schemas.vocabulary.act import ActFinished
from schemas.vocabulary.appraisal import AppraisalCompleted
from schemas.vocabulary.feedback import FeedbackGiven
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.llm import LlmCompleted, LlmFailed
from schemas.vocabulary.memory import MemoryRecalled, TurnsForgotten
from schemas.vocabulary.operator import ForgetOrdered
from schemas.vocabulary.regulator import Adjusted, CycleCompleted, RegulatorScheduled, Reverted
from schemas.vocabulary.responder import ResponseEmitted

ACTOR: Actor[State] = Actor(
    name="router",
    scope=Scope.SESSION,
    consumes=(
        InputReceived,
        AppraisalCompleted,
        MemoryRecalled,
        LlmCompleted,
        LlmFailed,
        ActFinished,
        ResponseEmitted,
        FeedbackGiven,
        ForgetOrdered,
        TurnsForgotten,
        Adjusted,
        Reverted,
        RegulatorScheduled,
        CycleCompleted,
    ),
    state_type=State,
    settings_type=RouterSettings,
    initial=State,
    decide=decide,
    evolve=evolve,
    log_lines=log_lines,
)
