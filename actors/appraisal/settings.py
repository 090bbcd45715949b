"""Settings of appraisal. A *part* of an input is its text, or one of its layers: a document, a tool's result, ..."""

from typing import Annotated, Literal

import msgspec

from schemas.effectors.model_settings import FOLLOWS_MODEL
from schemas.event import Milliseconds, Unit
from schemas.vocabulary.gateway import Role

Embedder = Literal["auto", "hashed"]
"""How texts are embedded; ``AppraisalSettings.embedder`` says what each value means."""


class TrustSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When a language model is asked to judge an input, and how its judgement counts.

    Falsehood is how far a part gives orders to the model itself, from 0 to 1; the breaker withholds an input with too
    high a falsehood. A model can raise a part's falsehood, and never lowers it: no text can persuade the model to trust
    it more. A part is *open* while its local falsehood leaves undecided whether it is an attack.

    Attributes:
        gate: ``local``: the local numbers decide at once, and a model's judgement counts when it arrives. ``llm``: an
            input whose local numbers leave parts open waits for the model's judgement of these parts. ``both``: every
            input that the local numbers let pass waits for it, on every part.
        judge: ``llm`` asks a model under the gate ``local``, too; ``off`` does not. The default is ``llm`` if one is
            attached.
        open_from: Least falsehood of an open part, under the gates ``local`` and ``llm``. Measured on 1,200 prompts
            of unseen sources: of the attacks that the local guards miss a third lies above 0.08 and a twelfth above
            0.2, of harmless texts 7 % and 1 %.
        open_to: Highest falsehood of an open part; above it the breaker withholds the input anyway.
        parts: Largest number of parts of an input that a model is asked about: those with the highest falsehood.
        characters: Largest number of characters of these parts that are shown, in all.
        most_tokens: Largest length of the model's answer.
        timeout_ms: How long the answer may take.
        grace_ms: Further time after which a request without an answer is given up.
        calls_an_hour: Largest number of a session's inputs in an hour that a model is asked about; for others the local
            numbers stand.

    Raises:
        ValueError: ``open_from`` above ``open_to``. ``msgspec.convert`` reports it as a ``ValidationError``.
    """

    gate: Literal["local", "llm", "both"] = "local"
    judge: Annotated[Literal["off", "llm"], FOLLOWS_MODEL] = "off"
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
        """Whether an input waits for the model's judgement."""
        return self.gate != "local"


class AppraisalSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What appraisal decides with.

    Attributes:
        embedder: ``auto`` uses wordllama's vectors if that package is installed, else hashed n-grams; ``hashed`` uses
            hashed n-grams everywhere, so that all machines compute the same numbers.
        topic_threshold: An input belongs to a topic of its session if it is at least this similar, by semantic vectors.
        topic_threshold_hashed: Instead of ``topic_threshold`` with hashed n-grams. These are less similar, since they
            see equal words only.
        topics: Topics kept of a session, 1 to 64; the least recently used is dropped first.
        stimuli: Number of earlier inputs that novelty is measured against, 1 to 512.
        judged_layers: Roles whose layers are judged, as parts, for instructions to the model. An operator's own prompt
            (``system``) is not among them, since its purpose is to instruct the model.
        judged_characters: Largest number of characters of one input that are read for trust; each part counts 256
            more. Beyond that, its layers are read in equal shares, several as one text
            (``actors.contract.text.joined_parts``).
        trust: When a language model is asked as well, and how its judgement counts.
        session_lifetime_ms: A session is kept at most this long after its last input, and at least half as long.
        settled_lifetime_ms: A repeated input is recognised for at least this long after it was appraised or ended.
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
