"""The ACT loop: gathering information before an answer, in iterations of a few actions each. Owner: ``act``.

``wake_after_ms`` is the time until the earliest of a session's loops times out; 0 once the last one has ended.
"""

from functools import partial
from typing import Literal

import msgspec

from schemas.actor import Scope
from schemas.effectors.model_calls import ChatMessage, ModelCall
from schemas.entry import Entry, own_entries, own_events
from schemas.event import Event, Milliseconds, Personal, Wake
from schemas.vocabulary.memory import SAMPLE_RECOLLECTION, Count, Recollection, Skill

Planner = Literal["llm", "offline"]
"""What chooses an iteration's actions: a language model, or rules (``offline``)."""

Termination = Literal["plan_empty", "timeout", "max_iterations"]
"""Why an ACT loop ended."""


class Action(msgspec.Struct, frozen=True, kw_only=True):
    """One action of a plan; ``query`` is what to recall, associate or ask, ``key`` and ``value`` what to memorize.

    ``specialist`` names the outside service that is asked, where the skill is ``delegate``.
    """

    index: Count
    skill: Skill
    query: Personal = ""
    key: Personal = ""
    value: Personal = ""
    specialist: str = ""


class ActPlanRequested(Event, frozen=True, kw_only=True, tag="forged_id.act.plan_requested"):
    """A model is asked for the next iteration's actions."""

    iteration: Count
    call: ModelCall
    wake_after_ms: Wake = 0


class ActActionsRequested(Event, frozen=True, kw_only=True, tag="forged_id.act.actions_requested"):
    """An iteration asks memory for the results of these actions."""

    iteration: Count
    actions: tuple[Action, ...]
    wake_after_ms: Wake = 0


class ActDelegationRequested(Event, frozen=True, kw_only=True, tag="forged_id.act.delegation_requested"):
    """An iteration asks an outside specialist; the answer is ``delegate.answered`` or ``delegate.failed``."""

    iteration: Count
    action: Action
    timeout_ms: Milliseconds
    wake_after_ms: Wake = 0


class ActTimedOut(Event, frozen=True, kw_only=True, tag="forged_id.act.timed_out"):
    """Time ran out: for what an iteration waits for (``iteration``), or for the whole loop (``loop``)."""

    iteration: Count
    what: Literal["iteration", "loop"]


class Performed(msgspec.Struct, frozen=True, kw_only=True):
    """An action and its result; ``found`` counts the memories that it found."""

    action: Action
    ok: bool
    reason: str = ""
    found: Count = 0


class ActIterated(Event, frozen=True, kw_only=True, tag="forged_id.act.iterated"):
    """One iteration is over. ``elapsed_ms`` is the loop's time so far, by the log's timestamps.

    ``productive``: one of its actions recalled a memory or added one. ``reason`` is empty then, else why the iteration
    was unproductive (``malformed_plan``, ``plan_failed``, ``nothing_found``).
    """

    iteration: Count
    planner: Planner
    performed: tuple[Performed, ...]
    productive: bool
    elapsed_ms: Count
    reason: str = ""


class ActFinished(Event, frozen=True, kw_only=True, tag="forged_id.act.finished"):
    """The loop is over, and the router chooses again without ACT; ``findings`` are sorted, the strongest first.

    ``iterations`` is how many there were; ``productive``: at least one of them was.
    """

    termination: Termination
    iterations: Count
    productive: bool
    elapsed_ms: Count
    findings: tuple[Recollection, ...]
    wake_after_ms: Wake = 0


ActConfigured, ActFailed = own_events("act")


SAMPLE_CALL = ModelCall(
    purpose="act",
    messages=(
        ChatMessage(role="system", content="Plan what to look up."),
        ChatMessage(role="user", content="Who am I?"),
    ),
)
_RECALL = Action(index=0, skill="recall", query="Who am I?")

_entry = partial(Entry, owner="act", scope=Scope.SESSION)

ENTRIES = (
    _entry(
        meaning="A language model is asked for the actions of an ACT iteration.",
        asks="llm",
        sample=ActPlanRequested(iteration=0, call=SAMPLE_CALL),
    ),
    _entry(
        meaning="An ACT iteration asks memory to perform its actions.",
        sample=ActActionsRequested(iteration=0, actions=(_RECALL,)),
    ),
    _entry(
        meaning="An ACT iteration asks an outside specialist.",
        asks="delegate",
        sample=ActDelegationRequested(
            iteration=0,
            action=Action(index=0, skill="delegate", query="What is 7 times 6?", specialist="calculator"),
            timeout_ms=5_000,
        ),
    ),
    _entry(
        meaning="An iteration's actions, or the whole ACT loop, ran out of time.",
        sample=ActTimedOut(iteration=0, what="iteration"),
    ),
    _entry(
        meaning="An ACT iteration is over: what was done, what it found, how long the loop has run.",
        sample=ActIterated(
            iteration=0,
            planner="offline",
            performed=(Performed(action=_RECALL, ok=True, found=1),),
            productive=True,
            elapsed_ms=12,
        ),
    ),
    _entry(
        meaning="The ACT loop is over; the router chooses a terminal mode.",
        sample=ActFinished(
            termination="plan_empty", iterations=1, productive=True, elapsed_ms=12, findings=(SAMPLE_RECOLLECTION,)
        ),
    ),
    *own_entries(
        ActConfigured,
        ActFailed,
        owner="act",
        scope=Scope.SESSION,
        then="its exchange ends as FAILED",
        failed_topic="forged_id.router.mode_selected",
    ),
)
