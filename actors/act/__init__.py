"""The ACT loop: gathers information before an exchange is answered, then hands it back to the router.

Begins where ``router.mode_selected`` leaves the terminal mode open. Each iteration plans actions, asks memory
(``act.actions_requested``) and outside specialists (``act.delegation_requested``) for their results, and ends as
``act.iterated``; with its results in mind the next is planned. The loop ends as ``act.finished``, for one of three
reasons:

==================  =================================================
termination         when
==================  =================================================
``plan_empty``      the planner has nothing more to do
``timeout``         the loop has run for all its time
``max_iterations``  it had ``max_iterations`` iterations
==================  =================================================

Two planners: by rule (``offline``: recall the question, associate on what was found, stop), or a language model
(``llm``). A model's plan that cannot be read is an iteration that gained nothing (``malformed_plan``), and the model is
asked again; a model that fails (``plan_failed``) is not, and the rule takes over.

What a model plans and a specialist answers is read by guards before it is acted on, remembered or put into a prompt: a
plan by reflex (``plan_withheld``: an iteration that gained nothing), an answer by reflex and intuition (``withheld``:
that action failed).

Time is the log's. An action that is answered after its skill's budget fails, the others count; what is not answered at
all is given up when the clock fires (``wake_after_ms`` of every request, which ``act.finished`` cancels). An exchange
that ends otherwise, by its deadline, takes its loop with it.

Source: the ACT loop and the innate skills of the cognitive architecture document. ``loop`` holds one loop's steps,
``planning`` plans, prompt and schema, ``decider`` the partition's state, ``log_lines`` the log lines.
"""

from actors.act.decider import State, decide, evolve
from actors.act.log_lines import log_lines
from actors.act.settings import ActSettings
from schemas.actor import Actor, Scope
from schemas.vocabulary.arbiter import ArbiterEscalated
from schemas.vocabulary.clock import ClockFired
from schemas.vocabulary.delegate import DelegateAnswered, DelegateFailed
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.intuition import IntuitionResultPassed, IntuitionResultRejected
from schemas.vocabulary.llm import LlmCompleted, LlmFailed
from schemas.vocabulary.memory import MemoryActionsAnswered
from schemas.vocabulary.reflex import ReflexAnswerBlocked, ReflexAnswerPassed
from schemas.vocabulary.responder import ResponseEmitted
from schemas.vocabulary.router import ModeSelected

ACTOR: Actor[State] = Actor(
    name="act",
    scope=Scope.SESSION,
    consumes=(
        InputReceived,
        ArbiterEscalated,
        ModeSelected,
        LlmCompleted,
        LlmFailed,
        MemoryActionsAnswered,
        DelegateAnswered,
        DelegateFailed,
        ReflexAnswerPassed,
        ReflexAnswerBlocked,
        IntuitionResultPassed,
        IntuitionResultRejected,
        ClockFired,
        ResponseEmitted,
    ),
    state_type=State,
    settings_type=ActSettings,
    initial=State,
    decide=decide,
    evolve=evolve,
    log_lines=log_lines,
)

__all__ = ["ACTOR"]
