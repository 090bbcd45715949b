"""The router: selects the mode an exchange is answered in, by arithmetic on recorded signals.

Decides one ``router.mode_selected`` for every input that memory has recalled something for: RESPOND, CLARIFY,
ACKNOWLEDGE or IGNORE as terminal mode, or ACT first, and once the ACT loop has finished a second one without ACT.
Where the best two modes are closer than the margin and the setting ``tiebreak`` is ``llm``, a model is asked first; its
failure, or an answer outside the two, leaves it to the higher score. No model takes part otherwise.

Consumes ``input.received`` (the text), ``appraisal.completed`` (what the text is as a turn of talk),
``memory.recalled`` (the go-ahead, and how familiar the ground is),
``llm.completed`` and ``llm.failed`` (a tie-break's answer), ``act.finished`` and ``response.emitted`` (what was
answered, which the session's next input may speak well or ill of: ``router.feedback_observed``), ``feedback.given``
(an application does so in so many words), ``regulator.adjusted`` and ``.reverted`` (what is added to the agent's
weights from there on), ``.scheduled`` and ``.cycle_completed`` (which agents are still heard of, and what was added to
one that was dropped).

Source: the deterministic mode router of the cognitive architecture document, with its contradictions settled as the
design's page on subsystems says. ``signals`` reads texts, ``scoring`` holds the formula, ``settings`` its numbers,
``selection`` puts them together, ``tiebreak`` asks the model, ``feedback`` judges a choice by what was said next,
``regulator_offsets`` holds what the regulator adds to the weights, ``log_lines`` writes the log lines, ``decider``
keeps the state.
"""

from actors.router.decider import State, decide, evolve, initial
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
    initial=initial,
    decide=decide,
    evolve=evolve,
    log_lines=log_lines,
)

__all__ = ["ACTOR"]
