"""An agent's allowances (texts that guards let pass), and the orders that record a person's verdict on an exchange."""

from collections.abc import Iterable
from typing import Literal

import msgspec

from actors.contract.text.allowances import MOST_ALLOWANCES, MOST_CHARACTERS
from actors.gateway.external_events import InvalidInput
from actors.gateway.operator_orders import Order
from deploy.operating.guarding.named_items import items_in_force, withdrawals
from deploy.operating.recorded_inputs import RecordedInput, recorded_input
from events.replay.sources import Source
from schemas.intake.blank import says_nothing
from schemas.vocabulary.allowances import AllowanceRecorded, AllowanceWithdrawn
from schemas.vocabulary.precedents import PrecedentRecorded

Verdict = Literal["harm", "false-alarm", "benign"]
"""A person's verdict on how an exchange turned out."""


class ListedAllowance(msgspec.Struct, frozen=True, kw_only=True):
    """An allowance in force, and the sequence of the event that recorded it."""

    allowance: str
    text: str
    phrase: str
    by: str
    why: str
    seq: int


async def allowances_in_force(source: Source, agent: str) -> list[ListedAllowance]:
    """Return an agent's allowances in force, in the order of recording."""
    return await items_in_force(source, agent, "allowance", AllowanceRecorded, AllowanceWithdrawn, ListedAllowance)


async def judged_input(source: Source, exchange: str, begin: int = 0) -> RecordedInput:
    """Return the input of an exchange on which a person gives a verdict; ``begin`` is its sequence, if it is known.

    Raises:
        NothingFound: the exchange has no input that can be read, or its session was forgotten.
        InvalidInput: the input has no text of its own, only layers such as documents.
    """
    judged = await recorded_input(source, exchange, begin)
    if says_nothing(judged.received.text):
        raise InvalidInput(
            f"exchange {exchange} has no text of its own, which a verdict is on: name what stands in its "
            "layers by `neuraxis precedents import` or `neuraxis allowances add`"
        )
    return judged


def precedent_name(exchange: str) -> str:
    """Return the name of the precedent and of the allowance that record a verdict on an exchange."""
    return f"verdict-{exchange}"


def verdict_events(
    judged: RecordedInput, verdict: Verdict, harm_level: float, by: str, why: str
) -> tuple[PrecedentRecorded, *tuple[AllowanceRecorded, ...]]:
    """Return the events that record a verdict: a precedent and, for a false alarm, an allowance of the text."""
    name = precedent_name(judged.exchange)
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
    source: Source, judged: RecordedInput, verdict: Verdict, harm_level: float, by: str, why: str
) -> list[Order]:
    """Return the orders that record a verdict on an input.

    The latest verdict on an exchange counts: the allowance of an earlier one is withdrawn, unless this one allows the
    text, too.

    Raises:
        InvalidInput: its text is too long to be allowed, or its agent has the largest number of allowances.
    """
    if verdict == "false-alarm" and len(judged.received.text) > MOST_CHARACTERS:
        raise InvalidInput(f"the text has more than {MOST_CHARACTERS:,} characters: `neuraxis allowances add` a phrase")
    precedent, *allowances = verdict_events(judged, verdict, harm_level, by, why)
    orders = [Order(event=precedent, agent=judged.agent)]
    for allowance in allowances:
        orders += await allowance_orders(source, judged.agent, allowance)
    if not allowances and any(
        each.allowance == precedent_name(judged.exchange) for each in await allowances_in_force(source, judged.agent)
    ):
        withdrawn = AllowanceWithdrawn(allowance=precedent_name(judged.exchange), by=by, why=why)
        orders.append(Order(event=withdrawn, agent=judged.agent))
    return orders


async def allowance_orders(source: Source, agent: str, allowance: AllowanceRecorded) -> list[Order]:
    """Return the orders that record an allowance; an allowance of the same name is replaced.

    Raises:
        InvalidInput: the agent has the largest number of allowances.
    """
    others = [each for each in await allowances_in_force(source, agent) if each.allowance != allowance.allowance]
    if len(others) >= MOST_ALLOWANCES:
        raise InvalidInput(f"agent {agent} has {MOST_ALLOWANCES} allowances, and no more are held: withdraw some first")
    return [Order(event=allowance, agent=agent)]


async def withdrawal_orders(source: Source, agent: str, names: Iterable[str], by: str, why: str) -> list[Order]:
    """Return the orders that withdraw allowances of an agent.

    Raises:
        NothingFound: the agent has no allowance of one of the names.
    """
    return withdrawals(
        agent,
        "allowance",
        names,
        [each.allowance for each in await allowances_in_force(source, agent)],
        lambda name: AllowanceWithdrawn(allowance=name, by=by, why=why),
    )
