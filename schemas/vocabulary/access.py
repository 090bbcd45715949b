"""Operations over HTTP that need an operator's key. Owner: ``gateway``, the entry point that checks keys."""

from typing import Annotated

import msgspec

from schemas.actor import Scope
from schemas.entry import Entry
from schemas.event import Event


class Operated(Event, frozen=True, kw_only=True, tag="forged_id.access.operated"):
    """Somebody requested over HTTP what needs an operator's key. It is recorded before it is done, and may still fail.

    ``key_id`` names the key; it is ``none`` where the gateway needs no key. ``action`` is the method and the path's
    pattern; ``about`` is what the path names, such as a loop or an allowance. With the key ``gateway`` nobody did
    anything: a gateway finds out whether the broker stores again.
    """

    key_id: Annotated[str, msgspec.Meta(max_length=64)]
    action: Annotated[str, msgspec.Meta(max_length=200)]
    about: Annotated[str, msgspec.Meta(max_length=500)] = ""


ENTRIES = (
    Entry(
        owner="gateway",
        scope=Scope.GLOBAL,
        meaning="Somebody does over HTTP what takes an operator's key: which key, and what.",
        sample=Operated(key_id="3f9a1c07", action="POST /v1/allowances/{allowance:str}/withdraw", about="button"),
    ),
)
