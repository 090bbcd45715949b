"""Allowances in a log, and the events that record a person's verdict on an exchange."""

from collections.abc import Iterable
from typing import Literal

import msgspec

from actors.contract.text.allowances import MOST, MOST_CHARACTERS
from actors.gateway.external_events import InvalidInput
from actors.gateway.orders import Order
from deploy.operating.named_items import in_force, orders_for
from events.codec import Recorded, decode
from events.log import Seal
from events.replay.checks_of_extent import NothingFound
from events.replay.sources import Source
from schemas.intake.blank import says_nothing
from schemas.vocabulary.allowances import AllowanceRecorded, AllowanceWithdrawn
from schemas.vocabulary.gateway import InputReceived
from schemas.vocabulary.precedents import PrecedentRecorded

Verdict = Literal["harm", "false-alarm", "benign"]


class Listed(msgspec.Struct, frozen=True, kw_only=True):
    """An allowance in force, and the sequence of the event that recorded it."""

    allowance: str
    text: str
    phrase: str
    by: str
    why: str
    seq: int


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """An input on which a person gives a verdict: whose it was, and its text."""

    exchange: str
    agent: str
    received: InputReceived

    @property
    def precedent(self) -> str:
        """The name of the precedent and of the allowance that a verdict on it makes."""
        return f"verdict-{self.exchange}"


async def allowances_in_force(source: Source, agent: str) -> list[Listed]:
    """Return an agent's allowances in force, in the order of recording."""
    return await in_force(source, agent, "allowance", AllowanceRecorded, AllowanceWithdrawn, Listed)


async def judged_input(source: Source, exchange: str) -> Judged:
    """Return the input of an exchange.

    Raises:
        NothingFound: the exchange has none that can be read, or its session was forgotten.
        InvalidInput: it has no text of its own.
    """
    for stored in await source.exchange(exchange):
        record = decode(stored)
        if isinstance(record, Recorded) and isinstance(record.message.event, InputReceived):
            if stored.seal not in (Seal.AS_STORED, Seal.OPENED):
                raise NothingFound(
                    f"the words of exchange {exchange} are sealed, and their key is gone or out of reach"
                )
            if says_nothing(record.message.event.text):
                raise InvalidInput(
                    f"exchange {exchange} has no text of its own, which a verdict is on: name what stands in its "
                    "layers by `neuraxis precedents import` or `neuraxis allowances add`"
                )
            return Judged(exchange=exchange, agent=record.message.agent, received=record.message.event)
    raise NothingFound(f"exchange {exchange} in the {source.name} has no input that this release can read")


def events_of(
    judged: Judged, verdict: Verdict, harm_level: float, by: str, why: str
) -> tuple[PrecedentRecorded, *tuple[AllowanceRecorded, ...]]:
    """Return the events that record a verdict: a precedent and, for a false alarm, an allowance of the text."""
    name = judged.precedent
    precedent = PrecedentRecorded(
        precedent=name,
        description=judged.received.text,
        situation=judged.received.situation,
        outcome="harmful" if verdict == "harm" else "benign",
        harm_level=harm_level if verdict == "harm" else 0.0,
        by=by,
        why=why,
    )
    if verdict != "false-alarm":
        return (precedent,)
    return precedent, AllowanceRecorded(allowance=name, text=judged.received.text, by=by, why=why)


async def verdict_orders(
    source: Source, exchange: str, verdict: Verdict, harm_level: float, by: str, why: str
) -> tuple[Judged, list[Order]]:
    """Return the input that is judged, and the orders that record the verdict.

    The latest verdict on an exchange counts: an allowance by an earlier one is withdrawn, unless this one allows it,
    too.

    Raises:
        NothingFound: the exchange has no input that can be read.
        InvalidInput: it has no text, or one too long to be allowed; or its agent has the largest number of allowances.
    """
    judged = await judged_input(source, exchange)
    if verdict == "false-alarm" and len(judged.received.text) > MOST_CHARACTERS:
        raise InvalidInput(f"the text has more than {MOST_CHARACTERS:,} characters: `neuraxis allowances add` a phrase")
    precedent, *allowances = events_of(judged, verdict, harm_level, by, why)
    orders = [Order(event=precedent, agent=judged.agent)]
    for allowance in allowances:
        orders += await allowance_orders(source, judged.agent, allowance)
    if not allowances and any(
        each.allowance == judged.precedent for each in await allowances_in_force(source, judged.agent)
    ):
        withdrawn = AllowanceWithdrawn(allowance=judged.precedent, by=by, why=why)
        orders.append(Order(event=withdrawn, agent=judged.agent))
    return judged, orders


async def allowance_orders(source: Source, agent: str, allowance: AllowanceRecorded) -> list[Order]:
    """Return the orders that record an allowance; an allowance of the same name is replaced.

    Raises:
        InvalidInput: the agent has the largest number of allowances.
    """
    others = [each for each in await allowances_in_force(source, agent) if each.allowance != allowance.allowance]
    if len(others) >= MOST:
        raise InvalidInput(f"agent {agent} has {MOST} allowances, and no more are held: withdraw some first")
    return [Order(event=allowance, agent=agent)]


async def withdrawal_orders(source: Source, agent: str, names: Iterable[str], by: str, why: str) -> list[Order]:
    """Return the orders that withdraw allowances of an agent.

    Raises:
        NothingFound: the agent has none of one of the names.
    """
    return orders_for(
        agent,
        "allowance",
        names,
        [each.allowance for each in await allowances_in_force(source, agent)],
        lambda name: AllowanceWithdrawn(allowance=name, by=by, why=why),
    )
