"""Four actors in a row on the real runtime, with a vocabulary of the benchmark's own: the process under measurement.

Run by ``bench.hops`` as ``python -m bench.hops_neuraxis URL``; prints ``ready`` and works until its standard input ends.
"""

import asyncio
import sys
from collections.abc import Iterable

import msgspec

from actors.runtime.worker import Worker
from events.jetstream import JetStreamLog, KeyValueMembership, KeyValueSnapshots
from schemas.actor import Actor, Message, Scope
from schemas.catalogue import CATALOGUE
from schemas.entry import Entry
from schemas.event import Configured, Event, Failed, topic_of

HOPS = ("first", "second", "third", "fourth")


class Asked(Event, frozen=True, kw_only=True, tag="forged_id.asked.received"):
    """What starts a pipeline."""

    number: int
    text: str


class Settings(msgspec.Struct, frozen=True):
    """Nothing to set."""


class Seen(msgspec.Struct, frozen=True):
    """How many messages were folded."""

    count: int = 0


def _hop(name: str, consumed: type[Event]) -> tuple[Actor[Seen], type[Event], tuple[Entry, ...]]:
    """Return an actor that passes on what it consumes as its own event, that event's type, and its entries."""
    topic = f"forged_id.{name}"
    passed = msgspec.defstruct(
        f"{name.title()}Passed",
        [("number", int), ("text", str)],
        bases=(Event,),
        tag_field="topic",
        tag=f"{topic}.passed",
        frozen=True,
        kw_only=True,
    )
    configured = msgspec.defstruct(
        f"{name.title()}Configured", [], bases=(Configured,), tag=f"{topic}.configured", frozen=True, kw_only=True
    )
    failed = msgspec.defstruct(
        f"{name.title()}Failed", [], bases=(Failed,), tag=f"{topic}.failed", frozen=True, kw_only=True
    )

    def decide(state: Seen, message: Message) -> Iterable[Event]:
        event = message.event
        return (passed(number=event.number, text=event.text),)  # type: ignore[attr-defined]  # each hop has them

    def evolve(state: Seen, message: Message) -> Seen:
        return Seen(state.count + 1)

    actor = Actor(
        name=name,
        scope=Scope.SESSION,
        consumes=(consumed,),
        state_type=Seen,
        settings_type=Settings,
        initial=Seen,
        decide=decide,
        evolve=evolve,
        configured=configured,
        failed=failed,
    )
    samples = (
        passed(number=1, text=""),
        configured(settings={}, settings_hash="", behaviour=1),
        failed(reason="", error="", failed_seq=1, failed_topic=""),
    )
    entries = tuple(
        Entry(
            event=type(sample),
            owner=name,
            scope=Scope.SESSION,
            meaning="A hop of a benchmark.",
            sample=sample,
            spontaneous=type(sample) is configured,
        )
        for sample in samples
    )
    return actor, passed, entries


def chain() -> list[Actor[Seen]]:
    """Enter the benchmark's vocabulary into this process's catalogue; return its actors, each consuming the one before."""
    asked = Entry(
        event=Asked,
        owner="asked",
        scope=Scope.SESSION,
        meaning="Starts a pipeline of a benchmark.",
        sample=Asked(number=1, text=""),
    )
    actors, consumed, entries = [], Asked, [asked]
    for name in HOPS:
        actor, consumed, more = _hop(name, consumed)
        actors.append(actor)
        entries += more
    CATALOGUE.update({topic_of(entry.event): entry for entry in entries})
    return actors


async def _work(url: str) -> None:
    log = await JetStreamLog.connect(url)
    worker = Worker(
        log,
        await KeyValueSnapshots.over(log.connection),
        await KeyValueMembership.over(log.connection),
        chain(),
        name="bench",
        build="bench",
    )
    stop = asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(worker.run(stop))
        await worker.ready.wait()
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.read)
        stop.set()
        await running
    await log.close()


if __name__ == "__main__":
    asyncio.run(_work(sys.argv[1]))
