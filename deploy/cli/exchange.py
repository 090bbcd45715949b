"""One exchange from the command line: send an input, wait for its end, show the decision beside the answer."""

import time
from collections.abc import Sequence
from contextlib import AsyncExitStack

import click
import msgspec

from actors.gateway import Edge, new_input
from deploy.cli.connect import connected
from deploy.cli.options import Target
from deploy.cli.speaking import Speaker, hearing
from deploy.rendering.decision import TOLD, Exchange, exchange_of, lines_of
from deploy.rendering.printable import printable
from deploy.rendering.terminal import console
from events.codec import Recorded, decode
from events.jetstream import JetStreamLog
from schemas.event import Event, topic_of
from schemas.subjects import stored_subject


async def converse(
    target: Target, text: str, *, agent: str, session: str, timeout: float, speaker: Speaker | None = None
) -> Exchange:
    """Have one input answered; ``speaker``, if any, is given what a model says while it speaks.

    Raises:
        InvalidInput: the text cannot be an input.
        Unavailable: not reachable, or no end within ``timeout`` seconds.
        LogError, NotRunning, BadContext: see ``deploy.cli.connect.connected``.
    """
    async with connected(target) as log, Edge.open(log) as edge, AsyncExitStack() as stack:
        inbox = await stack.enter_async_context(hearing(log.connection, speaker)) if speaker is not None else ""
        addressed = new_input(
            text,
            agent=agent,
            session=session,
            partitions=log.partitions,
            now_ns=time.time_ns(),
            reply_to=inbox,
            stream=bool(inbox),
            limits=target.config().gateway.limits,
        )
        begun = time.perf_counter()
        started = await edge.submit(addressed)
        answered = await edge.answer(addressed.exchange, timeout)
        latency_ms = round((time.perf_counter() - begun) * 1000, 3)
        events = await _told(log, agent, session, addressed.exchange, started, answered.seq)
        return exchange_of(addressed.exchange, agent, session, answered.event, events, latency_ms)


async def _told(log: JetStreamLog, agent: str, session: str, exchange: str, after: int, upto: int) -> Sequence[Event]:
    """Return an exchange's events that are told beside its answer, from those between its input and its end."""
    tokens = log.partitions.agent_token(agent), log.partitions.session_token(session)
    filters = [stored_subject(topic_of(kind), *tokens) for kind in TOLD]
    return [
        recorded.message.event
        async for batch in log.history(filters, after, upto)
        for recorded in map(decode, batch)
        if isinstance(recorded, Recorded) and recorded.message.exchange == exchange
    ]


def show(found: Exchange, *, as_json: bool, spoken: str = "") -> None:
    """Print an exchange: the answer, and below it the decision; ``spoken`` is what stands on the terminal already."""
    if as_json:
        click.echo(msgspec.json.encode(found).decode())
        return
    answer = printable(found.response, keep="\n\t")
    if not spoken:
        click.echo(answer or click.style("(no words)", dim=True))
    elif answer.startswith(spoken):
        click.echo(answer.removeprefix(spoken))
    elif answer == spoken.rstrip():
        click.echo()
    else:
        click.echo()
        click.echo(f"{click.style('(in the end)', dim=True)} {answer}")
    for line in lines_of(found):
        console().print(line, soft_wrap=True)
