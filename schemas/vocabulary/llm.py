"""Language models. Owner: ``llm``, an effector: the only one that speaks to a model."""

from schemas.actor import Scope
from schemas.effectors.model_calls import Cut, Ended, Masked, Purpose, Tokens
from schemas.entry import Entry, Severity
from schemas.event import Event, Failed, Personal


class LlmCompleted(Event, frozen=True, kw_only=True, tag="forged_id.llm.completed"):
    """A model's answer to a request.

    ``request`` is the id of the event that asked, ``model`` the model's name as its endpoint gives it, ``backend`` the
    kind of endpoint (``openai``, ``local``). ``finish_reason`` is the endpoint's own word, ``ended`` what it means.
    ``attempts`` counts calls, from 1; tokens are 0 where the endpoint gives none. ``adapted`` names fields of the
    request that the endpoint does not accept, and what was sent instead. ``cuts`` are further cuts of the prompt,
    made because the model's context turned out to be smaller than the settings say. ``masked`` counts, by kind, the
    personal data that the model was shown placeholders for; ``recogniser`` names what recognised them. ``text`` has
    the values again.
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
"""The reason of a failure: the answer does not fit the protocol or the requested schema."""

ANSWER_FILTERED = "answer_filtered"
"""The reason of a failure: the endpoint's filter left nothing of an answer."""

UNANSWERED = "unanswered"
"""Why an actor goes on without a model's answer: neither an answer nor a failure came before its own deadline."""


class LlmFailed(Failed, frozen=True, kw_only=True, tag="forged_id.llm.failed"):
    """A request that no model answered; whoever asked goes on without an answer.

    Reasons besides an effector's own: ``no_model``, ``endpoint_unreachable``, ``endpoint_overdue``,
    ``endpoint_refused`` (a status for which another attempt is useless), ``circuit_open``, ``answer_invalid`` (it does
    not fit the protocol or the requested schema), ``answer_filtered`` (the endpoint's filter left nothing of it).
    ``said`` is the reason that the endpoint gave, cut and without secrets: it may repeat a person's words. ``request``
    and ``purpose`` are empty where the request could not be read. ``masked`` is as in ``llm.completed``.
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
