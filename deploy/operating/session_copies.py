"""Copies of a session's words in other sessions of its agent: these share what memory keeps."""

from collections.abc import Iterator

from actors.responder.composing.memories import fact_line
from deploy.operating.agent_events import events_of_agent
from events.jetstream import JetStreamLog
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

_TELLING = (MemoryRemembered, MemoryActionsAnswered, MemoryRecalled, FactsRetired, DriftThought)
_TOPICS = tuple(topic_of(each) for each in _TELLING)


async def sessions_with_copies(log: JetStreamLog, agent: str, session: str) -> tuple[str, ...]:
    """Return the agent's other sessions in which memory recalled words of this one, sorted.

    Their events hold these words under their own keys, and answers or a model's prompts may repeat them. Texts are
    compared literally, so words that were rephrased are not found. Raises LogError.
    """
    texts: set[str] = set()
    reminded: set[str] = set()
    # In all sessions of the agent: memory recalls in any session what was told in one.
    tokens = log.partitions.agent_tokens(agent)
    filters = [stored_subject(topic, token, "*") for token in tokens for topic in _TOPICS]
    async for recorded in events_of_agent(log, agent, filters):
        message = recorded.message
        if message.session == session:
            texts.update(_texts_in(message.event))
        elif not texts.isdisjoint(_recalled(message.event)):
            reminded.add(message.session)
    return tuple(sorted(reminded))


def _texts_in(event: Event) -> Iterator[str]:
    if isinstance(event, MemoryRemembered):
        yield event.gist
        yield from map(fact_line, event.facts)
    elif isinstance(event, MemoryActionsAnswered):
        yield from map(fact_line, event.stored)
    elif isinstance(event, DriftThought):
        yield event.text  # it quotes the session of its episode; the event is addressed to that session


def _recalled(event: Event) -> Iterator[str]:
    if isinstance(event, MemoryRecalled):
        yield from map(_recollected, event.recollections)
        yield from map(fact_line, event.retired)
    elif isinstance(event, MemoryActionsAnswered):
        yield from (_recollected(each) for result in event.results for each in result.recollections)
    elif isinstance(event, FactsRetired):
        yield from map(fact_line, event.retired)  # told by another session, and corrected by this one


def _recollected(memory: Recollection) -> str:
    return memory.text.removesuffix(NO_LONGER_SO)
