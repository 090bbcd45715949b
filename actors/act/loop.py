"""One ACT loop as an immutable value, and its steps. Pure.

It gathers information, from memory and specialists (external services that answer questions), before an exchange is
answered.
"""

import msgspec

from actors.act.settings import ActSettings
from actors.contract.answers.credentials import masked
from schemas.event import Event
from schemas.identity import without_defaults
from schemas.vocabulary.act import Action, ActIterated, Performed, Planner
from schemas.vocabulary.delegate import DelegateAnswered
from schemas.vocabulary.intuition import IntuitionResultPassed
from schemas.vocabulary.llm import LlmCompleted
from schemas.vocabulary.memory import ActionResult, Recollection
from schemas.vocabulary.reflex import ReflexAnswerPassed

TIMED_OUT = "timed_out"
UNANSWERED = "unanswered"
WITHHELD = "withheld"
"""Reasons of this actor for a failed action: over its time budget, missing in memory's answer, blocked by a guard."""

GRACE_MS = 1_000
"""How much longer than its limit an effector is waited for: its own failure says more than a timeout does."""

_NS_PER_MS = 1_000_000
_CHARACTERS_PER_TOKEN = 4
"""An estimate for English text."""


class Outcome(msgspec.Struct, frozen=True):
    """The result of an action, and the memories that it recalled.

    ``told`` is what an introspection gave, as JSON: how much memory knows, in numbers.
    """

    performed: Performed
    found: tuple[Recollection, ...] = ()
    told: str = ""


GUARDS = ("reflex", "intuition")
"""The guards that read a specialist's answer before it becomes a finding."""


class Asked(msgspec.Struct, frozen=True):
    """A plan that a model was asked for at ``since_ns``, by the event with the id ``request``.

    ``plan`` is the model's plan, from the event with the id ``source``, while reflex checks it.
    """

    request: str
    since_ns: int
    plan: LlmCompleted | None = None
    source: str = ""


class UncheckedAnswer(msgspec.Struct, frozen=True):
    """A specialist's answer, from the event with the id ``source``; the guards in ``waits`` have not checked it yet."""

    source: str
    answer: DelegateAnswered
    waits: tuple[str, ...] = GUARDS


class RunningIteration(msgspec.Struct, frozen=True):
    """The actions of an iteration, who was asked for them, and the outcomes so far.

    ``request`` is the id of the request to memory. ``delegations`` are the questions to specialists: the index of the
    action, and the id of the request. ``unread`` are answers of specialists that guards are checking.
    """

    since_ns: int
    actions: tuple[Action, ...] = ()
    request: str = ""
    delegations: tuple[tuple[int, str], ...] = ()
    outcomes: tuple[Outcome, ...] = ()
    unread: tuple[UncheckedAnswer, ...] = ()


class Step(msgspec.Struct, frozen=True):
    """A finished iteration; ``reason`` says why it had no result, and is empty if it had one."""

    planner: Planner
    outcomes: tuple[Outcome, ...]
    reason: str


class Loop(msgspec.Struct, frozen=True, kw_only=True):
    """A running loop.

    It started at ``started_ns`` and ends at ``due_ns`` at the latest (Unix nanoseconds). ``steps`` are its finished
    iterations, ``findings`` what they found, the strongest first; ``productive``: one of them helped the answer. It
    waits for a plan (``asked``) or for the results of an iteration (``underway``).
    """

    started_ns: int
    due_ns: int
    planner: Planner
    steps: tuple[Step, ...] = ()
    findings: tuple[Recollection, ...] = ()
    productive: bool = False
    asked: Asked | None = None
    underway: RunningIteration | None = None

    @property
    def iteration(self) -> int:
        """The number of the current or next iteration, from 0."""
        return len(self.steps)


def elapsed_ms(loop: Loop, now_ns: int) -> int:
    """Return how long a loop has been running, by the log's timestamps."""
    return max(0, now_ns - loop.started_ns) // _NS_PER_MS


def new_loop(now_ns: int, deadline_ns: int, settings: ActSettings) -> Loop:
    """Return a loop that begins now, in an exchange that must end by ``deadline_ns``."""
    left_ms = max(0, deadline_ns - now_ns) // _NS_PER_MS
    answering_ms = min(settings.answering_ms, left_ms - int(left_ms * settings.deadline_share))
    most_ms = min(settings.timeout_ms, left_ms - answering_ms)
    return Loop(started_ns=now_ns, due_ns=now_ns + most_ms * _NS_PER_MS, planner=settings.planner)


def due_ns(loop: Loop, settings: ActSettings) -> int:
    """Return when a loop has waited too long: for a plan, for its slowest open action, or in total."""
    due = loop.due_ns
    if loop.asked is not None:
        due = min(due, loop.asked.since_ns + (settings.plan_timeout_ms + GRACE_MS) * _NS_PER_MS)
    if loop.underway is not None:
        slowest = max((_longest_wait_ms(action, settings) for action in open_actions(loop.underway)), default=0)
        due = min(due, loop.underway.since_ns + slowest * _NS_PER_MS)
    return due


def _longest_wait_ms(action: Action, settings: ActSettings) -> int:
    return settings.budget_ms(action.skill) + (GRACE_MS if action.skill == "delegate" else 0)


def open_actions(underway: RunningIteration) -> tuple[Action, ...]:
    """Return the actions of an iteration that have no outcome yet."""
    performed = {outcome.performed.action.index for outcome in underway.outcomes}
    return tuple(action for action in underway.actions if action.index not in performed)


def begin_actions(loop: Loop, actions: tuple[Action, ...], request: str, now_ns: int) -> Loop:
    """Return the loop after memory was asked for actions; ``request`` is the id of the event that asks."""
    underway = loop.underway or RunningIteration(now_ns)
    underway = msgspec.structs.replace(underway, actions=(*underway.actions, *actions), request=request)
    return msgspec.structs.replace(loop, asked=None, underway=underway)


def begin_delegation(loop: Loop, action: Action, request: str, now_ns: int) -> Loop:
    """Return the loop after a specialist was asked for an action; ``request`` is the id of the event that asks."""
    underway = loop.underway or RunningIteration(now_ns)
    underway = msgspec.structs.replace(
        underway, actions=(*underway.actions, action), delegations=(*underway.delegations, (action.index, request))
    )
    return msgspec.structs.replace(loop, asked=None, underway=underway)


def with_memory_results(loop: Loop, results: tuple[ActionResult, ...], now_ns: int, settings: ActSettings) -> Loop:
    """Return the loop with memory's results.

    A result that exceeds its action's budget counts as failed, except for what was put into memory: it is there, late
    or not.
    """
    if loop.underway is None:
        return loop
    by_index = {result.index: result for result in results}
    waited_ms = max(0, now_ns - loop.underway.since_ns) // _NS_PER_MS
    outcomes = tuple(
        _outcome(action, by_index.get(action.index), late=_is_late(action, waited_ms, settings))
        for action in open_actions(loop.underway)
        if action.skill != "delegate"
    )
    return _with_outcomes(loop, outcomes)


def _is_late(action: Action, waited_ms: int, settings: ActSettings) -> bool:
    return action.skill != "memorize" and waited_ms > settings.budget_ms(action.skill)


def with_plan(loop: Loop, plan: LlmCompleted, source: str) -> Loop:
    """Return the loop with a model's plan, which reflex must check first; ``source`` is the id of its event."""
    if loop.asked is None or loop.asked.plan is not None:
        return loop
    return msgspec.structs.replace(loop, asked=msgspec.structs.replace(loop.asked, plan=plan, source=source))


def with_unchecked_answer(loop: Loop, answer: DelegateAnswered, source: str) -> Loop:
    """Return the loop with a specialist's answer, for the guards to check first; ``source`` is the id of its event."""
    underway = loop.underway
    if underway is None or any(each.answer.request == answer.request for each in underway.unread):
        return loop
    unread = (*underway.unread, UncheckedAnswer(source, answer))
    return msgspec.structs.replace(loop, underway=msgspec.structs.replace(underway, unread=unread))


def with_guard_verdict(loop: Loop, unchecked: UncheckedAnswer, guard: str, verdict: Event) -> Loop:
    """Return the loop after a guard has checked a specialist's answer, which counts once all guards have passed it."""
    assert loop.underway is not None, "only an iteration under way has answers that are checked"
    others = tuple(each for each in loop.underway.unread if each is not unchecked)
    waits = tuple(each for each in unchecked.waits if each != guard)
    answer, remaining = unchecked.answer, tuple[UncheckedAnswer, ...]()
    if isinstance(verdict, ReflexAnswerPassed) and verdict.masked:
        spans = tuple((each.kind, *each.span) for each in verdict.secrets)
        answer = msgspec.structs.replace(answer, answer=masked(answer.answer, spans))
    passed = isinstance(verdict, ReflexAnswerPassed | IntuitionResultPassed)
    if passed and waits:
        remaining = (UncheckedAnswer(unchecked.source, answer, waits),)
    underway = msgspec.structs.replace(loop.underway, unread=(*others, *remaining))
    after = msgspec.structs.replace(loop, underway=underway)
    return after if remaining else with_delegate_answer(after, answer.index, answer if passed else WITHHELD)


def with_delegate_answer(loop: Loop, index: int, answer: DelegateAnswered | str) -> Loop:
    """Return the loop with a specialist's answer to an action, or with the reason why there is none."""
    action = next((each for each in loop.underway.actions if each.index == index), None) if loop.underway else None
    if action is None:
        return loop
    if isinstance(answer, str):
        return _with_outcomes(loop, (Outcome(Performed(action=action, ok=False, reason=answer)),))
    found = _answer_found(answer)
    return _with_outcomes(loop, (Outcome(Performed(action=action, ok=True, found=1), (found,)),))


def with_open_actions_failed(loop: Loop) -> Loop:
    """Return the loop with every open action failed for lack of time."""
    if loop.underway is None:
        return loop
    failed = (Performed(action=action, ok=False, reason=TIMED_OUT) for action in open_actions(loop.underway))
    return _with_outcomes(loop, tuple(map(Outcome, failed)))


def with_iteration(loop: Loop, event: ActIterated, settings: ActSettings) -> Loop:
    """Return the loop after the iteration that ``event`` records."""
    outcomes = loop.underway.outcomes if loop.underway is not None else ()
    found = [each for outcome in outcomes for each in outcome.found]
    return Loop(
        started_ns=loop.started_ns,
        due_ns=loop.due_ns,
        planner="offline" if event.reason == "plan_failed" else loop.planner,
        steps=(*loop.steps, Step(event.planner, outcomes, event.reason)),
        findings=_strongest((*loop.findings, *found), settings.most_findings),
        productive=loop.productive or event.productive,
    )


def is_productive(outcome: Outcome) -> bool:
    """Whether an action helped the answer: it recalled a memory, or added one."""
    performed = outcome.performed
    return performed.ok and (performed.found > 0 or performed.action.skill == "memorize")


def _with_outcomes(loop: Loop, outcomes: tuple[Outcome, ...]) -> Loop:
    assert loop.underway is not None, "only an iteration under way has outcomes"
    underway = msgspec.structs.replace(loop.underway, outcomes=(*loop.underway.outcomes, *outcomes))
    return msgspec.structs.replace(loop, underway=underway)


def _outcome(action: Action, result: ActionResult | None, *, late: bool) -> Outcome:
    if late or result is None:
        return Outcome(Performed(action=action, ok=False, reason=TIMED_OUT if late else UNANSWERED))
    if not result.ok:
        return Outcome(Performed(action=action, ok=False, reason=result.reason))
    performed = Performed(action=action, ok=True, found=len(result.recollections))
    known = result.introspection
    introspection = "" if known is None else msgspec.json.encode(without_defaults(known)).decode()
    return Outcome(performed, result.recollections, introspection)


def _answer_found(answer: DelegateAnswered) -> Recollection:
    # Memory does not keep a specialist's answer: it lasts for this exchange, and only the answer to the person that is
    # made from it is remembered. The layer ``gist`` (a summary of an exchange) is the nearest to it.
    tokens = 1 + len(answer.answer) // _CHARACTERS_PER_TOKEN
    text = f"{answer.specialist}: {answer.answer}"
    # The energy of a memory says how strongly it is recalled, from 0 to 1.
    return Recollection(id=f"delegate:{answer.request}", layer="gist", text=text, energy=1.0, tokens=tokens)


def _strongest(memories: tuple[Recollection, ...], most: int) -> tuple[Recollection, ...]:
    by_id: dict[str, Recollection] = {}
    for each in memories:
        known = by_id.get(each.id)
        if known is None or each.energy > known.energy:
            by_id[each.id] = each
    # Statements of people come before echoes of the agent's own answers, as in every recall.
    return tuple(sorted(by_id.values(), key=lambda each: (each.echo, -each.energy, each.id))[:most])
