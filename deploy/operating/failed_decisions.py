"""Failed decisions and effects: how their exchanges ended, and which inputs to send again."""

from collections.abc import AsyncIterator, Sequence

import msgspec

from actors.gateway.external_events import InvalidInput
from actors.gateway.inputs import InputOptions
from deploy.operating.recorded_inputs import recorded_input, rerun_options
from events.decoding import Recorded, decode, exchange_of
from events.errors import Misconfigured
from events.ledger.reader import END
from events.ledger.rows import topic_of_subject
from events.replay.presence_checks import NothingFound, span_of
from events.replay.sources import Source
from schemas.catalogue import CATALOGUE
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

_INPUTS_AND_ENDS = [topic_filter(topic_of(kind)) for kind in (InputReceived, ResponseEmitted)]

UNREADABLE_END = "UNREADABLE"
"""What stands for the action of an end that this release cannot read."""


class FailedDecision(msgspec.Struct, frozen=True, kw_only=True):
    """A failure of an actor or an effector on one message; or an exchange that ended FAILED without one on record, such
    as at its deadline, or since nobody served a guard. Its ``actor`` is the stage that it waited for, and the message
    its input.

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
    exchanges = {each.exchange for each in found if each.exchange}
    open_inputs: dict[str, int] = {}  # exchange -> sequence of its input, if it was to be answered, or may have been
    silent: list[FailedDecision] = []
    ended: dict[str, str] = {}
    reruns: dict[str, str] = {}
    async for batch in source.as_stored(_INPUTS_AND_ENDS, 0, END):
        for stored in batch:
            record = decode(stored)
            if not isinstance(record, Recorded):
                if topic_of_subject(stored.subject) == topic_of(ResponseEmitted):
                    ended[exchange_of(record)] = UNREADABLE_END
                    if exchange_of(record) not in exchanges:
                        source.unread.note(record)
                else:  # an unreadable input that names an exchange, in whatever field, may be its rerun
                    open_inputs[exchange_of(record)] = stored.seq
                    known = exchanges.union(each.exchange for each in silent)
                    named = (each for each in known if each.encode() in stored.data)
                    reruns |= dict.fromkeys(named, exchange_of(record))
                continue
            message = record.message
            if isinstance(message.event, InputReceived):
                if message.event.purpose == "answer":  # whoever has an input checked asks again
                    open_inputs[message.exchange] = message.seq
                if message.event.rerun_of:
                    reruns[message.event.rerun_of] = message.exchange
            elif isinstance(message.event, ResponseEmitted):
                input_seq = open_inputs.pop(message.exchange, 0)
                if message.exchange in exchanges:
                    ended[message.exchange] = message.event.action
                elif message.event.action == "FAILED" and input_seq:
                    silent.append(_without_failure(record, message.event, input_seq))
    return [
        msgspec.structs.replace(
            each, ended=each.ended or ended.get(each.exchange, ""), rerun=reruns.get(each.exchange, "")
        )
        for each in sorted((*found, *silent), key=lambda each: each.seq)
    ]


def _without_failure(record: Recorded, end: ResponseEmitted, input_seq: int) -> FailedDecision:
    message, stage = record.message, end.stage.lower()
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

    One that cannot be, such as a forgotten one, keeps no other back. The input is its options, if any, and its text.
    """
    for exchange in exchanges_to_redrive(failures):
        try:
            recorded = await recorded_input(source, exchange)
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
