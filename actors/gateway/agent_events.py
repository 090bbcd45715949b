"""What is told of an agent from outside: checking its names at the door, and giving it its envelope."""

import secrets

from actors.gateway.outside import MAX_NAME, Addressed, InvalidField, build_event
from schemas.event import Event, topic_of
from schemas.identity import event_id
from schemas.subjects import Partitions


def agent_event(event: Event, agent: str, *, key: str, partitions: Partitions, now_ns: int) -> Addressed:
    """Check an event of an agent, and wrap it.

    The same event type, agent and ``key`` have the same event id, so that a repeat within the stream's dedupe window is
    stored once; an empty key is a fresh one.

    Raises:
        InvalidField: the agent's name cannot be accepted.
        InvalidInput: the event is not what its type says.
    """
    check_name("agent", agent)
    id = event_id(f"{topic_of(event)}\n{agent}\n{key or secrets.token_hex(16)}", "gateway", 0)
    return build_event(event, id=id, agent=agent, partitions=partitions, now_ns=now_ns)


def check_name(field: str, value: str, *, most: int = MAX_NAME) -> None:
    """Raise InvalidField for a name that is blank, longer than ``most`` characters, or holds control characters."""
    if not value.strip():
        raise InvalidField(field, f"{field} is empty: name one")
    if len(value) > most:
        raise InvalidField(field, f"{field} has {len(value)} characters: at most {most}")
    if not value.isprintable():
        raise InvalidField(field, f"{field} holds a control character, or no Unicode text: leave it out")
