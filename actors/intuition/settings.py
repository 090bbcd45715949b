"""Settings of intuition."""

from typing import Annotated

import msgspec

from schemas.event import Milliseconds, Unit
from schemas.settings.measured_settings import Budget
from schemas.vocabulary.gateway import Role

COMPARISON = 4_096
"""What comparing a text with the precedents counts for besides the postings it looks at, in postings."""

Share = Annotated[float, msgspec.Meta(gt=0.0, le=1.0)]
"""A similarity that something must have in common to reach."""


class IntuitionSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What intuition decides with.

    Attributes:
        threshold: An input more similar than this to a motif (strictly) is rejected (source R 3).
        scorer: Whether the learned scorer judges too.
        scorer_threshold: Score from which it rejects; None: the one its model was fixed at, for a false-alarm rate.
        scanned_layers: The roles whose layers are judged besides the input's text. Without ``system``: an operator's
            prompt that quotes attacks in order to forbid them would end every exchange.
        similar_most: Precedents of either outcome that a verdict lists at most.
        similar_floor: Least similarity of those.
        answer_floor: Similarity from which a listed precedent brings its approved answer.
        passage_phrases: Successive phrases that are compared as a text of their own, at most; 0: only whole texts are.
        passage_words: Least words of such a passage.
        work: What comparing one input may count for, all its parts and passages together, in postings: the entries of
            inverted lists that are looked at, 32 for one that is compared in full, and 4,096 for every comparison.
        scored_characters: Characters of one input that the scorer reads, 256 more for each part being counted in;
            beyond, its layers are read in equal shares, several as one text (``actors.contract.text.joined_parts``).
        ended_lifetime_ms: How long at least a repeated input of an ended exchange is recognised.
        latency_budget_ms: What the shell holds measured times against (source R 7); no decision depends on it.
    """

    threshold: Unit = 0.7
    scorer: bool = True
    scorer_threshold: Unit | None = None
    scanned_layers: tuple[Role, ...] = ("user", "assistant", "tool", "document")
    similar_most: Annotated[int, msgspec.Meta(ge=0, le=32)] = 5
    similar_floor: Share = 0.3
    answer_floor: Share = 0.9
    passage_phrases: Annotated[int, msgspec.Meta(ge=0, le=16)] = 6
    passage_words: Annotated[int, msgspec.Meta(ge=2, le=1000)] = 4
    work: Annotated[int, msgspec.Meta(ge=16 * COMPARISON)] = 2 * 1024 * 1024
    scored_characters: Annotated[int, msgspec.Meta(ge=4_096)] = 49_152
    ended_lifetime_ms: Milliseconds = 600 * 1000
    latency_budget_ms: Budget = 20.0
