"""An exchange that ended, as the command that asked shows it: the answer, and the decision in a few lines. Pure."""

from collections.abc import Iterable, Iterator, Sequence

import msgspec
from rich.text import Text

from deploy.cli.rendering.layout.printable import printable
from deploy.cli.rendering.layout.quoting import quoted_line
from deploy.cli.rendering.model_calls import cuts_text
from deploy.cli.rendering.reason_texts import LET_PASS
from deploy.cli.rendering.sentences import DETAIL_EVENTS, sentence_on
from schemas.effectors.model_calls import Cut
from schemas.event import Event
from schemas.vocabulary.act import ActFinished, ActIterated, Performed, Planner, Termination
from schemas.vocabulary.memory import Skill
from schemas.vocabulary.responder import ResponseEmitted
from schemas.vocabulary.router import Mode, ModeSelected

LONGEST_QUERY = 80
"""Most characters shown of what an action searched for."""


class Tiebreak(msgspec.Struct, frozen=True, kw_only=True):
    """Two modes with scores too close to decide: how close, whether a model was asked, and the outcome.

    ``margin`` is the distance of the two scores as a share of the higher one; they are too close where it is below
    ``effective_margin``. ``used``: a model was asked.
    """

    candidates: tuple[Mode, ...]
    margin: float
    effective_margin: float
    used: bool
    outcome: str


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """An action of an ACT iteration: what was searched for, and how much was found; ``reason`` if it failed."""

    skill: Skill
    query: str
    found: int
    reason: str = ""


class Iteration(msgspec.Struct, frozen=True, kw_only=True):
    """One iteration of an ACT loop; ``reason`` says why it failed, if it did. ``planner`` says who chose its steps."""

    iteration: int
    planner: Planner
    steps: tuple[Step, ...]
    elapsed_ms: int
    reason: str = ""


class ActLoop(msgspec.Struct, frozen=True, kw_only=True):
    """An ACT loop: what was looked up, step by step, before the answer. ``found`` counts what was found in all.

    ``termination`` says why it ended; None if it never finished.
    """

    iterations: tuple[Iteration, ...]
    termination: Termination | None = None
    found: int = 0


class Exchange(msgspec.Struct, frozen=True, kw_only=True):
    """An exchange that ended: the decision, and what ``ask`` prints as JSON.

    ``first_mode`` is the mode that the router chose first, ``mode`` that of the answer. ``confidence`` is the router's
    in its last choice of a mode, None if no mode was chosen. ``backend`` names what wrote the answer. ``memories``
    counts those that were used for it. ``finish_reason`` is how a model's answer ended, in OpenAI's words (empty if no
    model wrote it), and ``cuts`` are the parts of the prompt that were too long. ``latency_ms`` is the time from
    sending the input to receiving its end. ``sentence`` says in plain words how it ended and why. ``rerun_of`` is the
    exchange whose input was sent again, if it was.
    """

    exchange: str
    session: str
    agent: str
    stage: str
    action: str
    reason: str
    mode: str | None
    first_mode: str | None
    confidence: float | None
    response: str
    backend: str
    model: str
    memories: int
    finish_reason: str = ""
    cuts: tuple[Cut, ...] = ()
    tiebreak: Tiebreak | None
    act: ActLoop | None
    latency_ms: float
    sentence: str = ""
    rerun_of: str = ""


SHOWN_EVENTS = (*DETAIL_EVENTS, ActIterated, ActFinished)
"""Events of an exchange that are shown beside its answer."""


def exchange_of(
    exchange: str,
    agent: str,
    session: str,
    end: ResponseEmitted,
    events: Sequence[Event],
    latency_ms: float,
    rerun_of: str = "",
) -> Exchange:
    """Return an exchange from its end and, in stream order, its events that are shown (:data:`SHOWN_EVENTS`)."""
    choices = [event for event in events if isinstance(event, ModeSelected)]
    return Exchange(
        exchange=exchange,
        session=session,
        agent=agent,
        stage=end.stage,
        action=end.action,
        reason=end.reason,
        mode=end.mode,
        first_mode=end.first_mode,
        confidence=choices[-1].router_confidence if choices else None,
        response=end.response,
        backend=end.backend,
        model=end.model,
        memories=len(end.entities),
        finish_reason=end.finish_reason,
        cuts=end.cuts,
        tiebreak=_tiebreak(choices),
        act=_act_loop(events),
        latency_ms=latency_ms,
        sentence=sentence_on(end, events),
        rerun_of=rerun_of,
    )


def sentence_of(exchange: Exchange) -> Text:
    """Return the plain sentence about an exchange."""
    return Text(printable(exchange.sentence), "bold green" if exchange.action in LET_PASS else "bold red")


def lines_of(exchange: Exchange) -> Iterator[Text]:
    """Yield the lines below an answer: the decision and, if there were any, the tie-break and the ACT loop."""
    yield Text(printable(decision_line(exchange)), "green" if exchange.action in LET_PASS else "red")
    if exchange.tiebreak is not None:
        yield Text(printable(tiebreak_line(exchange.tiebreak)), "dim")
    if exchange.act is not None:
        yield from (Text(printable(line), "dim") for line in act_lines(exchange.act))


def decision_line(exchange: Exchange) -> str:
    """Return the decision in one line."""
    parts = [f"{exchange.stage} {exchange.action}", f"reason {exchange.reason}"]
    if exchange.mode is not None:
        first = "" if exchange.first_mode in (None, exchange.mode) else f" (first {exchange.first_mode})"
        parts.append(f"mode {exchange.mode}{first}")
    if exchange.confidence is not None:
        parts.append(f"confidence {exchange.confidence:.2f}")
    if exchange.action != "PASSED":
        parts.append(f"by {exchange.backend}{f' {exchange.model}' if exchange.model else ''}")
    if exchange.memories:
        parts.append("1 memory" if exchange.memories == 1 else f"{exchange.memories} memories")
    if exchange.finish_reason not in ("", "stop"):
        parts.append(f"ended by {exchange.finish_reason}")
    if exchange.cuts:
        parts.append(cuts_text(exchange.cuts))
    again = [f"rerun of {exchange.rerun_of}"] if exchange.rerun_of else []
    return " · ".join([*parts, f"{exchange.latency_ms:.1f} ms", exchange.exchange, *again])


def tiebreak_line(tiebreak: Tiebreak) -> str:
    """Return the two modes that were too close, and what decided between them."""
    how = "tie-break by a model" if tiebreak.used else "tie-break without a model"
    pair = " or ".join(tiebreak.candidates)
    close = f"margin {tiebreak.margin:.3f} of {tiebreak.effective_margin:.3f}"
    return f"{how}: {pair} → {tiebreak.outcome} ({close})"


def act_lines(act: ActLoop) -> Iterator[str]:
    """Yield a line for each iteration of an ACT loop, and one for its end."""
    for each in act.iterations:
        steps = "; ".join(map(_step_text, each.steps)) or "nothing"
        reason = f" ({each.reason})" if each.reason else ""
        yield f"ACT {each.iteration} ({each.planner}, {each.elapsed_ms} ms): {steps}{reason}"
    if act.termination is not None:
        yield f"ACT ended: {act.termination}, {act.found} found"


def _step_text(step: Step) -> str:
    query = f" {quoted_line(step.query, LONGEST_QUERY)}" if step.query else ""
    return f"{step.skill}{query} {f'failed, {step.reason}' if step.reason else f'found {step.found}'}"


def _tiebreak(choices: Iterable[ModeSelected]) -> Tiebreak | None:
    close = next((choice for choice in choices if choice.tiebreaker_candidates), None)
    if close is None:
        return None
    return Tiebreak(
        candidates=close.tiebreaker_candidates,
        margin=close.margin,
        effective_margin=close.effective_margin,
        used=close.tiebreaker_used,
        outcome=close.tiebreaker_outcome,
    )


def _act_loop(events: Sequence[Event]) -> ActLoop | None:
    iterations = tuple(_iteration_of(event) for event in events if isinstance(event, ActIterated))
    finished = next((event for event in events if isinstance(event, ActFinished)), None)
    if finished is None:
        return ActLoop(iterations=iterations) if iterations else None
    return ActLoop(iterations=iterations, termination=finished.termination, found=len(finished.findings))


def _iteration_of(event: ActIterated) -> Iteration:
    return Iteration(
        iteration=event.iteration,
        planner=event.planner,
        steps=tuple(map(_step_of, event.performed)),
        elapsed_ms=event.elapsed_ms,
        reason=event.reason,
    )


def _step_of(performed: Performed) -> Step:
    action = performed.action
    return Step(
        skill=action.skill,
        query=action.query or action.key,
        found=performed.found,
        reason="" if performed.ok else performed.reason or "no reason given",
    )
