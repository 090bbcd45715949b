"""Other people's words in a prompt: set apart as data between lines with a key that does not occur in them. Pure.

The key is a hash of all the texts together. So nobody who wrote one of them can know it and end the block early, and a
replay makes the same prompt.
"""

from collections.abc import Iterator, Sequence
from hashlib import sha256

Block = tuple[str, str]
"""A block: its title, which the project wrote, and its text, which somebody else wrote."""

_KEY_LENGTH = 12


def delimited_blocks(blocks: Sequence[Block], beside: Sequence[str] = ()) -> list[str]:
    """Return blocks between lines whose key occurs neither in them nor in ``beside`` (the prompt's other texts)."""
    texts = [*beside, *(body for _, body in blocks)]
    key = first_unused_key(_keys("\n".join(texts)), texts)
    return [f"[data {key}: {title}]\n{body}\n[end of data {key}]" for title, body in blocks]


def first_unused_key(keys: Iterator[str], texts: Sequence[str]) -> str:
    """Return the first of the keys that occurs in none of the texts."""
    return next(key for key in keys if not any(key in text for text in texts))


def _keys(seed: str) -> Iterator[str]:
    key = ""
    while True:
        key = sha256(f"{key}\n{seed}".encode("utf-8", "surrogatepass")).hexdigest()[:_KEY_LENGTH]
        yield key
