"""Where a session's words went within its agent: sessions of one agent share what memory keeps."""

from collections.abc import Iterator

from deploy.operating.agent_events import events_of_agent
from events.jetstream import JetStreamLog
from schemas.event import Event, topic_of
from schemas.subjects import stored_subject
from schemas.vocabulary.drift import DriftThought
from schemas.vocabulary.memory import (
    NO_LONGER_SO,
    Fact,
    FactsRetired,
    MemoryActionsAnswered,
    MemoryRecalled,
    MemoryRemembered,
    Recollection,
    Retired,
)

_TELLING = (MemoryRemembered, MemoryActionsAnswered, MemoryRecalled, FactsRetired, DriftThought)
_TOPICS = tuple(topic_of(each) for each in _TELLING)


async def sessions_with_copies(log: JetStreamLog, agent: str, session: str) -> tuple[str, ...]:
    """Return the agent's other sessions that were reminded of what this one told, sorted.

    Their events hold these words under their own keys, and answers or a model's prompts may repeat them. Found by the
    very texts: words that were put otherwise on the way are not. Raises LogError.
    """
    told: set[str] = set()
    reminded: set[str] = set()
    # By agent alone: what is told in one session comes to mind in any.
    filters = [stored_subject(topic, log.partitions.agent_token(agent), "*") for topic in _TOPICS]
    async for recorded in events_of_agent(log, agent, filters):
        message = recorded.message
        if message.session == session:
            told.update(_told(message.event))
        elif not told.isdisjoint(_recalled(message.event)):
            reminded.add(message.session)
    return tuple(sorted(reminded))


def _told(event: Event) -> Iterator[str]:
    if isinstance(event, MemoryRemembered):
        yield event.gist
        yield from map(_text_of, event.facts)
    elif isinstance(event, MemoryActionsAnswered):
        yield from map(_text_of, event.stored)
    elif isinstance(event, DriftThought):
        yield event.text  # it quotes the session of its episode, which it is addressed to


def _text_of(fact: Fact | Retired) -> str:
    return f"{fact.key}: {fact.value}"


def _recalled(event: Event) -> Iterator[str]:
    if isinstance(event, MemoryRecalled):
        yield from map(_recollected, event.recollections)
        yield from map(_text_of, event.retired)
    elif isinstance(event, MemoryActionsAnswered):
        yield from (_recollected(each) for result in event.results for each in result.recollections)
    elif isinstance(event, FactsRetired):
        yield from map(_text_of, event.retired)  # what another session told, and this one took back


def _recollected(memory: Recollection) -> str:
    return memory.text.removesuffix(NO_LONGER_SO)
