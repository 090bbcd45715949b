"""Settings of appraisal."""

from typing import Annotated, Literal

import msgspec

from schemas.event import Milliseconds, Unit

Embedder = Literal["auto", "hashed"]
Role = Literal["system", "user", "tool", "document"]


class AppraisalSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What appraisal decides with.

    Attributes:
        embedder: ``auto`` takes wordllama's vectors where that package is installed, else hashed n-grams; ``hashed``
            takes the latter everywhere, so that other machines reach the same numbers.
        topic_threshold: Similarity from which an input belongs to a topic of its session, with semantic vectors.
        topic_threshold_hashed: The same with hashed n-grams, which see the same words only, and so less.
        topics: Topics remembered of a session, 1 to 64; the one used longest ago goes first.
        stimuli: Inputs that novelty is measured against, 1 to 512.
        judged_layers: Roles whose layers are judged for instructions to the model. An operator's own prompt
            (``system``) is not: telling the model what to do is what it is for.
        judged_characters: Characters of one input that are read for trust, 256 more for each part being counted in;
            beyond, its layers are read in equal shares, several as one text (``schemas.reading.sheets``).
        session_lifetime_ms: A session is remembered no longer than this after its last input, and at least half as
            long.
        settled_lifetime_ms: A repeated input is recognised for at least this long.
    """

    embedder: Embedder = "auto"
    topic_threshold: Unit = 0.35
    topic_threshold_hashed: Unit = 0.2
    topics: Annotated[int, msgspec.Meta(ge=1, le=64)] = 16
    stimuli: Annotated[int, msgspec.Meta(ge=1, le=512)] = 128
    judged_layers: tuple[Role, ...] = ("user", "tool", "document")
    judged_characters: Annotated[int, msgspec.Meta(ge=4_096)] = 49_152
    session_lifetime_ms: Milliseconds = 24 * 3600 * 1000
    settled_lifetime_ms: Milliseconds = 600 * 1000
