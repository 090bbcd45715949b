"""Numbers of things in words. Pure."""


def counted(count: int, noun: str) -> str:
    """Return so many of a thing: ``1 exchange``, ``2,000 exchanges``."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
