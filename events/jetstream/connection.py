"""A connection to the broker that never waits without a deadline, and logs what goes wrong.

nats-py's own request path makes a subscription or a future for each call, and leaves callers waiting when the
connection drops. Here one inbox takes all answers. A lost connection ends every open call at once with
``UnknownOutcome``, since the server may have done what was asked.
"""

import asyncio
import json
import re
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import Any, Self

import msgspec
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.errors import Error as NatsError
from nats.errors import StaleConnectionError, UnexpectedEOF

from events.errors import LogError, Misconfigured, NoLeader, NotPermitted, Unavailable, UnknownOutcome
from events.jetstream.broker_outage import LOGIN, BrokerOutage, is_refused, on_subject, unserved
from events.jetstream.header_client import HeaderClient
from events.jetstream.login_files import check_credentials, check_nkey, tls_context
from events.loggers import get_logger
from events.warning_backoff import SharedWarningBackoff
from schemas.permissions import DURABLE_CALL

OLDEST_SERVER = (2, 12, 0)
"""The oldest version of nats-server that has what is used here."""

CONNECT_S = 5.0
"""Seconds in which a broker has to take a connection, unless the caller names another deadline."""

REPLY_DEADLINE = 5.0
"""Seconds that any one request to the broker may take."""

_STALL_S = 0.2
"""Seconds. A deadline noticed this much too late shows that this process stood still, paused or without CPU time."""

_AFTER_STALL_S = 1.0
"""Seconds to read what has come during such a stall, before an answer counts as missing."""

_RECONNECT_WAIT = 0.1  # seconds
_CLOSE_DEADLINE = 0.5  # seconds
_NO_REPLY = "nothing came back from there"
"""The error text where time was up: nothing listens there, or the listening process is stopped."""

_NO_LEADER = (10008, 10009)
"""JetStream's error codes of a cluster that has no leader for the stream at the moment."""

_LATEST_AT_ONCE = 1_000
"""Subjects in one request for their last messages: the broker refuses one that more than 1,024 answer."""

_CONNECTION_LOST = (OSError, StaleConnectionError, UnexpectedEOF)
_DENIED = re.compile(r'permissions violation for (publish|subscription) to "([^"]+)"', re.IGNORECASE)
"""A server's error about a right that the login lacks, and its subject. nats-py hands it on in lower case."""

_logger = get_logger("neuraxis.broker")


class Access(msgspec.Struct, frozen=True, kw_only=True):
    """How to reach a broker: server URLs, and what it asks for. Secrets are never shown in a repr or a log.

    ``credentials``, ``nkey`` and ``tls_ca`` are files: NATS credentials, an nkey's seed, and certificates to trust.
    ``inbox_prefix`` must be one the user may subscribe to (each broker user has its own).
    ``fails_if_denied``: a call that the login has no right to make fails at once, as a command needs. Without it, such
    a call waits until its deadline, so that a worker that tries again does not do so in a tight loop.
    """

    servers: str
    user: str = ""
    password: str = ""
    credentials: str = ""
    nkey: str = ""
    tls_ca: str = ""
    inbox_prefix: str = "_INBOX"
    name: str = "neuraxis"
    fails_if_denied: bool = False

    def __repr__(self) -> str:
        return f"Access(servers={self.servers!r}, user={self.user!r}, name={self.name!r})"


class Reply(msgspec.Struct, frozen=True):
    """An answer of the broker: its headers (empty when none) and its body."""

    headers: Mapping[str, str]
    data: bytes


class _CallDeadline:
    """Ends a call after a deadline, in seconds, in which this process could have read its answer.

    The call and its timer refer to it, and it to both. One is made for every call, so this cycle ends when the call is
    done: else only the garbage collector would free them, and its collections delay decisions.
    """

    __slots__ = ("_call", "_due", "_loop", "_timer", "_unanswered")

    def __init__(self, call: asyncio.Future[Reply], deadline: float, unanswered: Callable[[], Exception]) -> None:
        self._call, self._unanswered = call, unanswered
        self._loop = asyncio.get_running_loop()
        self._start(deadline)
        call.add_done_callback(self._stop)

    def _start(self, seconds: float) -> None:
        self._due = self._loop.time() + seconds
        self._timer = self._loop.call_at(self._due, self._end)

    def _end(self) -> None:
        if self._call.done():
            return
        if self._loop.time() - self._due > _STALL_S:
            self._start(_AFTER_STALL_S)
        else:
            self._call.set_exception(self._unanswered())

    def _stop(self, _: asyncio.Future[Reply]) -> None:
        self._timer.cancel()


class Connection:
    """A connected client; made by :meth:`open`.

    Attributes:
        nc: The nats-py client, for subscriptions.
        access: How it was opened.
        token: Random part of names that must be this connection's own (inboxes, consumers, batches).
        reading_warnings: Limits the log lines of readers that cannot go on; all of a connection meet the same problem.
    """

    def __init__(self, nc: HeaderClient, access: Access) -> None:
        self.nc = nc
        self.access = access
        self.token = secrets.token_hex(6)
        self._inbox = f"{access.inbox_prefix}.{self.token}"
        self._calls: dict[str, asyncio.Future[Reply]] = {}
        self._subjects: dict[str, tuple[str, ...]] = {}
        self._number = 0  # of the last call or inbox
        self._names_given = 0
        self._on_reconnect: list[Callable[[], None]] = []
        self._outage = BrokerOutage(access.servers)
        self._opening = False  # whether ``open`` still tries to connect
        self._announce = False  # whether ``open`` logs that the broker does not answer
        self._last_error = ""
        self._closing = False  # whether ``close`` was called
        self._read_root = ""  # see ``ask_to_read``
        self._read_calls: tuple[str, ...] = ()
        self.reading_warnings = SharedWarningBackoff()

    @classmethod
    async def open(cls, access: Access, deadline: float | None = None, *, announce: bool = False) -> "Connection":
        """Connect within ``deadline`` seconds; with ``announce``, say in the log that the broker does not answer yet.

        ``deadline`` is :data:`CONNECT_S` by default.

        Raises:
            Unavailable: no server answers there, or it rejects the credentials.
            Misconfigured: the server is too old or has no JetStream, or a file of the login is of another kind.
        """
        deadline = CONNECT_S if deadline is None else deadline
        nc = HeaderClient()
        connection = cls(nc, access)
        options: dict[str, Any] = {
            "servers": access.servers.split(","),
            "name": access.name,
            "allow_reconnect": True,
            "max_reconnect_attempts": -1,
            "reconnect_time_wait": _RECONNECT_WAIT,
            "connect_timeout": 2,
            "ping_interval": 5,
            "max_outstanding_pings": 2,
            "inbox_prefix": access.inbox_prefix,
            "error_cb": connection._failed,
            "disconnected_cb": connection._disconnected,
            "reconnected_cb": connection._reconnected,
            "closed_cb": connection._closed,
        }
        if access.user:
            options |= {"user": access.user, "password": access.password}
        if access.credentials:
            check_credentials(access.credentials)
            options["user_credentials"] = access.credentials
        if access.nkey:
            check_nkey(access.nkey)
            options["nkeys_seed"] = access.nkey
        if access.tls_ca:
            options["tls"] = tls_context(access.tls_ca)
        connection._opening, connection._announce = True, announce
        try:
            async with asyncio.timeout(deadline):
                await nc.connect(**options)
        except (TimeoutError, OSError, NatsError) as wrong:
            await _close(nc)
            why = connection._last_error or str(wrong)  # a TimeoutError has no text
            reason = f": {why}" if why else ""
            if is_refused(why):
                raise Unavailable(f"the broker at {access.servers} refuses this login{reason}; {LOGIN}") from wrong
            raise Unavailable(
                f"no broker answers at {access.servers} within {deadline:.3g} s{reason}; start one with "
                "`neuraxis up`, or name it with --nats"
            ) from wrong
        except BaseException:
            await _close(nc)
            raise
        connection._opening = False
        connection._outage.ended()
        try:
            await nc.listen(f"{connection._inbox}.*", connection._answered)
            connection._check_server()
        except BaseException:
            await connection.close()
            raise
        return connection

    def _check_server(self) -> None:
        version = self.nc.connected_server_version
        try:
            found = (version.major, version.minor, version.patch)
        except (ValueError, TypeError) as wrong:
            raise Misconfigured(
                f"what answers at {self.access.servers} does not say which nats-server it is ({wrong}): name a "
                "nats-server, by --nats or --context"
            ) from wrong
        if found < OLDEST_SERVER:
            raise Misconfigured(
                f"the broker at {self.access.servers} is nats-server {'.'.join(map(str, found))}; atomic batches and "
                f"message schedules need {'.'.join(map(str, OLDEST_SERVER))} or later: upgrade nats-server"
            )

    @property
    def connected(self) -> bool:
        """Whether the connection is up at this moment."""
        return self.nc.is_connected

    @property
    def claims_jetstream(self) -> bool:
        """Whether the connected server itself runs JetStream (in a cluster, another may run it for all)."""
        return bool(self.nc._server_info.get("jetstream"))  # nats-py has no public access to the server's INFO

    @property
    def closed(self) -> bool:
        """Whether the connection is closed for good."""
        return self.nc.is_closed

    @property
    def why_closed(self) -> str:
        """Why the server closed the connection for good, and what to do; for the end of a message. Empty if we did."""
        why = "" if self._closing else str(self.nc.last_error or self._last_error)
        remedy = f"; {LOGIN}, and start this again" if is_refused(why) else ""
        return f": {why}{remedy}" if why else ""

    @property
    def max_payload(self) -> int:
        """The server's limit on a message, headers and data together, in bytes."""
        return self.nc.max_payload

    @property
    def asks_to_read(self) -> bool:
        """Whether this login may not read the log itself, so that its reads are requests to a read service.

        That is a process of the ledger or of a gateway; see :meth:`ask_to_read`.
        """
        return bool(self._read_root)

    def ask_to_read(self, root: str, stream: str) -> None:
        """Create a stream's consumers and get its messages by requests below ``root``; if that is empty, directly."""
        calls = f"CONSUMER.CREATE.{stream}.", f"STREAM.MSG.GET.{stream}", f"LOG.GAPS.{stream}"
        self._read_root, self._read_calls = root, calls if root else ()

    def on_reconnect(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call ``callback`` after each reconnection, and when the connection closes; returns what stops it."""
        self._on_reconnect.append(callback)
        return lambda: self._on_reconnect.remove(callback)

    def new_name(self) -> str:
        """Return a unique name for a consumer or a batch."""
        self._names_given += 1
        return f"{self.token}-{self._names_given}"

    def new_inbox(self) -> str:
        """Return a fresh inbox subject under this connection's prefix."""
        self._number += 1
        return f"{self.access.inbox_prefix}.{self.token}r{self._number}"

    async def publish(self, subject: str, data: bytes, reply: str = "", headers: dict[str, str] | None = None) -> None:
        """Send a message; raises Unavailable while disconnected, so that nothing is sent late from a buffer."""
        if not self.nc.is_connected:
            raise Unavailable(f"the broker at {self.access.servers} is not connected")
        try:
            await self.nc.publish(subject, data, reply=reply, headers=headers)
        except NatsError as wrong:
            raise Unavailable(f"the broker took no message{on_subject(subject)}: {wrong}") from wrong

    async def subscribe(
        self, subject: str, on_message: Callable[[Msg], Awaitable[None]], queue: str = ""
    ) -> Subscription:
        """Call ``on_message`` with each message of a subject, or with this member's share of those of a ``queue``.

        A subscription that is made while the broker is away begins when it is back.

        Raises:
            Unavailable: the connection was closed.
        """
        try:
            return await self.nc.subscribe(subject, queue=queue, cb=on_message)
        except NatsError as wrong:
            raise Unavailable(f"nothing can be heard{on_subject(subject)}: {wrong}") from wrong

    async def unsubscribe(self, subscription: Subscription) -> None:
        """End a subscription; it ended before where the connection was closed."""
        with suppress(NatsError, OSError):
            await subscription.unsubscribe()

    async def request(
        self, subject: str, data: bytes = b"", headers: dict[str, str] | None = None, deadline: float = REPLY_DEADLINE
    ) -> Reply:
        """Send a message and wait for its one answer.

        Raises:
            Unavailable: not connected, or nobody serves the subject: nothing happened.
            UnknownOutcome: no answer in time, or the connection dropped meanwhile.
        """
        number, call = self.expect(subject)
        try:
            await self.publish(subject, data, reply=self.reply_subject(number), headers=headers)
            return await self.answer(number, call, subject, deadline)
        finally:
            self.forget(number)

    def request_now(
        self, subject: str, data: bytes, headers: dict[str, str], deadline: float = REPLY_DEADLINE
    ) -> asyncio.Future[Reply] | None:
        """Send a message in this turn of the event loop; return the future of its one answer.

        None if the message cannot be sent without waiting: nothing happened then. The future raises UnknownOutcome as
        :meth:`request` does; pass its result to :func:`require_served`, which raises Unavailable.
        """
        number, call = self.expect(subject)
        if not self.nc.publish_now(subject, self.reply_subject(number), data, headers):
            self.forget(number)
            return None
        call.add_done_callback(lambda _: self.forget(number))
        _CallDeadline(call, deadline, partial(self._unanswered, subject, deadline))
        return call

    def expect(self, *subjects: str) -> tuple[str, asyncio.Future[Reply]]:
        """Register an answer to messages on ``subjects``; return its number and future, for :meth:`answer`."""
        self._number += 1
        number = str(self._number)
        call: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._calls[number] = call
        self._subjects[number] = subjects
        return number, call

    def forget(self, number: str) -> None:
        """Expect no answer of this number any more."""
        self._calls.pop(number, None)
        self._subjects.pop(number, None)

    def reply_subject(self, number: str) -> str:
        """Return the subject on which the answer of ``number`` is expected."""
        return f"{self._inbox}.{number}"

    async def answer(self, number: str, call: asyncio.Future[Reply], subject: str, deadline: float) -> Reply:
        """Wait for an expected answer within ``deadline`` seconds; raises like :meth:`request`."""
        _CallDeadline(call, deadline, partial(self._unanswered, subject, deadline))
        try:
            return require_served(await call, subject)
        finally:
            self.forget(number)

    async def api(
        self, subject: str, body: Mapping[str, Any] | None = None, deadline: float = REPLY_DEADLINE
    ) -> dict[str, Any]:
        """Call a JetStream API subject (without its prefix) and return the decoded answer.

        Raises:
            ApiError: the answer carries an error.
            NoLeader: the cluster has no leader for it now.
            Unavailable: as for :meth:`request`.
            UnknownOutcome: as for :meth:`request`.
        """
        root = "$JS.API"
        if subject.startswith(self._read_calls):
            durable = body is not None and "durable_name" in body.get("config", {})
            root = f"{self._read_root}.{DURABLE_CALL}" if durable else self._read_root
        answer = await self.request(f"{root}.{subject}", json.dumps(body).encode() if body else b"", None, deadline)
        document: dict[str, Any] = msgspec.json.decode(answer.data)
        if "error" in document:
            raise _api_error(subject, document["error"])
        return document

    async def gather(self, subject: str, data: bytes, deadline: float = REPLY_DEADLINE) -> AsyncIterator[Reply]:
        """Send a message and yield its answers, up to the empty one that ends them; raises like :meth:`request`."""
        answers: asyncio.Queue[Reply | None] = asyncio.Queue()

        async def on_message(msg: Msg) -> None:
            answers.put_nowait(Reply(msg.headers or {}, msg.data))

        inbox = self.new_inbox()
        subscription = await self.subscribe(inbox, on_message)
        number, ended = self.expect(subject)  # ended early where the right is lacking, or the connection is lost
        ended.add_done_callback(lambda _: answers.put_nowait(None))
        try:
            await self.publish(subject, data, reply=inbox)
            while True:
                try:
                    async with asyncio.timeout(deadline):
                        answer = await answers.get()
                except TimeoutError:
                    raise self._no_answer(subject, deadline) from None
                if answer is None:
                    raise ended.exception() or self._no_answer(subject, deadline)
                status = answer.headers.get("Status", "")
                if status == "503":
                    raise unserved(subject)
                if status in ("204", "404"):
                    return
                if status.startswith(("4", "5")):
                    refusal = f"{status} {answer.headers.get('Description', '')}".rstrip()
                    raise UnknownOutcome(
                        f"the broker at {self.access.servers} refuses a request{on_subject(subject)}: {refusal}"
                    )
                yield answer
        finally:
            self.forget(number)
            await self.unsubscribe(subscription)

    async def latest(self, stream: str, subjects: Collection[str]) -> AsyncIterator[Reply]:
        """Yield the last message of each of these subjects of a stream that has one; raises like :meth:`request`."""
        left = iter(subjects)
        while asked := list(islice(left, _LATEST_AT_ONCE)):
            request = msgspec.json.encode({"multi_last": asked})
            async for answer in self.gather(f"$JS.API.DIRECT.GET.{stream}", request):
                yield answer

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connection; calls under way end with UnknownOutcome."""
        self._closing = True
        self._end_calls("the connection was closed")
        await _close(self.nc)

    def _answered(self, msg: Msg) -> None:
        call = self._calls.pop(msg.subject.rpartition(".")[2], None)
        if call is not None and not call.done():
            call.set_result(Reply(msg.headers or {}, msg.data))

    def _end_calls(self, why: str) -> None:
        calls, self._calls, self._subjects = self._calls, {}, {}
        for call in calls.values():
            if not call.done():
                call.set_exception(UnknownOutcome(f"{why} before the answer came"))
                call.exception()  # marked as retrieved: a caller that has gone must not cause a warning

    def _unanswered(self, subject: str, deadline: float) -> UnknownOutcome:
        hint = f" ({self._last_error})" if "permission" in self._last_error.lower() else ""
        return self._no_answer(subject, deadline, hint)

    def _no_answer(self, subject: str, deadline: float, hint: str = "") -> UnknownOutcome:
        return UnknownOutcome(
            f"the broker at {self.access.servers} gave no answer{on_subject(subject)} within {deadline:g} s{hint}"
        )

    def _end_denied(self, said: str) -> bool:
        """End the calls that a lacking right keeps from being answered; return whether there are any."""
        denied = _DENIED.search(said) if self.access.fails_if_denied else None
        if denied is None:
            return False
        publishing, subject = denied[1].lower() == "publish", denied[2].lower()
        inbox, ended = f"{self._inbox}.*", False
        for number, subjects in tuple(self._subjects.items()):
            # Without its inbox, no call of this connection gets an answer.
            concerned = subjects if publishing else (inbox,)
            own = next((each for each in concerned if each.lower() == subject), "")
            call = self._calls.get(number)
            if own and call is not None and not call.done():
                call.set_exception(self._not_permitted("publish" if publishing else "subscribe", own))
                call.exception()  # marked as retrieved: a caller that has gone must not cause a warning
                ended = True
        return ended

    def _not_permitted(self, verb: str, subject: str) -> NotPermitted:
        return NotPermitted(
            f"this login may not {verb} to {subject} at the broker at {self.access.servers}: name a login that may "
            "(--context, --creds), or give it the right; `neuraxis deploy nats-conf --permissions` lists what each "
            "login needs"
        )

    async def _failed(self, error: Exception) -> None:
        if not (self._opening and is_refused(self._last_error)):
            # A server that refuses a login then closes the connection: the refusal is the reason, not the closing.
            self._last_error = str(error) or (_NO_REPLY if isinstance(error, TimeoutError) else type(error).__name__)
        if self._opening:
            if self._announce:
                self._outage.failed(self._last_error)
        elif not self.nc.is_connected and not self.nc.is_closed:
            self._outage.failed(self._last_error)
        elif self._end_denied(self._last_error):
            pass  # the caller gets NotPermitted
        elif isinstance(error, _CONNECTION_LOST):
            pass  # ``_disconnected`` follows at once, and logs this as the reason
        else:
            _logger.warning("broker_error", error=type(error).__name__, detail=self._last_error)

    async def _disconnected(self) -> None:
        self._end_calls("the connection to the broker dropped")
        if not self._opening and not self.nc.is_closed:
            _logger.warning("broker_disconnected", servers=self.access.servers, detail=self._last_error)

    async def _closed(self) -> None:
        # Also when the server closed the connection for good: readers must learn that no more messages will come.
        self._end_calls(f"the connection to the broker was closed{self.why_closed}")
        if not (self._opening or self._closing):
            _logger.error("broker_closed_connection", servers=self.access.servers, detail=self.why_closed[2:])
        for callback in tuple(self._on_reconnect):
            callback()

    async def _reconnected(self) -> None:
        self._outage.ended()
        _logger.info("broker_reconnected", servers=self.access.servers)
        for callback in tuple(self._on_reconnect):
            callback()


def require_served(answer: Reply, subject: str) -> Reply:
    """Return an answer; raises Unavailable for the server's status 503: nobody serves the subject."""
    if answer.headers.get("Status") == "503":
        raise unserved(subject)
    return answer


class ApiError(LogError):
    """A JetStream API call that the server did not carry out; ``number`` is its err_code, ``status`` like HTTP's.

    It is no ``Refused``: the call may succeed later, once what was missing is there or a limit on consumers is raised.
    """

    code = "api"

    def __init__(self, subject: str, error: Mapping[str, Any]) -> None:
        self.number = int(error.get("err_code", 0))
        self.status = int(error.get("code", 0))
        super().__init__(f"{subject}: {error.get('description', 'refused')} (code {self.number})")


def _api_error(subject: str, error: Mapping[str, Any]) -> LogError:
    refused = ApiError(subject, error)
    if refused.number not in _NO_LEADER:
        return refused
    return NoLeader(
        f"the broker's cluster has no leader now ({refused}): start its servers that are away, or wait until they have "
        "chosen one"
    )


async def _close(nc: Client) -> None:
    closing: Awaitable[None] = nc.close()
    try:
        async with asyncio.timeout(_CLOSE_DEADLINE):
            await closing
    except (TimeoutError, NatsError, OSError) as wrong:
        _logger.debug("broker_close", error=type(wrong).__name__)
