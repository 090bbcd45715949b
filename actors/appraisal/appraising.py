"""Appraises an input: returns all that is inferred from it, as numbers rounded to six decimals.

A part of an input is its text, or one of its layers: a document, a tool's result and the like. Trust in it is a truth,
an indeterminacy and a falsehood (how far it gives orders to the model itself), each from 0 to 1.
"""

from collections.abc import Sequence
from functools import cache, partial

import msgspec

from actors.appraisal.measures.affect import VERSION as AFFECT_VERSION
from actors.appraisal.measures.affect import affect_of
from actors.appraisal.measures.biases import bias_tags_of
from actors.appraisal.measures.embedder import model_of
from actors.appraisal.measures.risks import whole_intent_of
from actors.appraisal.measures.trust import full_trust, less_trusted, trust_in_unread_layers, trust_model, trust_of
from actors.appraisal.measures.turn_reading import turn_model, turn_reading_of
from actors.appraisal.measures.vectors import to_text
from actors.appraisal.session_memory import DECIMALS, SessionMemory, novelty_of, topic_of
from actors.appraisal.settings import AppraisalSettings
from actors.contract.text.excerpt import WHOLE, excerpt_of
from actors.contract.text.joined_parts import joined_parts
from actors.contract.text.judge.model import Model as Judge
from actors.contract.text.judge.weights import judge_of
from schemas.vocabulary.appraisal import AppraisalCompleted, LayerTrust
from schemas.vocabulary.gateway import InputReceived

TEXT = "text"
"""The name of the part that holds the user's own text."""


def appraise(
    memory: SessionMemory,
    received: InputReceived,
    settings: AppraisalSettings,
    models: tuple[str, ...] = (),
    judged: InputReceived | None = None,
) -> AppraisalCompleted:
    """Return the appraisal of an input in a session.

    ``models`` names the models that the recorded numbers rest on, if the input was appraised before; else it is empty.

    ``judged`` is the input without the text that operators have allowed. Trust and risks are computed from it, all else
    from the whole input.
    """
    judged = received if judged is None else judged
    trust_judge, turn_judge = judge_of(models, trust_model()), judge_of(models, turn_model())
    embedder = model_of(settings.embedder)
    # Topics found with another embedder cannot be compared. Only their count is kept; it numbers the next topic.
    known = memory if memory.models == embedder.name else SessionMemory(named=memory.named)
    embedding = embedder.embed(received.text)
    threshold = settings.topic_threshold if embedder.semantic else settings.topic_threshold_hashed
    topic = topic_of(known, embedding, threshold)
    intent = whole_intent_of(judged.text)
    layers = _layers(judged, settings, trust_judge, intent.unread)
    affect = affect_of(received.text)
    return AppraisalCompleted(
        models=f"{embedder.name}+{trust_judge.name}+{AFFECT_VERSION}+{turn_judge.name}",
        conversation_topic=topic.topic,
        topic_confidence=topic.confidence,
        similar_topic=topic.similar,
        is_new_topic=topic.is_new,
        layers=layers,
        valence=affect.valence,
        arousal=affect.arousal,
        novelty=novelty_of(known, embedding),
        uncertainty=round(0.5 * (1.0 - topic.confidence) + 0.5 * layers[0].indeterminacy, DECIMALS),
        risks=intent.risks,
        proposed_action=intent.proposed_action,
        affects_swarm=intent.affects_swarm,
        embedding=to_text(embedding),
        turn=turn_reading_of(received.text, turn_judge),
    )


@cache
def warm_up(settings: AppraisalSettings) -> None:
    """Load what the first appraisals would otherwise have to load."""
    appraise(SessionMemory(), InputReceived(text="Héllo, how do I get there?"), settings)
    bias_tags_of("It is perhaps so.")
    excerpt_of("é" * (WHOLE + 1))


def embedder_in(models: str) -> str:
    """Return the name of the embedder among the models that an appraisal names."""
    return models.partition("+")[0]


def _layers(
    received: InputReceived, settings: AppraisalSettings, trust_judge: Judge, unread: int
) -> tuple[LayerTrust, ...]:
    judged = [received.text, *(layer.content for layer in received.layers if layer.role in settings.judged_layers)]
    trusts = _trusts(tuple(dict.fromkeys(filter(str.strip, judged))), settings.judged_characters, trust_judge)
    layers = [less_trusted(_of_part(trusts, trust_judge, TEXT, received.text), unread)]
    for index, layer in enumerate(received.layers):
        judge = partial(_of_part, trusts, trust_judge) if layer.role in settings.judged_layers else full_trust
        layers.append(judge(f"{layer.role}[{index}]", layer.content))
    if received.left_out:
        layers.append(trust_in_unread_layers(f"layers[{len(received.layers)}..]", received.left_out))
    return tuple(layers)


def _trusts(texts: Sequence[str], characters: int, trust_judge: Judge) -> dict[str, LayerTrust]:
    """Return the trust in each text; texts that are read together have the same trust."""
    trusts: dict[str, LayerTrust] = {}
    for joined in joined_parts(texts, characters):
        trust = trust_of("", joined.text, joined.unread, trust_judge)
        trusts.update((texts[index], trust) for index in joined.indexes)
    return trusts


def _of_part(trusts: dict[str, LayerTrust], trust_judge: Judge, layer: str, text: str) -> LayerTrust:
    trust = trusts.get(text) or trust_of(layer, text, judge=trust_judge)
    return msgspec.structs.replace(trust, layer=layer, characters=len(text))
