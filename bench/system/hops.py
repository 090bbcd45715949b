"""Four persisted hops, input to A to B to C to D: this runtime, and FastStream with JetStream (pull and push).

Each side has a process of its own and the same load from this one: inputs published without waiting, ends read from
the stream by an ordered consumer. Saturated: pipelines a second with a fixed number under way. At a fixed rate: the
time from an input's publication to its end. Sides take turns; the median round counts. The peer does less: its appends
do not check that nobody else has appended meanwhile, it keeps no state, and a handler that dies between publishing and
acknowledging repeats its event. Run it with ``python -m bench.system.hops [ROUNDS]``.
"""

import contextlib
import statistics
from functools import partial

from nats.aio.client import Client

from bench.harness.hops_neuraxis import Asked, FourthPassed
from bench.harness.side import OURS, Side, measure_and_show, number_in, open_sides
from bench.harness.table import Measure, Row, measure_in_turns, percentile_rows, rows_of
from schemas.envelope import Envelope, encode_headers
from schemas.event import encode_event, topic_of
from schemas.identity import event_id
from schemas.permissions import STREAM
from schemas.subjects import Partitions, stored_subject, topic_filter

ROUNDS = 3
STEADY_S = 3.0
"""Seconds of a round at a fixed rate."""

RATE = 100
"""Inputs a second in the latency cases."""

UNDER_WAY = (64, 512)
"""Pipelines that are kept under way in the saturated cases."""

SESSIONS = 499
"""Sessions that the inputs are spread over, in turn."""

TEXT = "What did we discuss about the lease of the office? " * 3
_PARTITIONS = Partitions()


async def _ask_neuraxis(client: Client, number: int) -> None:
    exchange = event_id("exchange", "bench", number)
    session = f"session-{number % SESSIONS}"
    event = Asked(number=number, text=TEXT)
    envelope = Envelope(
        id=event_id(exchange, "asked", 0),
        topic=topic_of(event),
        source="neuraxis/bench",
        time="2025-06-15T15:06:40.000000Z",
        agent="agent",
        session=session,
        exchange=exchange,
    )
    subject = stored_subject(topic_of(event), _PARTITIONS.agent_token("agent"), _PARTITIONS.session_token(session))
    await client.publish(subject, encode_event(event), headers=encode_headers(envelope))


async def _run(url: str, sync: str, rounds: int) -> list[Row]:
    rows: list[Row] = []
    async with contextlib.AsyncExitStack() as stack:
        ours = Side.open(
            url,
            ["-m", "bench.harness.hops_neuraxis", url, sync],
            STREAM,
            topic_filter(topic_of(FourthPassed)),
            _ask_neuraxis,
            lambda msg: number_in(msg.data),
        )
        sides = await open_sides(stack, ours, url, lambda _: TEXT)
        for side in sides.values():
            await side.saturated(UNDER_WAY[0])
        peers = {OURS: [name for name in sides if name != OURS]}
        for under_way in UNDER_WAY:
            for side in sides.values():
                side.cpu_us.clear()
            cases: dict[str, Measure] = {name: partial(side.saturated, under_way) for name, side in sides.items()}
            medians = await measure_in_turns(cases, rounds)
            rows += rows_of(medians, peers, f"sync {sync}, {under_way} under way", "pipelines/s")
            medians = {name: statistics.median(side.cpu_us) for name, side in sides.items()}
            rows += rows_of(medians, peers, f"sync {sync}, {under_way} under way", "CPU µs a pipeline")
        took: dict[str, list[list[float]]] = {name: [] for name in sides}
        for _ in range(rounds):
            for name, side in sides.items():
                took[name].append(await side.steady(RATE, STEADY_S))
        rows += percentile_rows(took, peers, f"sync {sync}, {RATE}/s")
    return rows


def main() -> None:
    """Measure every case and print the rows; takes about four minutes."""
    measure_and_show(_run, ROUNDS)


if __name__ == "__main__":
    main()
