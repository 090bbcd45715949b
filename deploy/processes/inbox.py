"""Inboxes: the only subjects that anything is ever answered on."""

import re

_INBOX = re.compile(r"_INBOX(\.[A-Za-z0-9_-]+)+")


def is_inbox(subject: str) -> bool:
    """Whether a reply subject is a literal one below ``_INBOX``: anything else could be made to look like an event."""
    return _INBOX.fullmatch(subject) is not None
