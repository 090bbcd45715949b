"""The senses: an input turned into numbers, once. Owner: ``appraisal``, where all inference on inputs happens."""

from typing import Annotated

import msgspec

from schemas.actor import Scope
from schemas.entry import Entry, own_entries
from schemas.event import Configured, Event, Failed, Personal, Unit
from schemas.vocabulary.precedents import ProposedAction

Valence = Annotated[float, msgspec.Meta(ge=-1.0, le=1.0)]


class LayerTrust(msgspec.Struct, frozen=True, kw_only=True):
    """The neutrosophic appraisal of one layer: truth, indeterminacy and falsehood, each on its own in [0, 1].

    ``layer`` is ``text`` or the role and place of a layer such as ``document[1]``; ``characters`` its length.
    ``unread`` counts the characters around telling words, and of decoded text, that were not read for the bounds on the
    work; ``unread_share`` is their share in what should have been read, by which ``falsehood`` is raised. Parts that
    were read together share these numbers. Where an input has more layers than anybody looks at, the last row is
    ``layers[1024..]``, and its ``unread`` is how many.
    """

    layer: str
    characters: int
    truth: Unit
    indeterminacy: Unit
    falsehood: Unit
    unread: int = 0
    unread_share: Unit = 0.0


class Risks(msgspec.Struct, frozen=True, kw_only=True):
    """What an input could violate: ``harm`` is the first constitutional principle, ``layer_0`` the system's core."""

    harm: bool = False
    layer_0: bool = False


class TurnReading(msgspec.Struct, frozen=True, kw_only=True):
    """What a text is, as probabilities that add up to 1: calibrated on texts of sources that training had not seen.

    ``answerable``: it can be answered as it stands, or tells something. ``underspecified``: something that only the
    person can supply is missing. ``social``: a courtesy, such as a greeting or thanks. ``recall``: it asks for what was
    said before. ``task``: it asks for something to be done, and says what.
    """

    answerable: Unit
    underspecified: Unit
    social: Unit
    recall: Unit
    task: Unit


class AppraisalCompleted(Event, frozen=True, kw_only=True, tag="forged_id.appraisal.completed"):
    """What the senses made of an input; all numbers rounded to six decimals, all later stages rest on them.

    ``models`` names and versions what the numbers came from. ``novelty`` is one minus the highest similarity to the
    session's last stimuli. ``proposed_action`` is what a thought about the input would do with it,
    ``affects_swarm`` whether it asks for configuration, broadcasts or other agents. ``embedding`` is the text's vector,
    whole numbers from -127 to 127 as base64: comparable where the embedder, first in ``models``, is the same. Of a long
    text ``valence`` and ``arousal`` rest on 2,048 characters, the embedding and what follows from it on 4,096: these
    steer, and neither pass nor refuse anything, so that what they leave is not counted as unread.
    ``turn`` is what the text is as a turn of talk; None in events that are older than that reading.
    ``allowed`` names the operators' allowances that took something of the input out before trust and risks were judged.
    """

    models: str
    conversation_topic: str
    topic_confidence: Unit
    similar_topic: str
    is_new_topic: bool
    layers: tuple[LayerTrust, ...]
    valence: Valence
    arousal: Unit
    novelty: Unit
    uncertainty: Unit
    risks: Risks
    proposed_action: ProposedAction
    affects_swarm: bool
    embedding: Personal = ""
    turn: TurnReading | None = None
    allowed: tuple[str, ...] = ()


class AnswerAppraised(Event, frozen=True, kw_only=True, tag="forged_id.appraisal.answer_appraised"):
    """What the senses made of a model's answer, before anybody reads it.

    ``request`` is the id of the event that asked for it, ``loop_id`` the loop it is of. ``alignment`` is how well it
    addresses what was asked, ``drift`` how far it strays from it and from what was remembered, both neutral where too
    few words are there to judge by (``judged`` is false); ``bias_tags`` are the biases that its words show, ``models``
    names what the numbers came from.
    """

    request: str
    loop_id: str
    alignment: Unit
    drift: Unit
    bias_tags: tuple[str, ...]
    models: str
    judged: bool = True


class AppraisalConfigured(Configured, frozen=True, kw_only=True, tag="forged_id.appraisal.configured"):
    """The settings of appraisal, from here on."""


class AppraisalFailed(Failed, frozen=True, kw_only=True, tag="forged_id.appraisal.failed"):
    """A message that appraisal could not decide."""


ENTRIES = (
    Entry(
        event=AppraisalCompleted,
        owner="appraisal",
        scope=Scope.SESSION,
        meaning="An input in numbers: topic, trust of each layer, affect, novelty, uncertainty, risks.",
        sample=AppraisalCompleted(
            models="hashed-1+trust-1+affect-1+turn-1",
            conversation_topic="topic-1",
            topic_confidence=0.71,
            similar_topic="topic-1",
            is_new_topic=False,
            layers=(LayerTrust(layer="text", characters=28, truth=0.9, indeterminacy=0.1, falsehood=0.05),),
            valence=0.0,
            arousal=0.1,
            novelty=0.6,
            uncertainty=0.2,
            risks=Risks(),
            proposed_action="answer",
            affects_swarm=False,
            turn=TurnReading(answerable=0.81, underspecified=0.07, social=0.01, recall=0.02, task=0.09),
        ),
    ),
    Entry(
        event=AnswerAppraised,
        owner="appraisal",
        scope=Scope.SESSION,
        meaning="A model's answer in numbers: alignment, drift, and the biases it shows.",
        sample=AnswerAppraised(
            request="0" * 32,
            loop_id="0" * 32,
            alignment=0.82,
            drift=0.14,
            bias_tags=("overconfidence",),
            models="hashed-1+bias-1",
        ),
    ),
    *own_entries(
        AppraisalConfigured,
        AppraisalFailed,
        owner="appraisal",
        scope=Scope.SESSION,
        then="its exchange, if it has one, ends as FAILED",
    ),
)
