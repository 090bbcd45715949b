"""Other people's words in a prompt: fenced as data between lines with a key that does not occur in them. Pure.

The key is computed from all the words together. So nobody who wrote a part of them can know it and end the block early,
and a prompt made again is the same.
"""

from collections.abc import Iterator, Sequence
from hashlib import sha256

Block = tuple[str, str]
"""A block: its title, in the project's own words, and its text."""

_KEY_LENGTH = 12


def fenced_blocks(blocks: Sequence[Block], beside: Sequence[str] = ()) -> list[str]:
    """Return blocks between fence lines; the key occurs neither in them nor in ``beside``, the prompt's other texts."""
    texts = [*beside, *(body for _, body in blocks)]
    key = first_unused_key(_keys("\n".join(texts)), texts)
    return [f"[data {key}: {what}]\n{body}\n[end of data {key}]" for what, body in blocks]


def first_unused_key(keys: Iterator[str], texts: Sequence[str]) -> str:
    """Return the first of the keys that occurs in none of the texts."""
    return next(key for key in keys if not any(key in text for text in texts))


def _keys(seed: str) -> Iterator[str]:
    key = ""
    while True:
        key = sha256(f"{key}\n{seed}".encode("utf-8", "surrogatepass")).hexdigest()[:_KEY_LENGTH]
        yield key
