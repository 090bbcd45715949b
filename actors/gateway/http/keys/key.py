"""A key as it is stored: its id, its hash, and its rights. Pure."""

import secrets
from hashlib import sha256
from typing import Annotated, Literal, get_args

import msgspec

Scope = Literal["ask", "read", "operate"]
"""What a key may do.

``ask``: send inputs, loops and ticks, and get their answers. ``read``: read what is recorded. ``operate``: change what
the set does.
"""

ALL_SCOPES: tuple[Scope, ...] = get_args(Scope)

Id = Annotated[str, msgspec.Meta(pattern="^[A-Za-z0-9_-]{1,64}$")]
Hash = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]
Note = Annotated[str, msgspec.Meta(max_length=256)]


class Key(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A key as it is stored: ``hash`` is the SHA-256 of the key itself, which is not kept.

    A fast hash is enough: keys are random, of 256 bits, and cannot be guessed, so a slow password hash adds nothing.

    Attributes:
        id: Its name in events, logs and commands.
        hash: SHA-256 of the key, in hexadecimal digits.
        scopes: What it may do.
        agent: The only agent that it may act for and read about; empty: any.
        per_minute: Requests per minute; as many may also come at once; 0: no limit.
        note: Whose key it is, in the operator's words.
        created: When it was made, RFC 3339.
        revoked: When it was revoked; empty while it is valid. A revoked key stays in the file, so that events that name
            it can still be understood.
    """

    id: Id
    hash: Hash
    scopes: tuple[Scope, ...]
    agent: str = ""
    per_minute: Annotated[int, msgspec.Meta(ge=0, le=10**9)] = 0
    note: Note = ""
    created: str = ""
    revoked: str = ""


ANYBODY = Key(id="none", hash="0" * 64, scopes=ALL_SCOPES)
"""The key of every caller of a gateway that requires no key; no real key has this hash."""


def hash_of(key: str | bytes) -> str:
    """Return the hash of a key, by which it is looked up."""
    return sha256(key.encode() if isinstance(key, str) else key).hexdigest()


def new_key(
    scopes: tuple[Scope, ...], *, created: str, agent: str = "", per_minute: int = 0, note: str = ""
) -> tuple[Key, str]:
    """Make a key; return its stored form, and the key itself, which cannot be recovered later."""
    id = secrets.token_hex(4)
    secret_text = f"nx_{id}_{secrets.token_urlsafe(32)}"
    key = Key(
        id=id, hash=hash_of(secret_text), scopes=scopes, agent=agent, per_minute=per_minute, note=note, created=created
    )
    return key, secret_text
