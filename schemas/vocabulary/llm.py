"""Language models. Owner: ``llm``, an effector: the only one that speaks to a model."""

from schemas.actor import Scope
from schemas.effectors.model_calls import Cut, Ended, Masked, Purpose, Tokens
from schemas.entry import Entry, Severity
from schemas.event import Event, Failed, Personal


class LlmCompleted(Event, frozen=True, kw_only=True, tag="forged_id.llm.completed"):
    """A model's answer to a request.

    ``request`` is the id of the event that asked, ``model`` what answered by its endpoint's own word, ``backend`` the
    kind of endpoint (``openai``, ``local``). ``finish_reason`` is the endpoint's own word, ``ended`` what it means.
    ``attempts`` counts calls, from 1; tokens are 0 where the endpoint does not tell. ``adapted`` names what of the
    request the endpoint does not take, and what it was sent instead; ``cuts`` what of the prompt was cut besides,
    because the model's context turned out to be smaller than it was thought to be. ``masked`` counts what the model was
    shown placeholders for, by kind, as ``recogniser`` told it; the values are back in ``text``.
    """

    request: str
    purpose: Purpose
    text: Personal
    model: str
    backend: str
    finish_reason: str
    prompt_tokens: Tokens
    completion_tokens: Tokens
    attempts: int
    ended: Ended = "stop"
    adapted: tuple[str, ...] = ()
    cuts: tuple[Cut, ...] = ()
    masked: tuple[Masked, ...] = ()
    recogniser: str = ""


ANSWER_INVALID = "answer_invalid"
"""The reason of a failure: what came is not what the protocol or the asked schema says."""

ANSWER_FILTERED = "answer_filtered"
"""The reason of a failure: the endpoint's filter left nothing of an answer."""

UNANSWERED = "unanswered"
"""Why an actor goes on without a model's answer: nothing came in its own time, no failure either."""


class LlmFailed(Failed, frozen=True, kw_only=True, tag="forged_id.llm.failed"):
    """A request that no model answered; who asked goes on without.

    Reasons besides an effector's own: ``no_model``, ``endpoint_unreachable``, ``endpoint_overdue``,
    ``endpoint_refused`` (a status that another attempt does not mend), ``circuit_open``, ``answer_invalid`` (not what
    the protocol or the asked schema says), ``answer_filtered`` (the endpoint's filter left nothing of it). ``said`` is
    what the endpoint gave as its reason, cut and without secrets: it may repeat a person's words. ``request`` and
    ``purpose`` are empty where the request could not be read. ``masked`` is as in ``llm.completed``.
    """

    request: str = ""
    purpose: Purpose | None = None
    said: Personal = ""
    masked: tuple[Masked, ...] = ()
    recogniser: str = ""


ENTRIES = (
    Entry(
        owner="llm",
        scope=Scope.SESSION,
        meaning="A language model answered a request: its words, which model, and the tokens used.",
        sample=LlmCompleted(
            request="0" * 32,
            purpose="respond",
            text="Lima.",
            model="qwen3:8b",
            backend="openai",
            finish_reason="stop",
            prompt_tokens=312,
            completion_tokens=4,
            attempts=1,
        ),
    ),
    Entry(
        owner="llm",
        scope=Scope.SESSION,
        meaning="No language model answered a request; who asked goes on without, and records how.",
        sample=LlmFailed(
            reason="endpoint_unreachable",
            error="ConnectError",
            failed_seq=9,
            failed_topic="forged_id.response.requested",
            request="0" * 32,
            purpose="respond",
        ),
        severity=Severity.WARNING,
    ),
)
