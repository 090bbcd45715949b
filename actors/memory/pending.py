"""What memory keeps of an exchange until it ends. Pure."""

from collections.abc import Iterable

import msgspec

from actors.contract.text.terms import MOST_READ
from actors.memory.extraction.corrections import EndedValue
from actors.memory.extraction.fact_extraction import ExtractedFacts
from actors.memory.layers.vectors import from_text
from schemas.actor import Message
from schemas.vocabulary.appraisal import AppraisalCompleted
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.memory import Fact, MemoryRecalled

UNCLASSIFIED = "unclassified"
"""The topic of an exchange that was not appraised."""

_MOST_NOTED = 8
"""Most memorized facts of an exchange that its gist (its summary in one line) contains."""


class Pending(msgspec.Struct, frozen=True, kw_only=True):
    """An open exchange: its text, its appraisal, and whether memory has recorded a recall for it.

    ``exchanges_before`` counts the session's inputs before this one. If it is ``forgotten``, its text is gone: nothing
    is recalled for it, and nothing of it is remembered. ``noted`` are the facts that a skill memorized for it. ``told``
    are the facts that its text states and takes back, as they were read at its recall, since the answer may depend on
    them. ``topic`` to ``embedding`` are appraisal's numbers; ``model`` is what made the embedding.
    """

    agent: str
    session: str
    text: str
    exchanges_before: int
    topic: str = UNCLASSIFIED
    topic_confidence: float = 0.0
    is_new_topic: bool = False
    salience: float = 0.0
    model: str = ""
    embedding: bytes = b""
    recalled: bool = False
    forgotten: bool = False
    noted: tuple[str, ...] = ()
    told: ExtractedFacts = ExtractedFacts((), ())


def pending_of(message: Message, received: InputReceived, exchanges_before: int) -> Pending:
    """Return what is kept of an input: of its text the beginning, since no more is ever read."""
    # Until appraisal has spoken, it is only known that a session's first input begins a topic.
    return Pending(
        agent=message.agent,
        session=message.session,
        text=received.text[:MOST_READ],
        exchanges_before=exchanges_before,
        is_new_topic=exchanges_before == 0,
    )


def with_appraisal(pending: Pending, event: AppraisalCompleted) -> Pending:
    """Return an exchange with its appraisal.

    Its salience is the mean of arousal and novelty, so that new or exciting exchanges are remembered best.
    """
    return msgspec.structs.replace(
        pending,
        topic=event.conversation_topic,
        topic_confidence=event.topic_confidence,
        is_new_topic=event.is_new_topic,
        salience=round(0.5 * event.arousal + 0.5 * event.novelty, 6),
        # The first name in an appraisal's models is that of the embedder.
        model=event.models.partition("+")[0],
        embedding=b"" if pending.forgotten else from_text(event.embedding),
    )


def with_notes(pending: Pending, facts: Iterable[Fact]) -> Pending:
    """Return an exchange after facts were memorized for it: its gist will contain them."""
    return msgspec.structs.replace(pending, noted=(*pending.noted, *(fact.value for fact in facts))[-_MOST_NOTED:])


def with_recall(pending: Pending, event: MemoryRecalled) -> Pending:
    """Return an exchange after its recall, with what it states and takes back itself."""
    if pending.forgotten:
        return msgspec.structs.replace(pending, recalled=True)
    ended = tuple(EndedValue(each.key, each.why) for each in event.retired)
    return msgspec.structs.replace(pending, recalled=True, told=ExtractedFacts(event.told, ended))


def without_words(pending: Pending) -> Pending:
    """Return an exchange without its text."""
    return msgspec.structs.replace(
        pending, text="", embedding=b"", forgotten=True, noted=(), told=ExtractedFacts((), ())
    )
