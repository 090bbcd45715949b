"""A key as it is stored: its id, its hash, and what it opens. Pure."""

import secrets
from hashlib import sha256
from typing import Annotated, Literal, get_args

import msgspec

Scope = Literal["ask", "read", "operate"]
"""What a key may do.

``ask``: send inputs, loops and ticks, and get their answers. ``read``: see what is recorded. ``operate``: change what
the set does.
"""

ALL_SCOPES: tuple[Scope, ...] = get_args(Scope)

Note = Annotated[str, msgspec.Meta(max_length=256)]


class Key(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A key, without the key itself: ``hash`` is the SHA-256 of it.

    A plain hash is enough, and none that takes long is needed: keys are random, of 256 bits, and cannot be guessed.

    Attributes:
        id: What names it in events, logs and commands.
        hash: SHA-256 of the key, in hexadecimal digits.
        scopes: What it may do.
        agent: The one agent that it acts for and reads of; empty: any.
        per_minute: Requests a minute, as many at once at most; 0: without a limit.
        note: Whose it is, in the operator's words.
        created: When it was made, RFC 3339.
        revoked: When it was revoked; empty while it opens. It is kept, so that events that name it can be understood.
    """

    id: Annotated[str, msgspec.Meta(pattern="^[A-Za-z0-9_-]{1,64}$")]
    hash: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]
    scopes: tuple[Scope, ...]
    agent: str = ""
    per_minute: Annotated[int, msgspec.Meta(ge=0, le=10**9)] = 0
    note: Note = ""
    created: str = ""
    revoked: str = ""


ANYBODY = Key(id="none", hash="0" * 64, scopes=ALL_SCOPES)
"""Stands for whoever calls a gateway that asks for no key: no key has this hash."""


def hash_of(key: str | bytes) -> str:
    """Return the hash by which a key is known."""
    return sha256(key.encode() if isinstance(key, str) else key).hexdigest()


def new_key(
    scopes: tuple[Scope, ...], *, created: str, agent: str = "", per_minute: int = 0, note: str = ""
) -> tuple[Key, str]:
    """Make a key; return it as it is stored, and the key itself, which nobody can tell again."""
    id = secrets.token_hex(4)
    told = f"nx_{id}_{secrets.token_urlsafe(32)}"
    key = Key(id=id, hash=hash_of(told), scopes=scopes, agent=agent, per_minute=per_minute, note=note, created=created)
    return key, told
