"""Failed decisions and effects: how their exchanges ended, and which inputs to send again."""

import re
from collections.abc import AsyncIterator, Sequence, Set

import msgspec

from actors.gateway.external_events import InvalidInput
from actors.gateway.inputs import InputOptions
from deploy.operating.recorded_inputs import recorded_input, rerun_options
from events.decoding import Recorded, decode, exchange_of
from events.errors import Misconfigured
from events.ledger.reader import END
from events.replay.presence_checks import NothingFound, span_of
from events.replay.sources import Source
from schemas.catalogue import CATALOGUE
from schemas.envelope import exchange_in
from schemas.event import Failed, topic_of
from schemas.identity import event_id
from schemas.intake.nearest_name import nearest_or_all
from schemas.intake.timestamps import rfc3339
from schemas.subjects import topic_filter
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.responder import ResponseEmitted

_FAILING = sorted({entry.owner for entry in CATALOGUE.values() if issubclass(entry.event, Failed)})
"""The actors and effectors that record failures."""

_FAILURES = ["log.*.*.*.failed"]
"""The filter over the failures of all actors, also of those that this release does not have."""

_INPUTS, _ENDS = (topic_filter(topic_of(kind)) for kind in (InputReceived, ResponseEmitted))

_JSON_STRING = re.compile(rb'"((?:[^"\\]|\\.)*)"')
"""A string of a JSON text, without its quotes. Ids of exchanges have nothing that JSON would escape."""

UNREADABLE_END = "UNREADABLE"
"""What stands for the action of an end that this release cannot read."""


class FailedDecision(msgspec.Struct, frozen=True, kw_only=True):
    """A failure of an actor or an effector on one message; or an exchange that ended FAILED without one on record, such
    as at its deadline, or since nobody served a guard. Then ``actor`` is the stage that it waited for, or responder if
    no single actor or effector is that stage (as DELIBERATIVE), and the message is its input.

    ``seq`` is the failure's sequence, ``failed_seq`` and ``failed_topic`` are that message's sequence and subject.
    ``reason`` and ``error`` are as in ``schemas.event.Failed``. ``ended`` is the action with which the exchange ended;
    empty while it has not, or if there is no exchange; UNREADABLE if this release cannot read the end. ``rerun`` is
    the latest exchange that sent its input again.
    """

    seq: int
    time: str
    actor: str
    reason: str
    error: str
    failed_seq: int
    failed_topic: str
    agent: str
    session: str
    exchange: str
    ended: str = ""
    rerun: str = ""

    @property
    def why_not(self) -> str:
        """Why its input is not sent again; empty if it can be."""
        if not self.exchange:
            return "it belongs to no exchange"
        if self.rerun:
            return f"sent again as {self.rerun}"
        if not self.ended:
            return "its exchange has not ended"
        if self.ended == UNREADABLE_END:
            return "this release cannot read how its exchange ended: look with the one that wrote its end"
        return "" if self.ended == "FAILED" else f"its exchange ended {self.ended} without it"


def check_actor(name: str) -> None:
    """Raise Misconfigured unless an actor or effector of this name exists, so that it can record failures."""
    if name not in _FAILING:
        raise Misconfigured(f"there is no actor or effector {name!r}: {nearest_or_all(name, _FAILING)}")


async def failed_decisions(source: Source) -> list[FailedDecision]:
    """Return all failures of a log, and what FAILED without one, in order.

    Those that this release cannot read are in ``source.unread``, and so are ends that may be FAILED.

    Raises:
        NothingFound: the log holds no event.
        LogError: the source cannot be read.
    """
    await span_of(source)
    found: list[FailedDecision] = []
    async for batch in source.as_stored(_FAILURES, 0, END):
        for stored in batch:
            record = decode(stored)
            if not isinstance(record, Recorded):
                source.unread.note(record)
            elif isinstance(record.message.event, Failed):
                found.append(_failure(record, record.message.event))
    recorded = {each.exchange for each in found if each.exchange}
    ended: dict[str, str] = {}
    silent: dict[str, Recorded] = {}  # exchange -> its end as FAILED, without a failure on record
    async for batch in source.as_stored([_ENDS], 0, END):
        for stored in batch:
            record = decode(stored)
            exchange = exchange_of(record)
            if not isinstance(record, Recorded):
                ended[exchange] = UNREADABLE_END
                if exchange not in recorded:
                    source.unread.note(record)
            elif isinstance(record.message.event, ResponseEmitted):
                if exchange in recorded:
                    ended[exchange] = record.message.event.action
                elif record.message.event.action == "FAILED":
                    silent[exchange] = record
    if not found and not silent:
        return []  # nothing has failed: there is no need to read the inputs
    inputs, reruns = await _inputs_and_reruns(source, recorded.union(silent))
    found += [_without_failure(record, inputs[exchange]) for exchange, record in silent.items() if exchange in inputs]
    return [
        msgspec.structs.replace(
            each, ended=each.ended or ended.get(each.exchange, ""), rerun=reruns.get(each.exchange, "")
        )
        for each in sorted(found, key=lambda each: each.seq)
    ]


async def _inputs_and_reruns(source: Source, failed: Set[str]) -> tuple[dict[str, int], dict[str, str]]:
    """Return what the inputs of a log tell of failed exchanges.

    Returns:
        The sequence of each one's input, if that asked for an answer; and the latest exchange that sent it again.
    """
    inputs: dict[str, int] = {}
    reruns: dict[str, str] = {}
    async for batch in source.as_stored([_INPUTS], 0, END):
        for stored in batch:
            record = decode(stored)
            exchange = exchange_of(record)
            if not isinstance(record, Recorded):
                if exchange in failed:  # it may have asked for an answer
                    inputs[exchange] = stored.seq
                # It may be the rerun of any exchange that it names, in whatever field.
                named = {text.decode(errors="replace") for text in _JSON_STRING.findall(stored.data)}
                reruns |= dict.fromkeys(named & failed, exchange)
            elif isinstance(record.message.event, InputReceived):
                if record.message.event.purpose == "answer" and exchange in failed:  # who has one checked asks again
                    inputs[exchange] = record.message.seq
                if record.message.event.rerun_of:
                    reruns[record.message.event.rerun_of] = exchange
    return inputs, reruns


def _without_failure(record: Recorded, input_seq: int) -> FailedDecision:
    message, end = record.message, record.message.event
    assert isinstance(end, ResponseEmitted)
    stage = end.stage.lower()
    return FailedDecision(
        seq=message.seq,
        time=rfc3339(message.time_ns),
        actor=stage if stage in _FAILING else "responder",
        reason=end.reason,
        error="",
        failed_seq=input_seq,
        failed_topic=topic_of(InputReceived),
        agent=message.agent,
        session=message.session,
        exchange=message.exchange,
        ended=end.action,
    )


def _failure(record: Recorded, failed: Failed) -> FailedDecision:
    message = record.message
    return FailedDecision(
        seq=message.seq,
        time=rfc3339(message.time_ns),
        actor=CATALOGUE[topic_of(failed)].owner,
        reason=failed.reason,
        error=failed.error,
        failed_seq=failed.failed_seq,
        failed_topic=failed.failed_topic,
        agent=message.agent,
        session=message.session,
        exchange=message.exchange,
    )


def exchanges_to_redrive(failures: Sequence[FailedDecision]) -> list[str]:
    """Return the exchanges whose inputs can be sent again: those that FAILED, and were not sent again yet; in order."""
    return list(dict.fromkeys(each.exchange for each in failures if not each.why_not))


async def inputs_to_redrive(
    source: Source, failures: Sequence[FailedDecision]
) -> AsyncIterator[tuple[str, InputOptions | None, str]]:
    """Yield the exchanges of :func:`exchanges_to_redrive`, each with its input, or with why that cannot be sent again.

    One that cannot be, such as a forgotten one, does not hold up the others. The input is its options, if any, and its
    text.
    """
    exchanges = exchanges_to_redrive(failures)
    wanted, begins = frozenset(exchanges), dict[str, int]()
    if wanted:  # looked up in one reading: a stream without an index would be read for each of them
        async for batch in source.as_stored([_INPUTS], 0, END):
            for each in batch:
                if (found := exchange_in(each.headers)) in wanted:
                    begins.setdefault(found, each.seq)
    for exchange in exchanges:
        try:
            recorded = await recorded_input(source, exchange, begins.get(exchange, 0))
            options = rerun_options(recorded, recorded.session, redriven_exchange(exchange))
        except (NothingFound, InvalidInput) as why:
            yield exchange, None, str(why)
        else:
            yield exchange, options, recorded.received.text


def redriven_exchange(exchange: str) -> str:
    """Return the id of the exchange that sends another's input again: always the same, so the broker stores it once."""
    return event_id(exchange, "redrive", 0)


def named_failures(failures: Sequence[FailedDecision], sequences: Sequence[int]) -> list[FailedDecision]:
    """Return the failures at the given sequences, or all if none is given; raises NothingFound for an unknown one."""
    known = {each.seq: each for each in failures}
    for seq in sequences:
        if seq not in known:
            raise NothingFound(f"no failure is recorded at sequence {seq:,}: `neuraxis failed list` shows all")
    return [known[seq] for seq in dict.fromkeys(sequences)] if sequences else list(failures)
