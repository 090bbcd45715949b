"""The ACT loop: gathers information before an exchange is answered, then returns it to the router.

It begins when ``router.mode_selected`` names no terminal mode (a mode that ends the exchange). Each iteration plans
actions, requests their results from memory (``act.actions_requested``) and from external specialists
(``act.delegation_requested``), and ends with ``act.iterated``. The next iteration is planned with these results. The
loop ends with ``act.finished``, for one of three reasons:

==================  =================================================
termination         when
==================  =================================================
``plan_empty``      the planner plans no further action
``timeout``         the loop has used all its time
``max_iterations``  the loop has run ``max_iterations`` iterations
==================  =================================================

There are two planners: rules (``offline``: recall memories of the question, then concepts associated with these, then
stop), or a language model (``llm``). If a model's plan cannot be read, the iteration has no result
(``malformed_plan``), and the model is asked again. If the model fails (``plan_failed``), it is not asked again, and the
rules take over.

Guards check a model's plan and a specialist's answer before they are acted on, remembered or put into a prompt.
Reflex checks the plan; if it blocks it, the iteration has no result (``plan_withheld``). Reflex and intuition check the
answer; if one of them rejects it, the action has failed (``withheld``).

Time is measured by the log's timestamps. An action that is answered after its skill's time budget has failed; the
others count. An action without an answer is given up when the clock fires (the actor that fires timers; every request
sets one by ``wake_after_ms``, and ``act.finished`` cancels it). If the exchange ends first, by its deadline, its loop
ends with it.

``decider`` holds the partition's state, ``loop`` one loop and its steps, ``loop_messages`` which messages concern a
loop, ``planning`` the plans with their prompt and schema, ``log_lines`` the lines in the worker's log.
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
