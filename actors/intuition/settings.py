"""Settings of intuition."""

from typing import Annotated

import msgspec

from schemas.event import Milliseconds, Unit
from schemas.settings.measured_settings import Budget
from schemas.settings.unreachable_settings import silences_at_0
from schemas.vocabulary.gateway import Role

COMPARISON = 4_096
"""The cost of comparing a text with the precedents in addition to the postings that it reads, in postings."""

Share = Annotated[float, msgspec.Meta(gt=0.0, le=1.0)]
"""A similarity above 0: precedents that have nothing in common with an input are never listed."""


class IntuitionSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What intuition decides with.

    A precedent is an earlier situation with its outcome; a motif is one that did harm. The scorer is a trained
    classifier.

    Attributes:
        threshold: An input more similar than this to a motif (strictly) is rejected.
        scorer: Whether the learned scorer judges too.
        scorer_threshold: Score at which it rejects; None: the threshold set in training, for a false-alarm rate.
        scanned_layers: The roles whose layers are judged in addition to the input's text. Without ``system``: an
            operator's prompt that quotes attacks in order to forbid them would end every exchange.
        similar_most: Most precedents, of either outcome, that a verdict lists; the arbiter sees no others.
        similar_floor: Least similarity of the precedents that a verdict lists; the arbiter sees no others.
        answer_floor: A listed precedent with at least this similarity is listed with its recorded answer.
        passage_phrases: Most successive phrases that are compared as a text of their own; 0: only whole texts are.
        passage_words: Least words of such a passage.
        work: Highest cost of comparing one input, all its parts and passages together, in postings: each entry of an
            inverted list that is read counts 1, a precedent that is compared in full 32, every comparison 4,096.
        scored_characters: Characters of one input that the scorer reads; each part counts as 256 more. Of a longer
            input each layer is read in an equal share, several as one text (``actors.contract.text.joined_parts``).
        ended_lifetime_ms: Least time for which a repeated input of an ended exchange is recognised.
        latency_budget_ms: Time for a decision; the process that makes it compares measured times with it. No decision
            depends on it.
    """

    threshold: Unit = 0.7
    scorer: bool = True
    scorer_threshold: Unit | None = None
    scanned_layers: tuple[Role, ...] = ("user", "assistant", "tool", "document")
    similar_most: Annotated[int, msgspec.Meta(ge=0, le=32), silences_at_0("what the arbiter does by precedents")] = 5
    similar_floor: Share = 0.3
    answer_floor: Share = 0.9
    passage_phrases: Annotated[int, msgspec.Meta(ge=0, le=16)] = 6
    passage_words: Annotated[int, msgspec.Meta(ge=2, le=1000)] = 4
    work: Annotated[int, msgspec.Meta(ge=16 * COMPARISON)] = 2 * 1024 * 1024
    scored_characters: Annotated[int, msgspec.Meta(ge=4_096)] = 49_152
    ended_lifetime_ms: Milliseconds = 600 * 1000
    latency_budget_ms: Budget = 20.0
