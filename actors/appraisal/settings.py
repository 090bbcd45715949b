"""Settings of appraisal."""

from typing import Annotated, Literal

import msgspec

from schemas.asking import ASKS_MODEL
from schemas.event import Milliseconds, Unit
from schemas.vocabulary.gateway import Role

Embedder = Literal["auto", "hashed"]


class TrustSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When a language model is asked for its judgement of an input, and how its word counts.

    It may raise a part's falsehood, and never lowers it: no text can argue its way out.

    Attributes:
        gate: ``local``: the local numbers gate at once, and a model's word counts when it arrives. ``llm``: an input
            whose local numbers leave parts open waits for the model's word on these. ``both``: every input that the
            local numbers let pass waits for it, on every part.
        judge: ``llm`` has a model asked under the gate ``local``, too; ``off`` does not. It follows what is attached.
        open_from: Falsehood from which a part is open, under the gates ``local`` and ``llm``. Measured on 1,200 prompts
            of unseen sources: of the attacks that the local guards miss a third lies above 0.08 and a twelfth above
            0.2, of harmless texts 7 % and 1 %.
        open_to: Falsehood up to which it is; above, the breaker trips, and there is nothing left to ask.
        parts: Parts of an input that are asked about at most, those with the highest falsehood.
        characters: Characters of them shown in all.
        most_tokens: Length of the model's answer at most.
        timeout_ms: How long the answer may take.
        grace_ms: Time beyond that after which a request that nobody answered is given up.
        calls_an_hour: Inputs of a session that a model is asked about in an hour, at most; for the others the local
            numbers stand.

    Raises:
        ValueError: ``open_from`` above ``open_to``. ``msgspec.convert`` reports it as a ``ValidationError``.
    """

    gate: Literal["local", "llm", "both"] = "local"
    judge: Annotated[Literal["off", "llm"], ASKS_MODEL] = "off"
    open_from: Unit = 0.08
    open_to: Unit = 0.65
    parts: Annotated[int, msgspec.Meta(ge=1, le=16)] = 4
    characters: Annotated[int, msgspec.Meta(ge=256, le=65_536)] = 6_000
    most_tokens: Annotated[int, msgspec.Meta(ge=32, le=4_096)] = 192
    timeout_ms: Milliseconds = 10_000
    grace_ms: Milliseconds = 2_000
    calls_an_hour: Annotated[int, msgspec.Meta(ge=0, le=1_000_000)] = 120

    def __post_init__(self) -> None:
        """Refuse bounds that contradict each other."""
        if self.open_from > self.open_to:
            raise ValueError("appraisal setting 'trust.open_from' is above 'trust.open_to': no part would be open")

    @property
    def asks(self) -> bool:
        """Whether a model is asked at all."""
        return self.judge == "llm" or self.waits

    @property
    def waits(self) -> bool:
        """Whether an input waits for the model's word."""
        return self.gate != "local"


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
            beyond, its layers are read in equal shares, several as one text (``actors.contract.text.sheets``).
        trust: When a language model is asked besides, and how its word counts.
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
    trust: TrustSettings = TrustSettings()
    session_lifetime_ms: Milliseconds = 24 * 3600 * 1000
    settled_lifetime_ms: Milliseconds = 600 * 1000
