"""External loops (deliberations of another engine) that come without scores, and how a critic scores them. Pure.

Appraisal scores the question and the answer that the loop brings. If a model is the critic, it is asked next, and
appraisal's scores count only if it fails. A score that the caller gave is kept. The texts are kept until the loop is
judged; if that never happens, for the setting ``ended_lifetime_ms``.
"""

import msgspec

from actors.guardrails.critic import Critique
from actors.guardrails.loop_judging import FinishedLoop
from actors.guardrails.settings import GuardrailsSettings
from schemas.vocabulary.appraisal import AnswerAppraised
from schemas.vocabulary.loops import LoopCompleted


class ExternalLoop(msgspec.Struct, frozen=True, kw_only=True):
    """A loop that waits for a critic: what is known of it (``reading``), and its texts, shortened.

    ``appraised`` are appraisal's scores, None until they have come.
    """

    reading: FinishedLoop
    question: str
    answer: str
    appraised: AnswerAppraised | None = None


def wants_critic(completed: LoopCompleted, settings: GuardrailsSettings) -> bool:
    """Whether a score is missing, and the loop brings the question and answer that a critic needs."""
    scored = completed.alignment_score is not None and completed.drift_score is not None
    has_texts = bool(completed.question.strip() and completed.answer.strip())
    return not scored and has_texts and settings.loop_critic != "off"


def awaiting_critic(
    finished: FinishedLoop, completed: LoopCompleted, message_id: str, settings: GuardrailsSettings
) -> ExternalLoop:
    """Return what is kept of a completion while it waits for a critic; ``message_id`` is the id of its event."""
    return ExternalLoop(
        reading=msgspec.structs.replace(finished, completion=message_id),
        question=completed.question[: settings.critic_characters],
        answer=completed.answer[: settings.critic_characters],
    )


def with_critique(external_loop: ExternalLoop, critique: Critique | None, settings: GuardrailsSettings) -> FinishedLoop:
    """Return the loop with the scores of its critique; without one (None), with appraisal's scores."""
    finished, appraised = external_loop.reading, external_loop.appraised
    if appraised is None:
        return finished
    found: Critique | AnswerAppraised = appraised if critique is None else critique
    tags = (*finished.bias_tags, *appraised.bias_tags, *(critique.bias_tags if critique is not None else ()))
    return msgspec.structs.replace(
        finished,
        alignment=found.alignment if finished.alignment is None else finished.alignment,
        drift=found.drift if finished.drift is None else finished.drift,
        bias_tags=tuple(dict.fromkeys(tags)),
        reflection_persona=finished.reflection_persona if critique is None else settings.critic_persona,
        source="features" if critique is None else "llm",
    )
