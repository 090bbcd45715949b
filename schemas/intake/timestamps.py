"""Unix nanoseconds written as RFC 3339 timestamps. Pure: nothing here reads a clock."""

from datetime import UTC, datetime, timedelta
from functools import lru_cache

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def rfc3339(time_ns: int) -> str:
    """Spell Unix nanoseconds as an RFC 3339 timestamp in UTC, to the microsecond."""
    seconds, rest = divmod(time_ns, 1_000_000_000)
    return f"{_second(seconds)}.{rest // 1000:06d}Z"


def to_milliseconds(time_ns: int) -> str:
    """Spell Unix nanoseconds as an RFC 3339 timestamp in UTC, to the millisecond."""
    seconds, rest = divmod(time_ns, 1_000_000_000)
    return f"{_second(seconds)}.{rest // 1_000_000:03d}Z"


@lru_cache(maxsize=64)
def _second(seconds: int) -> str:
    return (_EPOCH + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%S")
