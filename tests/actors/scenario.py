"""What these tests are written with: the project's own way to test deciders, which actors of others use as well."""

from actors.testing import HERE, MS, START_NS, Address, Partition, as_messages, configured
from schemas.actor import Message
from schemas.event import Event
from schemas.identity import event_id
from schemas.vocabulary.llm import LlmCompleted
from schemas.vocabulary.reflex import ReflexAnswerPassed

__all__ = ["HERE", "MS", "START_NS", "Address", "Partition", "ReadPartition", "as_messages", "configured", "read"]


def read(partition: Partition) -> ReflexAnswerPassed:
    """Return reflex's word that what the partition heard last may pass."""
    return ReflexAnswerPassed(by="model", source=event_id("outside", "test", partition.seq))


class ReadPartition(Partition):
    """A partition that hears, behind each word of a model, that reflex has read it and lets it pass."""

    def hear(self, event: Event, address: Address = HERE, *, after_ms: int = 0) -> list[Message]:
        """Deliver an event, and reflex's word on it; return the messages that both led to."""
        led_to = super().hear(event, address, after_ms=after_ms)
        return [*led_to, *super().hear(read(self), address)] if isinstance(event, LlmCompleted) else led_to
