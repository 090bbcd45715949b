"""Valid names of agents, sessions and other named things.

A name is checked where it first enters the system, never where an event is read: logs hold names from before these
rules.
"""

import re

from schemas.intake.blank import is_blank

MAX_NAME_CHARACTERS = 256
MAX_NAME_BYTES = 512
"""In UTF-8. A name is percent-encoded in headers, and takes up to three times as many bytes there."""

# Control characters, and the Unicode line separators: a newline separates the two names in a key
# (``schemas.actor.session_key``), and output shows one name per line.
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_SURROGATE = re.compile("[\ud800-\udfff]")


def wrong_with_name(name: str) -> str | None:
    """Return what is wrong with a name and what to do, or None; an empty name is accepted here."""
    if name and is_blank(name):
        return "is blank: write a word"
    if surrogate := _SURROGATE.search(name):
        return f"holds a lone surrogate at character {surrogate.start()}: it is no Unicode text; repair or drop it"
    if control := _CONTROL.search(name):
        return f"holds a control character (U+{ord(control[0]):04X}) at character {control.start()}: drop it"
    if len(name) > MAX_NAME_CHARACTERS:
        return f"has {len(name)} characters: at most {MAX_NAME_CHARACTERS}"
    if (size := len(name.encode())) > MAX_NAME_BYTES:
        return f"has {size} bytes of UTF-8: at most {MAX_NAME_BYTES}"
    return None
