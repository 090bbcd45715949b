"""The guards' latency through a real broker: from an input to their verdict, compared with as many plain hops.

Inputs come at a fixed rate without waiting for answers, a session each: short questions, texts of 2 KB and attacks. All
actors run in one process with the settings they ship with. The times are those of the log: from the server's timestamp
of an input to that of the arbiter's verdict (after four persisted hops: reflex, intuition, coherence, arbiter) or of an
earlier verdict that stops the input. The peer is FastStream with JetStream on the same broker, with the same inputs and
four persisted hops that pass the text on and judge nothing. Sides take turns; the median round counts.

Below these are the parts of the guards' path: for each actor, the time from a message to the event that it led to, and
how much of it was the decision. The p99 to the arbiter should be below 25 ms.

Run it with ``python -m bench.system.guards [ROUNDS]``.
"""

import contextlib
import statistics
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from nats.aio.client import Client

from actors.gateway.inputs import new_input
from bench.harness.hops_faststream import SUBJECTS
from bench.harness.side import OURS, Side, measure_and_show, number_in, open_sides
from bench.harness.table import Row, in_turns, percentile_rows, rows_of
from bench.system.guards_inputs import text_of
from events.jetstream import Access, Connection
from events.jetstream.reading.stream_reader import StreamReader
from events.log import Stored
from schemas.envelope import LATENCY
from schemas.event import topic_of
from schemas.permissions import STREAM
from schemas.subjects import Partitions, split_stored, topic_filter
from schemas.vocabulary.arbiter import ArbiterDenied, ArbiterEscalated, ArbiterImmediate
from schemas.vocabulary.breaker import BreakerTripped, BreakerWithheld
from schemas.vocabulary.coherence import CoherenceRejected
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.intuition import IntuitionRejected
from schemas.vocabulary.reflex import ReflexBlocked
from schemas.vocabulary.responder import ResponseEmitted

ROUNDS = 3
STEADY_S = 5.0
"""Seconds of a round."""

RATE = 100
"""Inputs a second."""

ARBITER = frozenset(topic_of(event) for event in (ArbiterDenied, ArbiterEscalated, ArbiterImmediate))
"""The verdicts at the end of the path."""

EARLIER = frozenset(
    topic_of(event) for event in (ReflexBlocked, IntuitionRejected, CoherenceRejected, BreakerTripped, BreakerWithheld)
)
"""The verdicts that stop an input on its way."""

VERDICTS = ARBITER | EARLIER
PATH = ("reflex", "intuition", "appraisal", "coherence", "breaker", "arbiter")
"""The actors whose parts are shown."""

_TO_ARBITER, _STOPPED = f"{OURS}, to the arbiter", f"{OURS}, stopped earlier"
_WARM_UP_S = 2.0
_PARTITIONS = Partitions()
_INPUT = topic_of(InputReceived)
Samples = dict[str, list[float]]
"""Case -> the samples measured, in seconds."""


async def _ask_neuraxis(client: Client, number: int) -> None:
    record = new_input(
        text_of(number),
        agent="agent",
        session=f"session-{number}",
        partitions=_PARTITIONS,
        now_ns=time.time_ns(),
        exchange=f"{number:032x}",
    ).record
    await client.publish(record.subject, record.data, headers=dict(record.headers))


async def _round(connection: Connection, side: Side) -> list[Stored]:
    """Send a round of inputs; return all that was stored because of them."""
    after = await side.last_seq()
    await side.steady(RATE, STEADY_S)
    reading = StreamReader(connection, side.stream, (">",), after, f"bench-{side.stream}-{after}")
    missing = await reading.start()
    messages: list[Stored] = []
    while len(messages) < missing:
        messages += await reading.next()
    await reading.close()
    return messages


def verdicts(messages: Iterable[Stored]) -> dict[str, tuple[str, float]]:
    """Return, by exchange, the topic of its first verdict, and the seconds from the storing of its input to that."""
    input_ns: dict[str, int] = {}
    found: dict[str, tuple[str, float]] = {}
    for stored in messages:
        topic, exchange = split_stored(stored.subject)[0], stored.headers.get("ce-exchange", "")
        if topic == _INPUT:
            input_ns[exchange] = stored.time_ns
        elif topic in VERDICTS and exchange in input_ns and exchange not in found:
            found[exchange] = topic, (stored.time_ns - input_ns[exchange]) / 1e9
    if found.keys() != input_ns.keys():
        raise RuntimeError(f"{len(input_ns) - len(found)} of {len(input_ns)} inputs came to no verdict")
    return found


def actor_parts(messages: Iterable[Stored]) -> Samples:
    """Return, by actor of the path, the seconds from messages to the events they led to, and those of its decisions."""
    stored_ns: dict[int, int] = {}
    found: Samples = defaultdict(list)
    for stored in messages:
        stored_ns[stored.seq] = stored.time_ns
        actor = split_stored(stored.subject)[0].split(".")[1]
        cause_ns = stored_ns.get(int(stored.headers.get("ce-causeseq", 0)))
        if actor in PATH and cause_ns is not None:
            found[f"{actor} after its cause"].append((stored.time_ns - cause_ns) / 1e9)
            found[f"{actor} deciding"].append(int(stored.headers[LATENCY]) / 1e6)
    return found


def plain_hops(messages: Iterable[Stored]) -> list[float]:
    """Return the seconds from the storing of each of the peer's inputs to that of the fourth hop's message."""
    input_ns: dict[int, int] = {}
    took: list[float] = []
    for stored in messages:
        number = number_in(stored.data)
        if stored.subject.endswith(f".{SUBJECTS[0]}"):
            input_ns[number] = stored.time_ns
        elif stored.subject.endswith(f".{SUBJECTS[-1]}"):
            took.append((stored.time_ns - input_ns[number]) / 1e9)
    return took


def samples_of(found: Mapping[str, tuple[str, float]]) -> Samples:
    """Return the times to a verdict: all, those to the arbiter's, and those to an earlier one."""
    return {
        OURS: [took for _, took in found.values()],
        _TO_ARBITER: [took for topic, took in found.values() if topic in ARBITER],
        _STOPPED: [took for topic, took in found.values() if topic not in ARBITER],
    }


async def _run(url: str, sync: str, rounds: int) -> list[Row]:
    latencies: dict[str, list[Sequence[float]]] = defaultdict(list)
    actor_times: dict[str, list[Sequence[float]]] = defaultdict(list)
    counts: Counter[str] = Counter()
    connection = await Connection.open(Access(servers=url))
    async with contextlib.AsyncExitStack() as stack:
        stack.push_async_callback(connection.close)
        ours = Side.open(
            url,
            ["-m", "bench.harness.worker", url, sync],
            STREAM,
            topic_filter(topic_of(ResponseEmitted)),
            _ask_neuraxis,
            lambda msg: int((msg.headers or {})["ce-exchange"], 16),
        )
        sides = await open_sides(stack, ours, url, text_of)
        for side in sides.values():
            await side.steady(RATE, _WARM_UP_S)
            side.cpu_us.clear()
        for name in in_turns(sides, rounds):
            messages = await _round(connection, sides[name])
            if name != OURS:
                latencies[name].append(sorted(plain_hops(messages)))
                continue
            found = verdicts(messages)
            counts.update(topic for topic, _ in found.values())
            for samples, into in ((samples_of(found), latencies), (actor_parts(messages), actor_times)):
                for case, seconds in samples.items():
                    into[case].append(sorted(seconds))
    peers = [name for name in sides if name != OURS]
    cpu_us = {name: statistics.median(side.cpu_us) for name, side in sides.items()}
    setting = f"sync {sync}, {RATE}/s"
    return [
        *percentile_rows(latencies, {OURS: peers, _TO_ARBITER: peers, _STOPPED: peers}, setting),
        *percentile_rows(actor_times, {}, setting),
        *rows_of(cpu_us, {OURS: peers}, setting, "CPU µs an input"),
        *rows_of(dict(sorted(counts.items())), {}, f"sync {sync}, verdicts", "inputs"),
    ]


def main() -> None:
    """Measure every case and print the rows; takes about two minutes."""
    measure_and_show(_run, ROUNDS)


if __name__ == "__main__":
    main()
