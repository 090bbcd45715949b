"""The sources of an answer (memory, ACT loop, models, specialists), as lines for people. Pure.

A specialist is a service outside that an ACT loop asks. A gist is an earlier exchange in one line. Warmth is how much
is known around an exchange, salience how well it will be remembered, and the feeling of knowing the best similarity of
anything remembered to the question. ``docs/decisions-explained.md`` explains every number.
"""

from collections.abc import Iterable, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from deploy.cli.rendering.layout.counted_nouns import counted
from deploy.cli.rendering.layout.printable import printable
from deploy.cli.rendering.layout.quoting import quoted_line
from deploy.cli.rendering.model_calls import call_text, cuts_text
from deploy.cli.rendering.reason_texts import ENDINGS, RETIRED
from deploy.cli.rendering.why.lines import Lines, failure, lines_on
from schemas.vocabulary.act import (
    ActActionsRequested,
    ActDelegationRequested,
    ActFinished,
    Action,
    ActIterated,
    ActPlanRequested,
    ActTimedOut,
    Performed,
)
from schemas.vocabulary.delegate import DelegateAnswered
from schemas.vocabulary.llm import LlmCompleted, LlmFailed
from schemas.vocabulary.memory import (
    ActionResult,
    Fact,
    FactsRetired,
    Familiarity,
    MemoryActionsAnswered,
    MemoryForgotten,
    MemoryRecalled,
    MemoryRemembered,
    Recollection,
    Retired,
    TurnsForgotten,
)
from schemas.vocabulary.responder import Entity, ResponseRequested
from schemas.vocabulary.router import FeedbackObserved, TiebreakRequested

MAX_MEMORY_CHARACTERS = 120
"""Most characters shown of a memory."""


def entities(used: Sequence[Entity]) -> Lines:
    """Return the memories that were used for an answer, if any.

    The energy, in [0, 1], says how strongly one was recalled; the share is that of the context's tokens.
    """
    if not used:
        return []
    grid = Table(box=None, pad_edge=False, header_style="dim")
    grid.add_column("memory")
    for heading in ("energy", "tokens", "share"):
        grid.add_column(heading, justify="right")
    for each in used:
        grid.add_row(printable(each.id), f"{each.energy:.3f}", str(each.tokens), f"{each.share:.3f}")
    return [grid]


@lines_on.register
def _recalled(event: MemoryRecalled) -> Lines:
    lines = [Text("it tells: ").append_text(line) for line in _facts(event.told)]
    gone = [Text("it takes back: ").append_text(_retired(each)) for each in event.retired]
    return [_familiarity(event.familiarity), *_recollections(event.recollections), *lines, *gone]


def _familiarity(known: Familiarity) -> Text:
    line = Text(f"warmth {known.context_warmth:g}: {known.working_memory_turns} turns, {known.gist_count} gists, ")
    line.append(f"{counted(known.fact_count, 'fact')}; topic {printable(known.conversation_topic)}")
    line.append(f"{' (new)' if known.is_new_topic else ''}, confidence {known.topic_confidence:g}; ")
    return line.append(f"exchange {known.session_exchange_count + 1} of the session")


def _recollections(memories: Iterable[Recollection]) -> Lines:
    lines = [
        Text(
            f"{each.energy:.3f} {each.layer} {printable(each.id)}: {quoted_line(each.text, MAX_MEMORY_CHARACTERS)}",
            "dim",
        )
        for each in memories
    ]
    return lines or [Text("nothing came to mind", "dim")]


@lines_on.register
def _remembered(event: MemoryRemembered) -> Lines:
    line = Text(f"salience {event.salience:g}, topic {printable(event.conversation_topic)}: ")
    line.append(quoted_line(event.gist), "italic")
    lines: list[RenderableType] = [line, *_facts(event.facts)]
    concepts = printable(", ".join(event.concepts))
    return [*lines, Text(f"concepts {concepts}", "dim")] if concepts else lines


def _facts(facts: Iterable[Fact]) -> list[Text]:
    return [Text(f"fact {quoted_line(fact.key)}: {quoted_line(fact.value, MAX_MEMORY_CHARACTERS)}") for fact in facts]


@lines_on.register
def _facts_retired(event: FactsRetired) -> Lines:
    return [_retired(each) for each in event.retired]


def _retired(fact: Retired) -> Text:
    line = Text(f"fact {quoted_line(fact.key)} no more {quoted_line(fact.value, MAX_MEMORY_CHARACTERS)}: ", "yellow")
    return line.append(f"{fact.why}, {RETIRED[fact.why]} (fact:{fact.fact})")


@lines_on.register
def _actions_answered(event: MemoryActionsAnswered) -> Lines:
    lines: list[RenderableType] = []
    for result in event.results:
        lines += [_result(result), *(_recollections(result.recollections) if result.recollections else ())]
    return [*lines, *_facts(event.stored)]


def _result(result: ActionResult) -> Text:
    if not result.ok:
        return Text(f"{result.index} {result.skill} failed: {printable(result.reason)}", "yellow")
    line = Text(f"{result.index} {result.skill}: {len(result.recollections)} found")
    introspection = result.introspection
    if introspection is not None:
        line.append(
            f"; warmth {introspection.context_warmth:g}, feeling of knowing {introspection.feeling_of_knowing:g}"
        )
        line.append(f", recall failure rate {introspection.recall_failure_rate:g}")
    return line


@lines_on.register
def _forgotten(event: MemoryForgotten) -> Lines:
    what = f"fact {quoted_line(event.key)}" if event.what == "fact" else "the session"
    return [Text(f"{what}: memories dropped: {event.count}, by {quoted_line(event.by)}: {quoted_line(event.why)}")]


@lines_on.register
def _turns_forgotten(event: TurnsForgotten) -> Lines:
    return [Text(f"words of a forgotten fact are quoted no more in {len(event.sessions)} session(s)")]


@lines_on.register
def _plan_requested(event: ActPlanRequested) -> Lines:
    return [Text(f"iteration {event.iteration}, {call_text(event.call)}")]


@lines_on.register
def _actions_requested(event: ActActionsRequested) -> Lines:
    return [Text(f"iteration {event.iteration}"), *(Text(_action(action)) for action in event.actions)]


@lines_on.register
def _delegation_requested(event: ActDelegationRequested) -> Lines:
    line = f"iteration {event.iteration}: {_action(event.action)}, within {event.timeout_ms / 1000:g} s"
    return [Text(line)]


@lines_on.register
def _timed_out(event: ActTimedOut) -> Lines:
    return [Text(f"time ran out for the {event.what}, in iteration {event.iteration}", "yellow")]


@lines_on.register
def _iterated(event: ActIterated) -> Lines:
    productive = "productive" if event.productive else f"unproductive: {printable(event.reason)}"
    line = Text(f"iteration {event.iteration}, {event.planner} plan, {productive}, {event.elapsed_ms} ms so far")
    return [line, *(_performed(each) for each in event.performed)]


def _performed(performed: Performed) -> Text:
    if performed.ok:
        return Text(f"{_action(performed.action)}: {performed.found} found")
    return Text(f"{_action(performed.action)}: failed, {printable(performed.reason)}", "yellow")


@lines_on.register
def _finished(event: ActFinished) -> Lines:
    productive = "productive" if event.productive else "unproductive"
    line = Text(f"{event.termination} after {event.iterations} iterations and {event.elapsed_ms} ms, {productive}")
    return [line, *_recollections(event.findings)]


def _action(action: Action) -> str:
    words = [quoted_line(action.query, MAX_MEMORY_CHARACTERS)] if action.query else []
    words += [f"{quoted_line(action.key)} = {quoted_line(action.value, MAX_MEMORY_CHARACTERS)}"] if action.key else []
    words += [f"of {printable(action.specialist)}"] if action.specialist else []
    return " ".join([f"{action.index} {action.skill}", *words])


@lines_on.register
def _llm_completed(event: LlmCompleted) -> Lines:
    line = Text(f"{event.purpose} by {printable(event.model)} ({printable(event.backend)}): ")
    line.append(f"{event.prompt_tokens} + {event.completion_tokens} tokens, {event.attempts} attempts, ")
    line.append(f"ended by {printable(event.finish_reason) or 'nothing it names'}")
    lines = [f"not whole: {ENDINGS[event.ended]}"] if event.ended in ENDINGS else []
    lines += [f"the endpoint does not take all: {printable(', '.join(event.adapted))}"] if event.adapted else []
    lines += [cuts_text(event.cuts)] if event.cuts else []
    return [line, *(Text(each, "yellow") for each in lines), Text(quoted_line(event.text), "italic")]


@lines_on.register
def _llm_failed(event: LlmFailed) -> Lines:
    answer = [Text(f"the endpoint said: {quoted_line(event.said)}", "red")] if event.said else []
    return [*failure(event), *answer]


@lines_on.register
def _delegate_answered(event: DelegateAnswered) -> Lines:
    return [Text(f"{event.index} {printable(event.specialist)}: ").append(quoted_line(event.answer), "italic")]


@lines_on.register
def _tiebreak(event: TiebreakRequested) -> Lines:
    pair = " or ".join(f"{mode} ({event.scores.get(mode, 0.0):.3f})" for mode in event.candidates)
    line = Text(f"{pair}, margin {event.margin:g} below {event.effective_margin:g}")
    return [line, Text(call_text(event.call), "dim")]


@lines_on.register
def _feedback(event: FeedbackObserved) -> Lines:
    colour = "green" if event.feedback == "correct_route" else "yellow"
    line = Text().append(event.feedback, colour)
    return [line.append(f": {event.mode} of exchange {printable(event.of_exchange)}, signal {printable(event.signal)}")]


@lines_on.register
def _requested(event: ResponseRequested) -> Lines:
    prompts = ", ".join(f"{name} {digest}" for name, digest in event.prompts.items())
    loop = f"loop {printable(event.loop_id)}, to be judged" if event.loop_id else "not to be judged"
    again = f", run again for {printable(event.rerun_reason)}" if event.rerun_reason else ""
    return [
        Text().append(event.mode, "bold").append(f", {call_text(event.call)}"),
        Text(f"prompts {printable(prompts)}", "dim"),
        Text(f"{loop}{again}", "dim"),
        *entities(event.entities),
    ]
