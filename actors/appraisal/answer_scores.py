"""A model's answer in numbers: alignment with the question, drift, and which biases it shows.

Alignment is how well the answer fits its question, drift how far it strays from all that came before it. They are
computed from the *agreement* of two texts: the mean of two cosines, one of the embeddings of the whole texts, one of
the embeddings of their content words (``contract.text.terms``) alone. Drift is small if the answer agrees with any of
these: the question, the conversation up to it, and all that the model was given (memories and layers included).
Alignment is the answer's agreement with the question, or with any of them if the question has few content words ("And
in the evening?"). Piecewise linear functions turn agreement into the two numbers, rising for alignment and falling for
drift. They pass through the default thresholds of guardrails (0.75 and 0.25) at the agreements in ``SEMANTIC`` and
``LITERAL``.

If the answer or the conversation has too few content words, nothing can be judged: "Lima." is a good answer. Then the
numbers are neutral, just good enough to pass, and ``judged`` is false.

**Measured** over 975 answers of real conversations (Open-Assistant, Taskmaster, mt_bench and others), against 4,875
pairs of a conversation with an answer from another one; the agreements at the thresholds were chosen on the same pairs.
An answer passes with an alignment of 0.75 or more and a drift of 0.25 or less. The columns are the two embedders: token
vectors of the package wordllama, and hashed n-grams.

==================================  =============  =========  ======
share of                            that           wordllama  hashed
==================================  =============  =========  ======
real answers                        can be judged  67 %       48 %
real answers                        pass           95.4 %     95.4 %
real answers that can be judged     pass           93.1 %     90.4 %
foreign answers                     fail           58 %       30 %
foreign answers that can be judged  fail           88 %       64 %
==================================  =============  =========  ======

A foreign answer is one from another conversation. With six memories of other conversations among what the model was
given, 96 % of real answers pass, and 82 % (hashed: 50 %) of the foreign ones that can be judged fail: the more the
model is given, the more answers agree with some of it.
"""

import re
from typing import get_args

import msgspec

from actors.appraisal.measures.affect import VERSION as AFFECT_VERSION
from actors.appraisal.measures.biases import VERSION, bias_tags_of
from actors.appraisal.measures.embedder import Model, embedded_part, model_of
from actors.appraisal.measures.piecewise_linear import Knots, interpolated
from actors.appraisal.measures.trust import trust_model
from actors.appraisal.measures.turn_reading import turn_model
from actors.appraisal.measures.vectors import similarity
from actors.appraisal.session_memory import DECIMALS
from actors.appraisal.settings import AppraisalSettings
from actors.contract.text.judge.weights import added_weights
from actors.contract.text.terms import terms_of
from schemas.event import Event
from schemas.vocabulary.appraisal import AnswerAppraised, AppraisalCompleted, JudgementRequested
from schemas.vocabulary.guardrails import AppraisalRequested
from schemas.vocabulary.llm import LlmCompleted
from schemas.vocabulary.memory import Layer
from schemas.vocabulary.reflex import ReflexAnswerPassed
from schemas.vocabulary.responder import ResponseRequested

NEUTRAL_ALIGNMENT, NEUTRAL_DRIFT = 0.8, 0.2
"""The numbers of an answer that cannot be judged."""

_LABEL = re.compile(
    rf"^(?:\[(?:end of )?data [0-9a-f]+\b[^\]\n]*\]$|- (?:{'|'.join(get_args(Layer))}), \d\.\d\d: )", re.MULTILINE
)
"""The labels that our prompts put around data and before each memory: they are no part of the conversation."""


class Scale(msgspec.Struct, frozen=True, kw_only=True):
    """How many content words an embedder needs, and how agreement becomes alignment and drift.

    Attributes:
        context_terms: Content words that the question and what came before it must have together.
        question_terms: Fewest content words of a question that alone is compared with the answer for alignment.
        answer_terms: Content words that the answer must have.
        alignment: Alignment by agreement, which is in [0, 1].
        drift: Drift by agreement.
    """

    context_terms: int
    question_terms: int
    answer_terms: int
    alignment: Knots
    drift: Knots


SEMANTIC = Scale(
    context_terms=2,
    question_terms=4,
    answer_terms=4,
    alignment=((0.0, 0.0), (0.07, 0.75), (0.5, 0.95), (1.0, 1.0)),
    drift=((0.0, 1.0), (0.17, 0.25), (0.6, 0.05), (1.0, 0.0)),
)
"""For vectors that carry meaning (wordllama)."""

LITERAL = Scale(
    context_terms=8,
    question_terms=4,
    answer_terms=4,
    alignment=((0.0, 0.0), (0.05, 0.75), (0.5, 0.95), (1.0, 1.0)),
    drift=((0.0, 1.0), (0.11, 0.25), (0.6, 0.05), (1.0, 0.0)),
)
"""For hashed n-grams, which compare equal words only, and so need more of them."""


class PendingAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What is kept of an open exchange; of its texts, only the part that is embedded.

    Attributes:
        question: The input's text.
        request: Id of the event that asked a model; empty: no answer is waited for.
        loop_id: The loop (pass of the deliberation) that the answer belongs to; empty if nobody will judge the answer.
        talk: The conversation: the turns before the question, and the question.
        given: All that the model was first given, without our own instructions.
        answer: The model's answer, which reflex reads before it is appraised; None: there is none yet.
        answered: Id of the event that has the answer.
    """

    question: str
    request: str = ""
    loop_id: str = ""
    talk: str = ""
    given: str = ""
    answer: LlmCompleted | None = None
    answered: str = ""


class Scores(msgspec.Struct, frozen=True):
    """The numbers of an answer; ``judged`` is false if they are neutral because there were too few words."""

    alignment: float
    drift: float
    judged: bool


class _Embedded(msgspec.Struct, frozen=True):
    """A text's content words, and the embeddings of the whole text and of these words."""

    terms: tuple[str, ...]
    whole: bytes
    content: bytes


def new_pending(question: str) -> PendingAnswer:
    """Return what is kept of an exchange when it begins."""
    return PendingAnswer(question=embedded_part(question))


def with_request(pending: PendingAnswer, request: str, event: ResponseRequested) -> PendingAnswer:
    """Return what is kept after a model was asked by the event ``request``, for the first time or again.

    A later request shows the model its last answer, which has to be improved. That answer is not among the texts
    compared with: a bad answer that is repeated would otherwise look good.
    """
    if pending.given:
        return msgspec.structs.replace(pending, request=request, loop_id=event.loop_id, answer=None, answered="")
    messages = [each.content for each in event.call.messages if each.role != "system"]
    return PendingAnswer(
        question=pending.question,
        request=request,
        loop_id=event.loop_id,
        talk=embedded_part("\n".join([*messages[:-1], pending.question])),
        given=embedded_part(_LABEL.sub("", "\n".join(messages))),
    )


def with_answer(pending: PendingAnswer, completed: LlmCompleted, source: str) -> PendingAnswer:
    """Return what is kept with a model's answer, which is in the event ``source``; reflex reads it first.

    Nothing changes if it answers another request, is blank, or nobody will judge it.
    """
    if not pending.loop_id or completed.request != pending.request or not completed.text.strip():
        return pending
    return msgspec.structs.replace(pending, answer=completed, answered=source)


def appraise_answer(
    pending: PendingAnswer, read: ReflexAnswerPassed, settings: AppraisalSettings
) -> AnswerAppraised | None:
    """Return the numbers of a model's answer that reflex has let pass; None if reflex read another text."""
    completed = pending.answer
    if completed is None or read.source != pending.answered:
        return None
    return _appraised(completed.request, pending, completed.text, settings)


def appraise_external_answer(asked: AppraisalRequested, settings: AppraisalSettings) -> AnswerAppraised:
    """Return the answer of another engine's deliberation in numbers; of the conversation only the question is known."""
    question = embedded_part(asked.question)
    exchange = PendingAnswer(question=question, loop_id=asked.loop_id, talk=question, given=question)
    return _appraised(asked.completion, exchange, embedded_part(asked.answer), settings)


def _appraised(request: str, exchange: PendingAnswer, answer: str, settings: AppraisalSettings) -> AnswerAppraised:
    embedder = model_of(settings.embedder)
    scores = scores_of(embedder, exchange.question, exchange.talk, exchange.given, answer)
    return AnswerAppraised(
        request=request,
        loop_id=exchange.loop_id,
        alignment=scores.alignment,
        drift=scores.drift,
        bias_tags=bias_tags_of(answer),
        models=f"{embedder.name}+{VERSION}",
        judged=scores.judged,
    )


def missing_model(event: Event) -> str:
    """Return the models that appraisal's numbers rest on and that this process does not have, joined by ``+``."""
    available = {
        model_of("auto").name,
        model_of("hashed").name,
        trust_model().name,
        turn_model().name,
        AFFECT_VERSION,
        VERSION,
    }
    return "+".join(name for name in models_of(event) if name not in available and added_weights(name) is None)


def models_of(event: Event) -> tuple[str, ...]:
    """Return the models that appraisal's numbers rest on; no language model is among them: its answer is recorded."""
    found = event.local if isinstance(event, JudgementRequested) else event
    return tuple(found.models.split("+")) if isinstance(found, AppraisalCompleted | AnswerAppraised) else ()


def scores_of(embedder: Model, question: str, talk: str, given: str, answer: str) -> Scores:
    """Return the alignment and drift of an answer: how well it fits its question, and how far it strays from all else.

    ``talk`` is the conversation up to and with the question; ``given`` is all that the model was given.
    """
    scale = SEMANTIC if embedder.semantic else LITERAL
    question_embedded, talk_embedded, given_embedded, answer_embedded = (
        _embedded(embedder, text) for text in (question, talk, given, answer)
    )
    if (
        len(answer_embedded.terms) < scale.answer_terms
        or max(len(question_embedded.terms), len(talk_embedded.terms)) < scale.context_terms
    ):
        return Scores(NEUTRAL_ALIGNMENT, NEUTRAL_DRIFT, False)
    with_question = _agreement(question_embedded, answer_embedded)
    with_any = max(
        with_question, _agreement(talk_embedded, answer_embedded), _agreement(given_embedded, answer_embedded)
    )
    to_question = with_question if len(question_embedded.terms) >= scale.question_terms else with_any
    return Scores(
        round(interpolated(scale.alignment, to_question), DECIMALS),
        round(interpolated(scale.drift, with_any), DECIMALS),
        True,
    )


def _embedded(embedder: Model, text: str) -> _Embedded:
    terms = terms_of(text)
    return _Embedded(terms, embedder.embed(text), embedder.embed(" ".join(terms)))


def _agreement(one: _Embedded, other: _Embedded) -> float:
    whole = similarity(one.whole, other.whole)[0]
    content = similarity(one.content, other.content)[0]
    return float(whole + content) / 2.0
