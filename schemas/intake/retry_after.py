"""The ``Retry-After`` header of an HTTP response. Pure."""

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime


def retry_after(header: str, now: datetime) -> float:
    """Return the seconds that a ``Retry-After`` header asks for; 0 where it is absent or invalid (RFC 9110)."""
    header = header.strip()
    if header.isascii() and header.isdigit():
        return float(header)
    try:
        at = parsedate_to_datetime(header)
    except (ValueError, OverflowError):
        return 0.0
    return max(0.0, ((at if at.tzinfo else at.replace(tzinfo=UTC)) - now).total_seconds())
