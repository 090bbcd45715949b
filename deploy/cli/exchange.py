"""One exchange from the command line: send an input, wait for its end, show the decision beside the answer."""

import time

import click
import msgspec

from actors.gateway import Edge, new_input
from deploy.cli.connect import connected
from deploy.cli.options import Target
from deploy.feeding.feeder import outcome_of
from deploy.feeding.outcomes import Outcome
from deploy.rendering.printable import printable
from events.codec import Recorded, decode
from events.jetstream import JetStreamLog
from schemas.event import topic_of
from schemas.subjects import stored_subject
from schemas.vocabulary.router import ModeSelected


class Exchange(msgspec.Struct, frozen=True, kw_only=True):
    """An exchange that ended: the decision, and what ``ask`` prints as JSON.

    ``confidence`` is the router's in its last choice of a mode, None where none was chosen. ``latency_ms`` is from
    sending the input until its end was heard.
    """

    exchange: str
    session: str
    agent: str
    stage: str
    action: str
    reason: str
    mode: str | None
    first_mode: str | None
    confidence: float | None
    response: str
    latency_ms: float


async def converse(target: Target, text: str, *, agent: str, session: str, timeout: float) -> Exchange:
    """Have one input answered.

    Raises:
        InvalidInput: the text cannot be an input.
        Unavailable: not reachable, or no end within ``timeout`` seconds.
        LogError, NotRunning, BadContext: see ``deploy.cli.connect.connected``.
    """
    async with connected(target) as log, Edge.open(log) as edge:
        addressed = new_input(text, agent=agent, session=session, partitions=log.partitions, now_ns=time.time_ns())
        begun = time.perf_counter()
        started = await edge.submit(addressed)
        answered = await edge.answer(addressed.exchange, timeout)
        row = outcome_of(answered, time.perf_counter() - begun, id=None)
        routed = await _routed(log, agent, session, addressed.exchange, started, answered.seq)
        return _exchange(row, answered.event.first_mode, agent, session, routed)


async def _routed(
    log: JetStreamLog, agent: str, session: str, exchange: str, after: int, upto: int
) -> ModeSelected | None:
    """Return the exchange's last choice of a mode, from the events between its input and its end."""
    tokens = log.partitions.agent_token(agent), log.partitions.session_token(session)
    found = None
    async for batch in log.history([stored_subject(topic_of(ModeSelected), *tokens)], after, upto):
        for recorded in map(decode, batch):
            if isinstance(recorded, Recorded) and recorded.message.exchange == exchange:
                event = recorded.message.event
                found = event if isinstance(event, ModeSelected) else found
    return found


def _exchange(row: Outcome, first_mode: str | None, agent: str, session: str, routed: ModeSelected | None) -> Exchange:
    return Exchange(
        exchange=row.exchange,
        session=session,
        agent=agent,
        stage=row.stage,
        action=row.action,
        reason=row.reason,
        mode=row.mode,
        first_mode=first_mode,
        confidence=routed.router_confidence if routed is not None else None,
        response=row.response,
        latency_ms=row.latency_ms,
    )


def decision_line(found: Exchange) -> str:
    """Return the decision in one line."""
    parts = [f"{found.stage} {found.action}", f"reason {found.reason}"]
    if found.mode is not None:
        first = "" if found.first_mode in (None, found.mode) else f" (first {found.first_mode})"
        parts.append(f"mode {found.mode}{first}")
    if found.confidence is not None:
        parts.append(f"confidence {found.confidence:.2f}")
    return " · ".join([*parts, f"{found.latency_ms:.1f} ms", found.exchange])


def show(found: Exchange, *, as_json: bool) -> None:
    """Print an exchange: the answer, and below it the decision."""
    if as_json:
        click.echo(msgspec.json.encode(found).decode())
        return
    click.echo(printable(found.response, keep="\n\t") or click.style("(no words)", dim=True))
    click.echo(click.style(printable(decision_line(found)), fg="green" if found.action == "EXECUTED" else "red"))
