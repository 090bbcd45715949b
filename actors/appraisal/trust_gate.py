"""A language model's judgement of an input: whether it is asked, what waits for it, and its effect. Pure.

*Local* numbers are appraisal's own, which need no language model.

The setting ``trust.gate`` says whether an input waits. If it does, ``appraisal.judgement_requested`` carries the local
appraisal. ``appraisal.completed`` follows once the model has answered, failed or timed out, or the exchange has ended:
with the higher of the local falsehood and the model's, if there is one. If the input does not wait,
``appraisal.completed`` is emitted at once, and ``appraisal.judged`` follows the model's answer: from there on, a raised
falsehood counts against the session.
"""

from collections.abc import Sequence

import msgspec

from actors.appraisal.judgement_call import Part, judgement_request, parts_to_judge, read_judgements, with_judgement
from actors.appraisal.settings import TrustSettings
from schemas.event import Event, topic_of
from schemas.vocabulary.appraisal import AppraisalCompleted, AppraisalJudged, JudgementRequested, LayerTrust, PartJudged
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.llm import ANSWER_INVALID, LlmCompleted, LlmFailed

ENDED = "ended"
"""Reason for which the local numbers stand: the exchange ended before the model answered."""

HOUR_NS = 3600 * 1_000_000_000
"""Nanoseconds within which a session's calls are counted: an hour."""


class Waiting(msgspec.Struct, frozen=True):
    """A request that a model has not answered yet: its event's id and its parts.

    ``local`` is the appraisal that waits for the answer, if one does.
    """

    request: str
    layers: tuple[LayerTrust, ...]
    local: AppraisalCompleted | None = None


class CallBudget(msgspec.Struct, frozen=True, gc=False):
    """How often a model was asked about a session's inputs within the hour that began at ``since_ns``."""

    since_ns: int
    calls: int


def parts_of(judged_input: InputReceived, layers: Sequence[LayerTrust], roles: Sequence[str]) -> list[Part]:
    """Return the parts of an input with judged roles, and their texts; ``layers`` is the trust in each, in order."""
    found = [(layers[0], judged_input.text)]
    for trust, layer in zip(layers[1:], judged_input.layers, strict=False):
        if layer.role in roles:
            found.append((trust, layer.content))
    return found


def events_of_input(
    appraised: AppraisalCompleted, parts: Sequence[Part], settings: TrustSettings, spent: CallBudget | None, now_ns: int
) -> tuple[Event, ...]:
    """Return the events of an input with its local appraisal; only that one if no model is to be asked."""
    # Above ``open_to`` the breaker trips and withholds the input, whatever a model says. This holds for layers that
    # were left unread, too.
    stopped = any(layer.falsehood > settings.open_to for layer in appraised.layers)
    asked = () if stopped else parts_to_judge(parts, settings)
    if not asked:
        return (appraised,)
    if calls_within_hour(spent, now_ns) >= settings.calls_an_hour:
        return (msgspec.structs.replace(appraised, judgement="over_budget"),)
    question = judgement_request(asked, settings)
    # The request is the first event either way. So its id is the same, and what-if, a replay under other settings,
    # finds its answer in both cases.
    if settings.waits:
        return (msgspec.structs.replace(question, local=appraised),)
    return question, msgspec.structs.replace(appraised, judgement="awaited")


def waiting_on(id: str, request: JudgementRequested) -> Waiting:
    """Return what is kept of a request until it is answered or given up."""
    return Waiting(id, request.layers, request.local)


def calls_within_hour(spent: CallBudget | None, now_ns: int) -> int:
    """Return how often a model was asked within the current hour."""
    return spent.calls if spent is not None and 0 <= now_ns - spent.since_ns < HOUR_NS else 0


def spent_after(spent: CallBudget | None, now_ns: int) -> CallBudget:
    """Return a session's count of calls after one more."""
    calls = calls_within_hour(spent, now_ns)
    return CallBudget(spent.since_ns, calls + 1) if spent is not None and calls else CallBudget(now_ns, 1)


def is_awaited(waiting: Waiting, event: LlmCompleted | LlmFailed) -> bool:
    """Return whether a model's answer is the awaited one. The failure of an unreadable request has no id."""
    if isinstance(event, LlmFailed) and not event.request:
        return event.failed_topic == topic_of(JudgementRequested)
    return event.request == waiting.request and event.purpose == "appraise"


def events_of_answer(waiting: Waiting, event: LlmCompleted | LlmFailed) -> tuple[Event, ...]:
    """Return the events of a model's answer."""
    if isinstance(event, LlmFailed):
        return events_without_answer(waiting, event.reason)
    parts = read_judgements(event.text, waiting.layers) if event.ended in ("stop", "unknown") else None
    if parts is None:
        return events_without_answer(waiting, ANSWER_INVALID, event.model)
    layers = tuple(with_judgement(layer, part) for layer, part in zip(waiting.layers, parts, strict=True))
    return _with_completed(waiting, _judged(waiting, "", event.model, parts, layers))


def events_without_answer(waiting: Waiting, reason: str, model: str = "") -> tuple[Event, ...]:
    """Return the events of a request without a usable answer, with the ``reason``: the local numbers stand."""
    return _with_completed(waiting, _judged(waiting, reason, model, (), waiting.layers))


def _judged(
    waiting: Waiting, reason: str, model: str, parts: tuple[PartJudged, ...], layers: tuple[LayerTrust, ...]
) -> AppraisalJudged:
    late = waiting.local is None  # the input did not wait for it
    return AppraisalJudged(request=waiting.request, reason=reason, model=model, parts=parts, layers=layers, late=late)


def _with_completed(waiting: Waiting, judged: AppraisalJudged) -> tuple[Event, ...]:
    """Return a judgement, and the appraisal that has waited for it, which says whether it counts (``heard``)."""
    if waiting.local is None:
        return (judged,)
    judged_layers = {layer.layer: layer for layer in judged.layers}
    layers = tuple(judged_layers.get(layer.layer, layer) for layer in waiting.local.layers)
    judgement = "missing" if judged.reason else "heard"
    return judged, msgspec.structs.replace(waiting.local, layers=layers, judgement=judgement)
