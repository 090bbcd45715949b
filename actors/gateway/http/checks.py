"""What the checks of readiness say, which of it leaves a gateway ready, and what of it is nobody's business. Pure."""

import re

OK = "ok"
NOT_NEEDED = "n/a"
"""Said of what this deployment does without."""


def passes(said: str) -> bool:
    """Whether what a check said leaves a gateway ready."""
    return said in (OK, NOT_NEEDED)


def without_places(said: str) -> str:
    """Return what is said of a fault without the addresses in it: who may probe a gateway need not know them."""
    return _PLACE.sub("", said)


_PLACE = re.compile(r"(?: at)? [a-z][a-z0-9+.-]*://\S+?(?=[;:,.)]?(?:\s|$))")
