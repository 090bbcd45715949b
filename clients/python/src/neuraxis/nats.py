"""Reads events directly from the broker, by NATS subjects; for asyncio, like NATS's own client.

``listen`` yields new events, ``read`` yields all events after a sequence, and for ``alerts`` the broker remembers which
alerts were processed. All three yield the same events as the client does over HTTP, and connect again by themselves. If
the broker is away for a minute, or does not serve the log for so long, they raise NotReachable. One that is silent
counts as away after 20 seconds at most.
"""

import asyncio
import secrets
import ssl
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from typing import Any

import nats
from nats import errors as nats_errors
from nats.aio.client import Client as Connection
from nats.js import JetStreamContext
from nats.js import errors as stream_errors
from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy

from neuraxis.errors import BadAnswer, BadInput, Forbidden, NeuraxisError, NotReachable, Unauthorized
from neuraxis.events import ALERTS, REPLACED, Event, event_of_message, is_same, stored_filter, topic_of
from neuraxis.nats_login import Login, options_of

__all__ = ["Login", "alerts", "listen", "read"]

STREAM = "NEURAXIS"
"""The default name of the stream that is the log."""
CONNECT_S = 10.0
"""Seconds that a first connection, or a request to the broker, may take."""

AWAY_S = 60.0
"""Seconds for which a broker may be away, or not serve the log, before NotReachable is raised."""

RECONNECTS = 60
"""Most attempts, at least a second apart, to reach it in that time."""

_PING_S = 10.0
"""Seconds between two pings. If one is not answered before the next, the connection counts as lost."""

_FETCH, _FETCH_S = 100, 5.0
"""Most messages of one fetch, and seconds that it waits for them."""

_LOOK_S = 1.0
"""Seconds for which a silent subscription is waited for, before the broker's errors are looked at."""

_PAUSE_S = 0.5
"""Seconds before a failed request to the broker is repeated."""

_UNUSED_S = 300.0
"""Seconds after which the broker deletes an unnamed consumer that nobody reads any more."""


async def listen(topic: str, login: Login) -> AsyncGenerator[Event, None]:
    """Yield the events of a public subject as they come; events that come while the connection is broken are missed.

    Raises:
        BadInput: the topic is no subject. One that no event has is not noticed: over HTTP it is.
        NotReachable, Unauthorized: the first connection failed.
        Forbidden: the login may not listen to it.
        NeuraxisError: events came faster than they were read (``too_slow``), and some are lost.
    """
    subject = _checked(topic)
    async with _connected(login) as (connection, failures):
        subscription = await connection.subscribe(subject)
        await connection.flush(timeout=round(CONNECT_S))
        while True:
            message = None
            with suppress(nats_errors.TimeoutError):
                try:
                    message = await subscription.next_msg(timeout=_LOOK_S)
                except nats_errors.ConnectionClosedError:
                    raise _gone(login, connection) from None
            if _denied(failures):
                # The broker reports that apart, at some time after the subscription, which it leaves silent.
                raise Forbidden(f"this login may not listen to {subject}", code="forbidden")
            _raise_if_too_slow(failures)
            if message is not None:
                yield event_of_message(message.subject, message.headers, message.data)


async def read(topic: str, login: Login, *, after: int | Event, stream: str = STREAM) -> AsyncGenerator[Event, None]:
    """Yield the events of a public subject after a sequence of the log, each once and in order, then new ones.

    The login must be one that may read the log, such as ``operator``. ``after`` is a sequence, or the last event that
    you processed: then it is noticed if the log has lost that event, and given its sequence to another.

    Raises:
        BadInput: the topic is no subject, or what follows ``after`` is not in the stream: the log ends before it, or
            the stream was trimmed, and the ledger alone has what comes next.
        NotReachable, Unauthorized, Forbidden: as for :func:`listen`.
        NeuraxisError: the last event, or what follows it, is not in the stream any more (``log_cut``).
    """
    _checked(topic)
    known, last = (after, after.seq) if isinstance(after, Event) else (None, after)
    if last < 0:
        raise BadInput(f"after is {after}: it is a sequence of the log, from 0 on", field="after", code="bad_value")
    async with _connected(login) as (connection, failures):
        jetstream = connection.jetstream(timeout=CONNECT_S)
        while True:
            config = ConsumerConfig(
                name=f"client-{secrets.token_hex(8)}",
                filter_subject=stored_filter(topic),
                deliver_policy=DeliverPolicy.BY_START_SEQUENCE,
                opt_start_seq=last + 1,
                ack_policy=AckPolicy.NONE,
                inactive_threshold=_UNUSED_S,
            )
            async with _reader(jetstream, stream, config, failures, batch=_FETCH, forget=True) as messages:
                if missing := await _missing_after(jetstream, stream, last, known):
                    if known is not None:
                        raise NeuraxisError(f"after the event of sequence {last:,}: {missing}", code="log_cut")
                    raise BadInput(f"after={last}: {missing}", field="after", code="bad_value")
                async for message in messages:
                    event = _event(message)
                    if event.seq > last:
                        last, known = event.seq, event
                        yield event


async def alerts(login: Login, *, consumer: str = "alerts", stream: str = STREAM) -> AsyncGenerator[Event, None]:
    """Yield every stored alert, as the ``alert`` of its event; the broker remembers which were processed.

    An alert counts as processed when the next one is asked for. If this generator ends before, the alert comes again,
    to the next reader of the same ``consumer``. ``consumer`` must be one of the setting ``broker.alert_consumers``. The
    login must be ``reader``.
    """
    config = ConsumerConfig(
        name=consumer, durable_name=consumer, filter_subject=stored_filter(ALERTS), ack_policy=AckPolicy.EXPLICIT
    )
    async with _connected(login) as (connection, failures):
        jetstream = connection.jetstream(timeout=CONNECT_S)
        while True:
            async with _reader(jetstream, stream, config, failures, batch=1, forget=False) as messages:
                async for message in messages:
                    try:
                        yield _event(message)
                    except BaseException:
                        # The caller left, so the alert is not processed: have it delivered again at once, rather than
                        # after the acknowledgement's deadline.
                        with suppress(nats_errors.Error):
                            await message.nak()
                        raise
                    await message.ack()


@asynccontextmanager
async def _connected(login: Login) -> AsyncGenerator[tuple[Connection, list[Exception]], None]:
    failures: list[Exception] = []

    async def note(error: Exception) -> None:
        failures.append(error)

    options = {**options_of(login), "error_cb": note}
    servers = [each.strip() for each in login.url.split(",") if each.strip()]
    try:
        async with asyncio.timeout(CONNECT_S):
            await _probe(servers, options)
            connection = await nats.connect(
                servers,
                max_reconnect_attempts=RECONNECTS,
                reconnect_time_wait=1.0,
                ping_interval=_PING_S,
                max_outstanding_pings=1,
                **options,
            )
    except (OSError, TimeoutError, nats_errors.Error) as wrong:
        messages = " ".join(str(each) for each in (wrong, *failures))
        if _is_unknown(messages):
            raise _unauthorized(login) from wrong
        if isinstance(wrong, ssl.SSLError):
            raise NotReachable(
                f"the broker at {_shown(login.url)} shows no certificate that is trusted ({wrong.reason or wrong}): "
                "name its authority's as `ca` of the login",
                code="no_connection",
            ) from wrong
        raise NotReachable(f"no broker can be reached at {_shown(login.url)}", code="no_connection") from wrong
    failures.clear()
    watching = asyncio.create_task(_close_if_away(connection), name="neuraxis-broker-away")
    try:
        yield connection, failures
    except nats_errors.ConnectionClosedError as wrong:
        raise _gone(login, connection) from wrong
    finally:
        watching.cancel()
        await asyncio.wait((watching,))
        with suppress(TimeoutError):
            async with asyncio.timeout(CONNECT_S):
                await connection.close()


async def _probe(servers: Sequence[str], options: Mapping[str, Any]) -> None:
    """Connect once to the first of the servers that answers; raises the error of the last if none does.

    A connection with reconnects would wait for ever if no broker is there.
    """
    for number, server in enumerate(servers or ("",), 1):
        try:
            async with asyncio.timeout(CONNECT_S / max(1, len(servers))):
                probe = await nats.connect(
                    server, allow_reconnect=False, max_reconnect_attempts=1, reconnect_time_wait=0.1, **options
                )
                await probe.close()
                return
        except (OSError, TimeoutError, nats_errors.Error):
            if number >= len(servers):
                raise


async def _close_if_away(connection: Connection) -> None:
    """Close a connection, which ends all readings, once its broker has been away for :data:`AWAY_S`.

    The library's own limit counts attempts, and an attempt takes two seconds longer if the broker accepts connections
    but is silent.
    """
    loop = asyncio.get_running_loop()
    last_there = loop.time()
    while loop.time() - last_there < AWAY_S:
        await asyncio.sleep(min(1.0, AWAY_S / 4))
        if connection.is_connected:
            last_there = loop.time()
    await connection.close()


@asynccontextmanager
async def _reader(
    jetstream: JetStreamContext,
    stream: str,
    config: ConsumerConfig,
    failures: list[Exception],
    *,
    batch: int,
    forget: bool,
) -> AsyncGenerator[AsyncGenerator[Any, None], None]:
    """Make a consumer, waiting while the broker is away, and yield its messages; ``forget`` deletes it at the end."""
    name, loop = str(config.name), asyncio.get_running_loop()
    give_up = loop.time() + AWAY_S
    while True:
        try:
            await jetstream.add_consumer(stream, config)
            break
        except (TimeoutError, nats_errors.NoRespondersError, stream_errors.ServiceUnavailableError) as wrong:
            # The broker does not answer a request that the login may not make; it reports a separate error.
            if _denied(failures):
                raise Forbidden(f"this login may have no reader {name} of this subject", code="forbidden") from wrong
            if loop.time() >= give_up:
                raise _silent("gives no reader of it", wrong) from wrong
            await asyncio.sleep(_PAUSE_S)
        except nats_errors.ConnectionClosedError:
            raise
        except (nats_errors.Error, stream_errors.Error) as wrong:
            raise NeuraxisError(f"the broker gives no reader {name}: {wrong}", code="no_reader") from wrong
    reader = await jetstream.pull_subscribe_bind(consumer=name, stream=stream)
    try:
        async with aclosing(_messages(reader, batch)) as messages:
            yield messages
    finally:
        with suppress(nats_errors.Error, TimeoutError):
            await reader.unsubscribe()
            if forget:
                await jetstream.delete_consumer(stream, name)


async def _missing_after(jetstream: JetStreamContext, stream: str, last: int, known: Event | None) -> str:
    """Return why the stream lacks what follows a sequence; empty if it does not, or if that cannot be told.

    ``known`` is the event that was read there.

    The broker reports neither: asked for a sequence after the stream's end, it waits for it; asked for one before the
    stream's first message, it begins with that.
    """
    try:
        state = (await jetstream.stream_info(stream)).state
    except (TimeoutError, nats_errors.Error, stream_errors.Error):
        return ""
    if last > state.last_seq:
        return f"the log ends at sequence {state.last_seq:,}: begin there, or before it"
    if last + 1 < state.first_seq:
        return (
            f"the stream begins at sequence {state.first_seq:,}, and what was before is in the ledger alone: read that "
            f"by `neuraxis log export`, and begin here after {state.first_seq - 1:,}"
        )
    if known is not None:
        with suppress(TimeoutError, nats_errors.Error, stream_errors.Error):  # trimmed since, say
            found = await jetstream.get_msg(stream, last)
            if not is_same(event_of_message(str(found.subject), found.headers, found.data or b"", last), known):
                return REPLACED
    return ""


async def _messages(reader: JetStreamContext.PullSubscription, batch: int) -> AsyncGenerator[Any, None]:
    """Yield a consumer's messages until the broker no longer knows the consumer.

    Raises:
        NotReachable: the broker has not said for :data:`AWAY_S` whether it knows it.
    """
    loop = asyncio.get_running_loop()
    last_known = loop.time()
    while True:
        try:
            found = await reader.fetch(batch, timeout=_FETCH_S)
        except TimeoutError:
            # Either nothing is new, or the broker was restarted without this consumer, and would be silent for ever.
            try:
                await reader.consumer_info()
            except stream_errors.NotFoundError:
                return
            except (TimeoutError, nats_errors.Error, stream_errors.Error) as wrong:  # asked again when it is back
                if loop.time() - last_known >= AWAY_S:
                    raise _silent("does not tell of its reader", wrong) from wrong
                continue
        except (nats_errors.Error, stream_errors.Error):
            await asyncio.sleep(_PAUSE_S)
            return
        else:
            for message in found:
                yield message
        last_known = loop.time()


def _event(message: Any) -> Event:
    sequence = message.metadata.sequence.stream
    if not isinstance(sequence, int):
        raise BadAnswer("the broker does not say where in the log a message stands")
    return event_of_message(message.subject, message.headers, message.data, sequence)


def _checked(topic: str) -> str:
    """Return a public subject with its root; raises BadInput if it is none: the broker would be silent."""
    subject = topic_of(topic)
    tokens = subject.split(".")
    is_subject = all(token and not any(char.isspace() for char in token) for token in tokens)
    if not is_subject or ">" in "".join(tokens[:-1]):
        raise BadInput(
            f"{topic!r} is no subject: write tokens with dots between, such as reflex.blocked or alert.>",
            field="topic",
            code="bad_value",
        )
    return subject


def _denied(failures: list[Exception]) -> bool:
    return any("permissions violation" in str(each).lower() for each in failures)


def _raise_if_too_slow(failures: list[Exception]) -> None:
    if any(isinstance(each, nats_errors.SlowConsumerError) for each in failures):
        raise NeuraxisError(
            "events came faster than they were taken, and some are lost: read them by their sequence", code="too_slow"
        )


def _silent(what: str, wrong: Exception) -> NotReachable:
    reason = str(wrong) or type(wrong).__name__
    return NotReachable(
        f"for {AWAY_S:g} s the broker has told nothing of the log: it {what} ({reason}); `neuraxis doctor` tells more",
        code="no_log",
    )


def _is_unknown(messages: str) -> bool:
    return "authorization" in messages.lower() or "authentication" in messages.lower()


def _unauthorized(login: Login) -> Unauthorized:
    return Unauthorized(f"the broker does not know {login.user or 'this login'}", code="unauthorized")


def _gone(login: Login, connection: Connection) -> NeuraxisError:
    if _is_unknown(str(connection.last_error or "")):  # it was taken away, and then the broker closed the connection
        return _unauthorized(login)
    return NotReachable(f"the broker at {_shown(login.url)} is away, and has not come back", code="broken")


def _shown(url: str) -> str:
    return url.rpartition("@")[2] or "its address"
