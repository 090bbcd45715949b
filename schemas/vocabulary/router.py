"""Mode selection. Owner: ``router``."""

from functools import partial
from typing import Annotated, Literal

import msgspec

from schemas.actor import Scope
from schemas.effectors.model_calls import ChatMessage, ModelCall
from schemas.entry import Entry, own_entries, own_events
from schemas.event import Event, Personal, Unit

Mode = Literal["ACT", "RESPOND", "CLARIFY", "ACKNOWLEDGE", "IGNORE"]
"""How an input is answered: after looking things up, at once, by a question back, by a courtesy, or not at all."""


class Signals(msgspec.Struct, frozen=True, kw_only=True):
    """What the router looked at: what is known about the exchange, and the text's own features.

    ``context_warmth`` (how much is known around the exchange) to ``session_exchange_count``, and ``bearing`` (how
    relevant the most relevant memory is to the text) are memory's: see ``schemas.vocabulary.memory.Familiarity``. A
    gist is the summary of an exchange in one line. ``world_state_present``: the agent knows facts besides those
    counted. ``information_density`` is the share of different tokens; with ``implicit_reference`` the text refers to
    what was said before without repeating it. ``answerable`` to ``task`` are appraisal's reading of the text, all 0
    where there is none. ``findings`` counts what an ACT loop has found for it.
    """

    context_warmth: Unit
    working_memory_turns: int
    gist_count: int
    fact_count: int
    fact_keys: tuple[Personal, ...]
    world_state_present: bool
    topic_confidence: Unit
    is_new_topic: bool
    session_exchange_count: int
    prompt_token_count: int
    has_question_mark: bool
    interrogative_words: bool
    greeting_pattern: bool
    explicit_feedback: Literal["positive", "negative"] | None
    information_density: Unit
    implicit_reference: bool
    answerable: Unit = 0.0
    underspecified: Unit = 0.0
    social: Unit = 0.0
    recall: Unit = 0.0
    task: Unit = 0.0
    bearing: Unit = 0.0
    findings: Annotated[int, msgspec.Meta(ge=0)] = 0


class ModeSelected(Event, frozen=True, kw_only=True, tag="forged_id.router.mode_selected"):
    """The mode of an exchange, with every number it was chosen by.

    ``selected_mode`` is the first choice and ``terminal_mode`` the mode to answer in: None while an ACT loop must run
    first. ``rerouted``: an ACT loop has run, and ACT was not offered again. ``conversation_topic`` is what the
    conversation is about (``unclassified`` when nothing classified it). ``scores`` hold every mode that was offered;
    ``weights`` the weights they were computed with; ``router_confidence`` and ``margin`` are (top - second) /
    max(|top|, 0.001). Below ``effective_margin`` the two are too close to tell apart. They are then the
    ``tiebreaker_candidates``, and ``tiebreaker_outcome`` is how it was settled: ``higher_score``, or where a model was
    asked (``tiebreaker_used``) the mode that it named, else why it named none. ``reason``: ``highest_score``,
    ``tiebreak`` (the model named it), ``act_unavailable`` (ACT scored highest, but no ACT loop may run) or
    ``blank_input``. ``previous_mode`` is that of the session's last answer. ``regulated`` is what the regulator has
    added to the weights, by name, within the bounds; None where that was not recorded.
    """

    conversation_topic: str
    selected_mode: Mode
    terminal_mode: Mode | None
    router_confidence: float
    scores: dict[str, float]
    tiebreaker_used: bool
    tiebreaker_candidates: tuple[Mode, ...]
    tiebreaker_outcome: str
    margin: float
    effective_margin: float
    signals: Signals
    weights: dict[str, float]
    previous_mode: Mode | None
    reason: str
    rerouted: bool = False
    regulated: dict[str, float] | None = None


class TiebreakRequested(Event, frozen=True, kw_only=True, tag="forged_id.router.tiebreak_requested"):
    """Two modes are too close to tell apart: a model is asked, and may name one of ``candidates`` only.

    ``scores`` are those of the two, ``margin`` and ``effective_margin`` as in ``router.mode_selected``.
    """

    candidates: tuple[Mode, Mode]
    scores: dict[str, float]
    margin: float
    effective_margin: float
    call: ModelCall


Feedback = Literal["missed_clarify", "missed_act", "under_engagement", "correct_route"]
"""What was wrong with the mode of an answer, if anything was; ``under_engagement``: ACKNOWLEDGE was too little."""


class FeedbackObserved(Event, frozen=True, kw_only=True, tag="forged_id.router.feedback_observed"):
    """What a session's next input, or an application's feedback, says about the mode of an exchange's answer.

    ``of_exchange`` is the exchange judged and ``mode`` that of its answer; ``signal`` is what was observed:
    ``repeated``, ``clarified``, ``memory_follow_up``, ``negative`` or ``positive`` in an input, ``rewarded`` or
    ``disapproved`` in feedback.
    """

    of_exchange: str
    mode: Mode
    feedback: Feedback
    signal: str


RouterConfigured, RouterFailed = own_events("router")


SAMPLE_SIGNALS = Signals(
    context_warmth=0.3,
    working_memory_turns=4,
    gist_count=0,
    fact_count=0,
    fact_keys=(),
    world_state_present=False,
    topic_confidence=0.0,
    is_new_topic=False,
    session_exchange_count=4,
    prompt_token_count=6,
    has_question_mark=True,
    interrogative_words=True,
    greeting_pattern=False,
    explicit_feedback=None,
    information_density=1.0,
    implicit_reference=False,
    answerable=0.81,
    underspecified=0.07,
    social=0.01,
    recall=0.02,
    task=0.09,
)

_entry = partial(Entry, owner="router", scope=Scope.SESSION)

ENTRIES = (
    _entry(
        meaning="The mode that an exchange is answered in, with signals, weights, scores and margins.",
        verdict="decides",
        sample=ModeSelected(
            conversation_topic="unclassified",
            selected_mode="RESPOND",
            terminal_mode="RESPOND",
            router_confidence=0.3,
            scores={"RESPOND": 0.5, "CLARIFY": 0.35, "ACT": 0.2, "ACKNOWLEDGE": -0.2, "IGNORE": -0.5},
            tiebreaker_used=False,
            tiebreaker_candidates=(),
            tiebreaker_outcome="",
            margin=0.3,
            effective_margin=0.164,
            signals=SAMPLE_SIGNALS,
            weights={"respond.base": 0.4},
            previous_mode=None,
            reason="highest_score",
        ),
    ),
    _entry(
        meaning="Two modes are too close to tell apart, and a language model is asked which.",
        asks="llm",
        sample=TiebreakRequested(
            candidates=("RESPOND", "CLARIFY"),
            scores={"RESPOND": 0.5, "CLARIFY": 0.48},
            margin=0.04,
            effective_margin=0.164,
            call=ModelCall(purpose="tiebreak", messages=(ChatMessage(role="user", content="RESPOND or CLARIFY?"),)),
        ),
    ),
    _entry(
        meaning="What a session's next input, or an application's feedback, says of the mode of an exchange.",
        sample=FeedbackObserved(of_exchange="exchange-1", mode="RESPOND", feedback="missed_clarify", signal="repeated"),
    ),
    *own_entries(
        RouterConfigured,
        RouterFailed,
        owner="router",
        scope=Scope.SESSION,
        then="its exchange ends as FAILED",
        failed_topic="forged_id.reflex.passed",
    ),
)
