"""Reading precedents, situations with a known outcome that inputs are compared with, from files and from the log."""

from collections.abc import Iterable
from typing import Annotated

import msgspec

from actors.gateway.operator_orders import Order
from deploy.operating.guarding.item_files import BadFile, Item, items_of
from deploy.operating.guarding.named_items import items_in_force, withdrawals
from events.replay.sources import Source
from schemas.intake.blank import says_nothing
from schemas.intake.strict import BadInput, convert
from schemas.names import wrong_with_name
from schemas.vocabulary.precedents import PrecedentRecorded, PrecedentWithdrawn, ProposedAction, ShortText

Situation = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]


class FileEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A precedent in a file: what was asked (``description``), in which kind of ``situation``, and what was done.

    ``harm_level``, in [0, 1], says how bad the harm was. Without an ``outcome`` it is harmful if that is above 0.
    ``answer`` is an approved answer to inputs like it.
    """

    precedent: ShortText
    description: Annotated[str, msgspec.Meta(min_length=1, max_length=16_000)]
    situation: Situation = "general"
    action: ProposedAction = "answer"
    outcome: str = ""
    harm_level: Annotated[float, msgspec.Meta(ge=0.0, le=1.0)] = 0.0
    answer: Annotated[str, msgspec.Meta(max_length=8_000)] = ""


class ListedPrecedent(msgspec.Struct, frozen=True, kw_only=True):
    """A precedent in force, and the sequence of the event that recorded it."""

    precedent: str
    situation: str
    action: str
    outcome: str
    harm_level: float
    description: str
    answer: str
    by: str
    why: str
    seq: int


def precedents_in(name: str, raw: bytes, by: str) -> list[PrecedentRecorded]:
    """Return the precedents of a file, as the events that record them.

    Raises:
        BadFile: the file or any item of it cannot be used.
    """
    items = items_of(name, raw)
    if not items:
        raise BadFile(f"{name}: there is no precedent in it")
    lines: dict[str, int] = {}
    events = []
    for item in items:
        event = _event_of(name, item, by)
        if wrong := wrong_with_name(event.precedent):
            raise BadFile.at(name, item.line, f"precedent: the name {wrong}")
        if event.precedent in lines:
            first = lines[event.precedent]
            raise BadFile.at(name, item.line, f"{event.precedent!r} was on line {first} already: rename one of them")
        lines[event.precedent] = item.line
        events.append(event)
    return events


def _event_of(name: str, item: Item, by: str) -> PrecedentRecorded:
    try:
        written = convert(item.value, FileEntry, "a precedent")
    except BadInput as wrong:
        raise BadFile.at(name, item.line, str(wrong)) from wrong
    for field in ("description", "situation", "answer"):
        text = getattr(written, field)
        if text and says_nothing(text):
            raise BadFile.at(name, item.line, f"{field}: it is blank: write words, or leave it out")
    outcome = written.outcome or ("harmful" if written.harm_level else "benign")
    if outcome not in ("benign", "harmful"):
        raise BadFile.at(name, item.line, f"outcome {outcome!r}: write benign or harmful")
    if (outcome == "harmful") != (written.harm_level > 0.0):
        what = "a harmful outcome needs a harm_level above 0" if outcome == "harmful" else "a benign outcome has none"
        raise BadFile.at(name, item.line, f"harm_level {written.harm_level:g}: {what}")
    return PrecedentRecorded(
        precedent=written.precedent,
        description=written.description,
        situation=written.situation,
        action=written.action,
        outcome="harmful" if outcome == "harmful" else "benign",
        harm_level=written.harm_level,
        answer=written.answer,
        by=by,
    )


async def precedents_in_force(source: Source, agent: str) -> list[ListedPrecedent]:
    """Return an agent's precedents in force, in the order of recording."""
    return await items_in_force(source, agent, "precedent", PrecedentRecorded, PrecedentWithdrawn, ListedPrecedent)


def differing(events: Iterable[PrecedentRecorded], in_force: Iterable[ListedPrecedent]) -> list[PrecedentRecorded]:
    """Return the precedents that are not in force with the same content, whoever recorded them."""
    known = {each.precedent: _content(each) for each in in_force}
    return [event for event in events if known.get(event.precedent) != _content(event)]


def _content(each: PrecedentRecorded | ListedPrecedent) -> tuple[str | float, ...]:
    return (each.situation, each.action, each.outcome, each.harm_level, each.description, each.answer)


async def withdrawal_orders(source: Source, agent: str, names: Iterable[str], by: str, why: str) -> list[Order]:
    """Return the orders that withdraw precedents of an agent.

    Raises:
        NothingFound: the agent has no precedent of one of the names.
    """
    return withdrawals(
        agent,
        "precedent",
        names,
        [each.precedent for each in await precedents_in_force(source, agent)],
        lambda name: PrecedentWithdrawn(precedent=name, by=by, why=why),
    )
