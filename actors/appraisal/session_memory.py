"""What appraisal keeps of a session: its topics and the embeddings of its latest inputs, all as integers. Pure."""

import msgspec

from actors.appraisal.measures.vectors import DIMENSIONS, centroid_of, centroid_similarity, moved_centroid, similarity
from actors.appraisal.settings import AppraisalSettings

DECIMALS = 6
"""Decimals of every recorded number."""


class Topic(msgspec.Struct, frozen=True):
    """A topic: its name, the centroid of its inputs' embeddings, and how many inputs it had."""

    name: str
    centroid: bytes
    inputs: int


class SessionMemory(msgspec.Struct, frozen=True):
    """A session: its ``topics`` by last use, and ``stimuli``, the embeddings of its latest inputs, joined; latest last.

    ``models`` names the embeddings' model: embeddings of different models cannot be compared. ``named`` counts all
    topics so far.
    """

    models: str = ""
    topics: tuple[Topic, ...] = ()
    named: int = 0
    stimuli: bytes = b""


class TopicMatch(msgspec.Struct, frozen=True):
    """The topic of an input; ``similar`` is the nearest earlier topic, empty for none."""

    topic: str
    confidence: float
    similar: str
    is_new: bool


def topic_of(memory: SessionMemory, embedding: bytes, threshold: float) -> TopicMatch:
    """Return the topic of an input: the nearest one, if its similarity reaches the threshold; else a new one.

    The confidence is the similarity to the topic; for a new topic, 1 - the similarity to the nearest earlier one. An
    input without usable words (its embedding is zero) stays with the latest topic, at confidence 0.
    """
    if not any(embedding) and memory.topics:
        latest = memory.topics[-1].name
        return TopicMatch(latest, 0.0, latest, False)
    # Of equally near topics, the later one.
    ranked = [(centroid_similarity(embedding, topic.centroid), index) for index, topic in enumerate(memory.topics)]
    nearest, index = max(ranked, default=(0.0, -1))
    similar = memory.topics[index].name if index >= 0 else ""
    if index >= 0 and nearest >= threshold:
        return TopicMatch(similar, round(nearest, DECIMALS), similar, False)
    return TopicMatch(f"topic-{memory.named + 1}", round(1.0 - nearest, DECIMALS), similar, True)


def novelty_of(memory: SessionMemory, embedding: bytes) -> float:
    """Return 1 minus the highest similarity to the session's latest inputs; 1 for the first."""
    if not memory.stimuli:
        return 1.0
    return round(1.0 - float(similarity(embedding, memory.stimuli).max()), DECIMALS)


def with_input(memory: SessionMemory, name: str, embedding: bytes, settings: AppraisalSettings) -> SessionMemory:
    """Return the session's memory after an input of the topic ``name``."""
    known = next((topic for topic in memory.topics if topic.name == name), None)
    topic = (
        Topic(name, centroid_of(embedding), 1)
        if known is None
        else Topic(name, moved_centroid(known.centroid, embedding, known.inputs), known.inputs + 1)
    )
    others = tuple(each for each in memory.topics if each is not known)
    return SessionMemory(
        models=memory.models,
        topics=(*others, topic)[-settings.topics :],
        named=memory.named + (known is None),
        stimuli=(memory.stimuli + embedding)[-settings.stimuli * DIMENSIONS :],
    )
