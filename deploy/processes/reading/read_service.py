"""Serves the reads of narrow workers, whose logins may not read the whole log.

A consumer of several filters names them in the body of a request, which no permission of the broker covers. So a narrow
login may neither create consumers nor get messages. It sends the same requests here instead, on a subject that names
its owners (the actors and effectors that the worker runs) and that it alone may publish on. The service compares the
filters with what those owners consume, and makes the request itself, by a login that may read everything. The worker
then pulls from its consumer directly, so a message costs nothing more.

The processes that read everything anyway serve it: the ledger's and the gateways', each request by one of them. One of
them must live for a worker to start, to take over a partition, or to go on reading after the broker restarted. Until
then the worker waits, as it does for a broker that is away. Only the ledger's creates the durable consumers of
effectors.

A worker also has to know where the log lacks messages, of whatever kind. It is told the sequences alone.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import msgspec
from nats.aio.msg import Msg
from nats.errors import Error as NatsError

from deploy.processes.inbox import is_inbox
from deploy.processes.reading.read_policy import ConsumerRequest, Denied, check_consumer, check_filter
from events.errors import LogError
from events.jetstream import JetStreamLog
from events.jetstream.connection import ApiError
from events.jetstream.reading.read_requests import GAPS, GapsAnswer, GapsQuestion
from events.loggers import get_logger
from events.loss_recording import OWN_FILTER
from events.losses import gaps_between
from schemas.permissions import DURABLE_CALL, read_owners, served_reads

MOST_CHECKED = 2_000
"""The most sequences that one request has searched for missing ones."""

_QUEUE = "read"
"""The queue group: of several processes that serve reads, one gets each request."""

_BAD_REQUEST, _FORBIDDEN = 400, 403
_logger = get_logger("neuraxis.reads")


class _GetMessage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A request for one message: the one at a sequence, or the last on subjects that match a filter."""

    seq: int = 0
    last_by_subj: str = ""


class ReadService:
    """Answers the read requests of narrow workers over a log that it may read whole."""

    def __init__(self, log: JetStreamLog) -> None:
        self._log = log.as_stored()
        self._creating = f"CONSUMER.CREATE.{log.stream}."
        self._getting = f"STREAM.MSG.GET.{log.stream}"
        self._finding_gaps = f"{GAPS}.{log.stream}"
        self._reading = asyncio.Lock()

    async def answer(self, subject: str, data: bytes) -> Any:
        """Return the server's answer to a request, or an error as the server would send it; raises LogError."""
        _, owners, call = subject.split(".", 2)
        try:
            return await self._answer(read_owners(owners), call, data)
        except Denied as denied:
            _logger.warning("read_denied", owners=owners, call=call, reason=str(denied))
            return _error(_FORBIDDEN, 0, str(denied))
        except (msgspec.DecodeError, ValueError) as wrong:
            return _error(_BAD_REQUEST, 0, str(wrong))
        except ApiError as error:
            return _error(error.status, error.number, str(error))

    async def _answer(self, owners: Sequence[str], call: str, data: bytes) -> Any:
        api_call = call.removeprefix(f"{DURABLE_CALL}.")
        if api_call.startswith(self._creating):
            request, name = msgspec.json.decode(data, type=ConsumerRequest), api_call.removeprefix(self._creating)
            check_consumer(owners, self._log.stream, name, request, durable=call != api_call)
            return await self._log.connection.api(api_call, msgspec.to_builtins(request))
        if call == self._getting:
            return await self._get(owners, msgspec.json.decode(data, type=_GetMessage))
        if call == self._finding_gaps:
            return await self._find_gaps(msgspec.json.decode(data, type=GapsQuestion))
        raise Denied(f"there is no call {call}")

    async def _get(self, owners: Sequence[str], wanted: _GetMessage) -> Any:
        # An append of a loss has the last sequence of the subject of losses as its condition: everybody may read it.
        if wanted.last_by_subj and wanted.last_by_subj != OWN_FILTER:
            check_filter(owners, wanted.last_by_subj)
        asked = {"last_by_subj": wanted.last_by_subj} if wanted.last_by_subj else {"seq": wanted.seq}
        answer = await self._log.connection.api(self._getting, asked)
        message = answer["message"]
        try:
            check_filter(owners, message["subject"])
        except Denied:
            # That it is there, and since when, tells a reader whether the log is still the one that it has read.
            answer["message"] = {field: message[field] for field in ("subject", "seq", "time")}
        return answer

    async def _find_gaps(self, question: GapsQuestion) -> GapsAnswer:
        upto = min(question.upto, question.after + MOST_CHECKED)
        async with self._reading:  # one at a time: each reads thousands of messages
            found = await gaps_between(self._log, question.after, upto)
        return GapsAnswer(upto=upto, gaps=tuple(found))


def _error(status: int, number: int, text: str) -> dict[str, Any]:
    return {"error": {"code": status, "err_code": number, "description": text}}


@asynccontextmanager
async def serving_reads(log: JetStreamLog, owner: str) -> AsyncIterator[None]:
    """Serve read requests as a process of ``owner`` (the ledger or the gateway) for the length of the block.

    All processes that do so share the requests.
    """
    service, connection, tasks = ReadService(log), log.connection, set[asyncio.Task[None]]()

    async def respond(msg: Msg) -> None:
        try:
            await msg.respond(msgspec.json.encode(await service.answer(msg.subject, msg.data)))
        except (LogError, NatsError) as wrong:  # without an answer the worker asks again
            _logger.info("read_unanswered", error=type(wrong).__name__, detail=str(wrong))
        except Exception:  # a bug in one answer must not take the ledger or the gateway down
            _logger.exception("read_failed", subject=msg.subject)

    async def take(msg: Msg) -> None:
        if not is_inbox(msg.reply):
            # The broker lets this process answer on any subject that a request names, even on one of the log.
            _logger.warning("read_denied", subject=msg.subject, reason="the answer would not go to an inbox")
            return
        task = asyncio.create_task(respond(msg), name="read request")
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    subscriptions = [await connection.subscribe(each, take, _QUEUE) for each in served_reads((owner,))]
    with suppress(NatsError, TimeoutError):  # while the connection is lost; the client subscribes again after that
        for _ in range(2):  # nats-py's flush overtakes what still waits to be written, such as these subscriptions
            await connection.nc.flush()
    try:
        yield
    finally:
        for subscription in subscriptions:
            await connection.unsubscribe(subscription)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
