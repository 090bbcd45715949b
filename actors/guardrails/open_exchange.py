"""What guardrails keep of an open exchange if a model is the critic (the one who scores) of its answers. Pure.

If the actor appraisal scores the answers alone, no text is kept.
"""

import msgspec

from actors.guardrails.settings import GuardrailsSettings
from schemas.vocabulary.appraisal import AnswerAppraised
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.llm import LlmCompleted

ANSWERING = frozenset({"respond", "clarify", "acknowledge"})
"""The purposes of calls by which a model answers a person."""


class OpenExchange(msgspec.Struct, frozen=True, kw_only=True):
    """An open exchange.

    Attributes:
        question: The input's text, shortened.
        answer: A model's latest answer, shortened; ``request`` is the id of the event that asked for it.
        appraised: Appraisal's scores of the answer that waits for its critique.
        asked: Id of the event that requested the critique; empty: no critique is waited for.
    """

    question: str
    answer: str = ""
    request: str = ""
    appraised: AnswerAppraised | None = None
    asked: str = ""


def new_exchange(received: InputReceived, settings: GuardrailsSettings) -> OpenExchange:
    """Return what is kept of an exchange when it begins."""
    return OpenExchange(question=received.text[: settings.critic_characters])


def with_answer(exchange: OpenExchange, completed: LlmCompleted, settings: GuardrailsSettings) -> OpenExchange:
    """Return what is kept after a model's answer."""
    text = completed.text[: settings.critic_characters]
    return msgspec.structs.replace(exchange, answer=text, request=completed.request)
