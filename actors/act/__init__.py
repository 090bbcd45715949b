"""The ACT loop: gathers information before an exchange is answered, then returns it to the router.

It begins where ``router.mode_selected`` leaves the terminal mode open. Each iteration plans actions, requests their
results from memory (``act.actions_requested``) and from external specialists (``act.delegation_requested``), and ends
as ``act.iterated``. The next iteration is planned with these results. The loop ends as ``act.finished``, for one of
three reasons:

==================  =================================================
termination         when
==================  =================================================
``plan_empty``      the planner has nothing more to do
``timeout``         the loop has run for all its time
``max_iterations``  it had ``max_iterations`` iterations
==================  =================================================

There are two planners: rules (``offline``: recall the question, associate on what was found, stop), or a language model
(``llm``). If a model's plan cannot be read, the iteration has no result (``malformed_plan``), and the model is asked
again. If the model fails (``plan_failed``), it is not asked again, and the rules take over.

Guards read what a model plans and what a specialist answers, before it is acted on, remembered or put into a prompt.
Reflex reads a plan (``plan_withheld``: an iteration without result). Reflex and intuition read an answer (``withheld``:
the action failed).

Time is the log's. An action that is answered after its skill's budget fails; the others count. An action that is not
answered at all is given up when the clock fires (``wake_after_ms`` of every request, which ``act.finished`` cancels).
If the exchange ends otherwise, by its deadline, its loop ends with it.

Source: the ACT loop and the innate skills of the cognitive architecture document. ``loop`` holds the steps of one loop,
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
