"""Recorded inputs: read from the log to be judged by a person, or to be sent again."""

import msgspec

from actors.gateway.external_events import InvalidInput
from actors.gateway.inputs import InputOptions
from events.decoding import Recorded, Unreadable, decode
from events.ledger.rows import topic_of_subject
from events.log import Seal, Stored
from events.replay.presence_checks import NothingFound
from events.replay.sources import Source
from schemas.envelope import exchange_in
from schemas.event import topic_of
from schemas.intake.blank import says_nothing
from schemas.subjects import topic_filter
from schemas.vocabulary.gateway import InputReceived

_INPUTS = topic_filter(topic_of(InputReceived))


class RecordedInput(msgspec.Struct, frozen=True, kw_only=True):
    """The input of an exchange, with its agent, its session and its sequence."""

    exchange: str
    agent: str
    session: str
    seq: int
    received: InputReceived


async def recorded_input(source: Source, exchange: str, begin: int = 0) -> RecordedInput:
    """Return the input of an exchange; ``begin`` is its sequence, if it is known: else the log is searched for it.

    Raises:
        NothingFound: the log has no input of the exchange, or it cannot be read: by this release, or without its key.
    """
    messages: list[Stored] = []
    if begin:
        found_there = source.history([_INPUTS], begin - 1, begin)
        messages = [each async for batch in found_there for each in batch if exchange_in(each.headers) == exchange]
    for stored in messages or await source.exchange(exchange):
        record = decode(stored)
        if isinstance(record, Unreadable) and topic_of_subject(stored.subject) == topic_of(InputReceived):
            raise NothingFound(
                f"this release cannot read the input of exchange {exchange}, at sequence {stored.seq:,} of the "
                f"{source.name}: {record.detail}; use the release that wrote it"
            )
        if isinstance(record, Recorded) and isinstance(received := record.message.event, InputReceived):
            if stored.seal not in (Seal.AS_STORED, Seal.OPENED):
                raise NothingFound(
                    f"the words of exchange {exchange} are sealed, and their key is gone or out of reach"
                )
            found = record.message
            return RecordedInput(
                exchange=exchange, agent=found.agent, session=found.session, seq=found.seq, received=received
            )
    raise NothingFound(
        f"the {source.name} holds no input of exchange {exchange}: its beginning was lost, or is elsewhere"
        f"{(await source.losses()).where_kept}"
    )


def rerun_options(recorded: RecordedInput, session: str, exchange: str = "") -> InputOptions:
    """Return the options that send a recorded input again, in ``session``; ``exchange``, if given, is its new id.

    An input that was forwarded to an upstream model is only checked: only the caller asks that model.

    Raises:
        InvalidInput: layers were left out when it was received, so that it cannot be sent as it was.
    """
    received = recorded.received
    if received.left_out:
        raise InvalidInput(
            f"{received.left_out:,} layers of exchange {recorded.exchange} were never read, so that it cannot be sent "
            "as it was: send it anew from where it came from"
        )
    return InputOptions(
        agent=recorded.agent,
        session=session,
        layers=received.layers,
        situation=received.situation,
        label=received.label,
        deadline_after_ms=received.deadline_after_ms,
        purpose="answer" if received.purpose == "answer" else "check",
        exchange=exchange,
        rerun_of=recorded.exchange,
        wordless=says_nothing(received.text),
    )
