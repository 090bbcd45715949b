"""Judges the mode of an answered exchange by the session's next input, from text signals alone.

==================  ==============================================================  ====================
answered in         the next input                                                  feedback
==================  ==============================================================  ====================
any mode            thanks, approves                                                ``correct_route``
ACKNOWLEDGE         disapproves                                                     ``under_engagement``
RESPOND             repeats the input before it, at once                            ``missed_clarify``
RESPOND             refers to shared history, and no ACT loop had run               ``missed_act``
RESPOND             corrects or rewords the input before it, at once                ``missed_clarify``
==================  ==============================================================  ====================

The modes: RESPOND answers in substance, CLARIFY asks back, ACT looks things up first, ACKNOWLEDGE says a brief word.
The first row that holds counts. Of the judged input only hashes of its words are kept.

Explicit feedback of an application (``feedback.given``) counts for any exchange, and replaces the judgement by the next
input. A reward above 0 is ``correct_route``. A reward below 0 for an answer in ACKNOWLEDGE is ``under_engagement``.
"""

from zlib import crc32

import msgspec

from actors.router.phrases import CLARIFICATION, FUNCTION_WORDS
from actors.router.signals import WORD_EDGES, clauses_of, fold, read_text
from schemas.vocabulary.feedback import FeedbackGiven
from schemas.vocabulary.router import Feedback, FeedbackObserved, Mode

WORDS_KEPT = 64
"""Most distinct words of an input that are compared: more than anybody types twice."""

CLAUSES_READ = 3
"""Most clauses in which a clarification is looked for, since it opens a message."""

_LEAST_SHARED = 2
"""Fewest common words of a message that repeats another."""

_PARTIAL_OVERLAP, _FULL_OVERLAP = 0.5, 0.8
"""A message repeats another if they have at least this share of all their words in common: the first share if one has
all words of the other, else the second."""


class Answered(msgspec.Struct, frozen=True, kw_only=True):
    """The session's previous exchange: the mode of its answer, the first choice, the hashes of its input's words.

    It ended at ``at_ns`` (Unix nanoseconds).
    """

    exchange: str
    mode: Mode
    first_mode: Mode
    words: tuple[int, ...]
    at_ns: int


def words_of(text: str) -> tuple[int, ...]:
    """Return hashes of a text's words in ascending order, without words that any message may contain."""
    words = (word.strip(WORD_EDGES) for word in fold(text).split())
    content_words = dict.fromkeys(word for word in words if word and word not in FUNCTION_WORDS)
    return tuple(sorted(crc32(word.encode("utf-8", "surrogatepass")) for word in list(content_words)[:WORDS_KEPT]))


def repeats(words: tuple[int, ...], earlier: tuple[int, ...]) -> bool:
    """Whether a message repeats an earlier one: the same words, or with some added or left out.

    One word replaced by another makes a different question ("the capital of Chile" after "the capital of Peru").
    """
    now, before = {*words}, {*earlier}
    shared = now & before
    if len(shared) < _LEAST_SHARED:
        return False
    overlap = len(shared) / len(now | before)
    return overlap >= _FULL_OVERLAP or (overlap >= _PARTIAL_OVERLAP and (now <= before or before <= now))


def clarifies(text: str) -> bool:
    """Whether a message begins with a correction or rewording of the message before it."""
    return any(CLARIFICATION.match(clause) for clause in clauses_of(fold(text))[:CLAUSES_READ])


def observe_feedback(text: str, previous: Answered, *, at_once: bool) -> FeedbackObserved | None:
    """Return how ``text`` judges the previous exchange's mode; None where it does not.

    ``at_once``: it came within the setting ``feedback_within_ms`` after the answer. The same question on the next day
    is no complaint.
    """
    signals = read_text(text)
    if signals.explicit_feedback == "positive":
        return _observed(previous, "correct_route", "positive")
    if previous.mode == "ACKNOWLEDGE" and signals.explicit_feedback == "negative":
        return _observed(previous, "under_engagement", "negative")
    if previous.mode != "RESPOND":
        return None
    if at_once and repeats(words_of(text), previous.words):
        return _observed(previous, "missed_clarify", "repeated")
    if signals.implicit_reference and previous.first_mode != "ACT":
        return _observed(previous, "missed_act", "memory_follow_up")
    if at_once and clarifies(text):
        return _observed(previous, "missed_clarify", "clarified")
    return None


def explicit_feedback(given: FeedbackGiven, exchange: str) -> FeedbackObserved | None:
    """Return how explicit feedback judges the mode that an exchange was answered in; None where it does not."""
    if given.mode is None or given.reward is None:
        return None
    if given.reward > 0:
        return FeedbackObserved(of_exchange=exchange, mode=given.mode, feedback="correct_route", signal="rewarded")
    if given.reward < 0 and given.mode == "ACKNOWLEDGE":
        return FeedbackObserved(
            of_exchange=exchange, mode=given.mode, feedback="under_engagement", signal="disapproved"
        )
    return None


def _observed(previous: Answered, feedback: Feedback, signal: str) -> FeedbackObserved:
    return FeedbackObserved(of_exchange=previous.exchange, mode=previous.mode, feedback=feedback, signal=signal)
