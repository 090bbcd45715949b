"""Which exchange a command means: by its id, by the beginning of one, or the latest."""

from typing import TYPE_CHECKING

from deploy.cli.outcomes import WrongUse
from schemas.intake.blank import is_blank

if TYPE_CHECKING:
    from events.replay.sources import Source

LAST = "last"
_MAX_LISTED = 5


async def resolve(source: "Source", wanted: str) -> str:
    """Return the id of an exchange from the beginning of its id, or from ``last``.

    Raises:
        NothingFound: no exchange has it.
        WrongUse: several have it, or nothing was given: a shell variable that is not set means no exchange.
    """
    from events.replay.presence_checks import NothingFound

    if is_blank(wanted):
        raise WrongUse("the exchange is blank: write its id, the beginning of one, or `last`")
    if wanted == LAST:
        last = await source.last_exchange()
        if last is None:
            raise NothingFound(f"the {source.name} holds no exchange yet: send one with `neuraxis ask`")
        return last
    found = await source.exchange_ids(wanted, _MAX_LISTED + 1)
    if wanted in found or len(found) == 1:
        return wanted if wanted in found else found[0]
    if not found:
        where_kept = (await source.losses()).where_kept
        raise NothingFound(f"no exchange in the {source.name} begins with {wanted!r}: `last` is the latest{where_kept}")
    more = ", ..." if len(found) > _MAX_LISTED else ""
    raise WrongUse(
        f"more than one exchange begins with {wanted!r}: {', '.join(found[:_MAX_LISTED])}{more}; give more of it"
    )
