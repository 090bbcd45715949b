"""What is kept of an open exchange of ours while a model may be asked to criticise its answers. Pure.

Only then are words kept at all: where appraisal's numbers decide, nothing is.
"""

import msgspec

from actors.guardrails.settings import GuardrailsSettings
from schemas.vocabulary.appraisal import AnswerAppraised
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.llm import LlmCompleted

ANSWERING = frozenset({"respond", "clarify", "acknowledge"})
"""What a model is asked for when it is to answer a person."""


class Live(msgspec.Struct, frozen=True, kw_only=True):
    """An open exchange.

    Attributes:
        question: What was asked, cut.
        answer: A model's latest answer, cut; ``request`` is the id of the event that asked for it.
        appraised: The numbers of the answer that a critique was asked of, until it is judged.
        asked: Id of the event that asked for the critique; empty: none is waited for.
    """

    question: str
    answer: str = ""
    request: str = ""
    appraised: AnswerAppraised | None = None
    asked: str = ""


def opened(received: InputReceived, settings: GuardrailsSettings) -> Live:
    """Return what is kept of an exchange that begins."""
    return Live(question=received.text[: settings.critic_characters])


def answered(live: Live, completed: LlmCompleted, settings: GuardrailsSettings) -> Live:
    """Return what is kept after a model's answer."""
    text = completed.text[: settings.critic_characters]
    return msgspec.structs.replace(live, answer=text, request=completed.request)
