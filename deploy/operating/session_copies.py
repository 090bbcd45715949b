"""Finding copies of a session's words in the agent's other sessions: all of them share what memory keeps."""

from collections.abc import Iterator

from actors.responder.composing.memories import fact_line
from deploy.operating.agent_events import events_of_agent
from events.jetstream import JetStreamLog
from events.replay.unread_events import UnreadEvents
from schemas.event import Event, topic_of
from schemas.subjects import stored_subject
from schemas.vocabulary.drift import DriftThought
from schemas.vocabulary.memory import (
    NO_LONGER_SO,
    FactsRetired,
    MemoryActionsAnswered,
    MemoryRecalled,
    MemoryRemembered,
    Recollection,
)

_REPEATING_EVENTS = (MemoryRemembered, MemoryActionsAnswered, MemoryRecalled, FactsRetired, DriftThought)
_TOPICS = tuple(topic_of(each) for each in _REPEATING_EVENTS)


async def sessions_with_copies(log: JetStreamLog, agent: str, session: str, unread: UnreadEvents) -> tuple[str, ...]:
    """Return the agent's other sessions in which memory recalled words of this one, sorted.

    Their events hold these words, sealed with their own keys; answers or a model's prompts may repeat them. Texts are
    compared literally, so words that were rephrased are not found. Memory's events that this release cannot read are
    noted in ``unread``. Raises LogError.
    """
    texts: set[str] = set()
    copying: set[str] = set()
    # All sessions of the agent are read: memory recalls in any of them what people said in another.
    tokens = log.partitions.agent_tokens(agent)
    filters = [stored_subject(topic, token, "*") for token in tokens for topic in _TOPICS]
    async for recorded in events_of_agent(log, agent, filters, unread=unread):
        message = recorded.message
        if message.session == session:
            texts.update(_texts_in(message.event))
        elif not texts.isdisjoint(_recalled(message.event)):
            copying.add(message.session)
    return tuple(sorted(copying))


def _texts_in(event: Event) -> Iterator[str]:
    if isinstance(event, MemoryRemembered):
        yield event.gist
        yield from map(fact_line, event.facts)
    elif isinstance(event, MemoryActionsAnswered):
        yield from map(fact_line, event.stored)
    elif isinstance(event, DriftThought):
        yield event.text  # an idle agent's thought quotes one episode; the event is addressed to the episode's session


def _recalled(event: Event) -> Iterator[str]:
    if isinstance(event, MemoryRecalled):
        yield from map(_recollected, event.recollections)
        yield from map(fact_line, event.retired)
    elif isinstance(event, MemoryActionsAnswered):
        yield from (_recollected(each) for result in event.results for each in result.recollections)
    elif isinstance(event, FactsRetired):
        yield from map(fact_line, event.retired)  # facts from another session, which this one corrected


def _recollected(memory: Recollection) -> str:
    return memory.text.removesuffix(NO_LONGER_SO)
