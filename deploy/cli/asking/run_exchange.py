"""One exchange from the command line: send an input, wait for its end, show the decision beside the answer."""

import asyncio
import shutil
import sys
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from typing import Unpack

import click

from actors.gateway.inputs import InputOptions
from deploy.cli.asking.streamed_answer import StreamedAnswer
from deploy.cli.connect import input_limits, open_log
from deploy.cli.options import Target
from deploy.cli.outcomes import CheckFailed
from deploy.cli.output import print_json
from deploy.cli.rendering.decision import SHOWN_EVENTS, Exchange, exchange_of, lines_of, sentence_of
from deploy.cli.rendering.layout.printable import printable
from deploy.cli.rendering.layout.terminal import console, print_hanging
from deploy.cli.rendering.layout.wrapping import wrap_words
from deploy.client import client_on
from deploy.operating.deadline import Deadline
from events.decoding import Recorded, decode
from events.errors import LogError
from events.jetstream import JetStreamLog
from schemas.event import Event, topic_of
from schemas.subjects import stored_subject

_FINAL_ANSWER_MARK = "(in the end)"
_WHERE_TO_LOOK = "`neuraxis doctor` tells, and `neuraxis why {}` when it has one"


async def run_exchange(
    target: Target,
    text: str,
    deadline: Deadline,
    *,
    streamed: StreamedAnswer | None = None,
    **given: Unpack[InputOptions],
) -> Exchange:
    """Send one input and wait for its end in the time that is left; ``streamed`` shows a model's answer as it comes.

    Raises:
        InvalidInput: the text cannot be an input.
        Unavailable: the broker cannot be reached, or the end did not come in time.
        UnknownOutcome: the broker did not confirm in time, so the input may or may not be stored.
        LogError, NotRunning, BadContext: see ``deploy.cli.connect.open_log``.
    """
    async with AsyncExitStack() as stack:
        log = await stack.enter_async_context(open_log(target, deadline=deadline))
        client = await stack.enter_async_context(client_on(log, input_limits(target)))
        inbox = await stack.enter_async_context(client.receiving_pieces(streamed.take)) if streamed is not None else ""
        wrapped = client.input(text, inbox=inbox, **given)
        exchange = wrapped.exchange
        deadline.note_sending(f"exchange {exchange}", f"`neuraxis why {exchange}` tells, once the broker answers")
        begun = time.perf_counter()
        input_seq = await client.submit(wrapped, deadline.left_for_step)
        deadline.note_stored(input_seq, f"it has no end: are the workers running? {_WHERE_TO_LOOK.format(exchange)}")
        # 1 s more than is left: so the command's own deadline passes first, and its error tells more.
        answered = await client.await_end(exchange, deadline.left + 1)
        latency_ms = round((time.perf_counter() - begun) * 1000, 3)
        events: Sequence[Event] = ()
        # The other events are only shown beside the answer, so an error in reading them is ignored.
        with suppress(TimeoutError, LogError):
            async with asyncio.timeout(deadline.left):
                events = await _shown_events(log, given["agent"], given["session"], exchange, input_seq, answered.seq)
        return exchange_of(
            exchange, given["agent"], given["session"], answered.event, events, latency_ms, given.get("rerun_of", "")
        )


async def _shown_events(
    log: JetStreamLog, agent: str, session: str, exchange: str, after: int, upto: int
) -> Sequence[Event]:
    """Return the events that are shown beside an exchange's answer, of those between its input and its end."""
    pairs = log.partitions.token_pairs(agent, session)
    filters = [stored_subject(topic_of(kind), *tokens) for kind in SHOWN_EVENTS for tokens in pairs]
    return [
        recorded.message.event
        async for batch in log.history(filters, after, upto)
        for recorded in map(decode, batch)
        if isinstance(recorded, Recorded) and recorded.message.exchange == exchange
    ]


def show(
    exchange: Exchange, *, as_json: bool, streamed: StreamedAnswer | None = None, answer_first: bool = False
) -> None:
    """Print an exchange: a plain sentence on it, the answer, and below it the decision.

    If ``streamed`` has already shown a part of the answer on the terminal, the sentence comes below it, as with
    ``answer_first``. On a terminal the answer is wrapped between words; elsewhere it is printed as it is.
    """
    if as_json:
        print_json(exchange)
        return
    answer = printable(exchange.response, keep="\n\t")
    spoken = streamed.spoken if streamed is not None else ""
    below = answer_first or bool(spoken)
    if not below:
        print_hanging(console(), sentence_of(exchange), 2)
    if exchange.action == "PASSED":
        pass  # a check has no answer
    elif streamed is None or not spoken:
        click.echo(_fitted(answer) or click.style("(no words)", dim=True))
    elif answer.startswith(spoken) or answer == spoken.rstrip():
        streamed.end(answer.removeprefix(spoken) if answer.startswith(spoken) else "")
        click.echo()
    else:
        streamed.end()
        click.echo()
        fitted = _fitted(f"{_FINAL_ANSWER_MARK} {answer}")
        click.echo(f"{click.style(_FINAL_ANSWER_MARK, dim=True)}{fitted.removeprefix(_FINAL_ANSWER_MARK)}")
    for line in [sentence_of(exchange), *lines_of(exchange)] if below else lines_of(exchange):
        print_hanging(console(), line, 2)


def check_it_ended_well(exchange: Exchange) -> None:
    """Raise CheckFailed for an exchange that FAILED."""
    if exchange.action == "FAILED":
        raise CheckFailed(
            f"exchange {exchange.exchange} failed: {exchange.reason}; `neuraxis why {exchange.exchange}` tells more"
        )


def _fitted(answer: str) -> str:
    return wrap_words(answer, shutil.get_terminal_size().columns) if sys.stdout.isatty() else answer
