"""The trace context of the W3C, as callers send it: https://www.w3.org/TR/trace-context/."""

import re
from hashlib import blake2b

_HEX = frozenset("0123456789abcdef")
# Version, trace, span and flags in hex, and what later versions may add.
_CONTEXT = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_INVALID_VERSION, _NO_TRACE, _NO_SPAN = "ff", "0" * 32, "0" * 16


def trace_id(exchange: str) -> str:
    """Return the trace id of an exchange whose caller sent none: its id, or a hash where that is not 32 hex digits."""
    if len(exchange) == 32 and _HEX.issuperset(exchange) and exchange != _NO_TRACE:
        return exchange
    return blake2b(exchange.encode(), digest_size=16).hexdigest()


def span_id(event_id: str) -> str:
    """Return the span id of an event: the first 16 hex digits of its id, or a hash of an id that is not hex."""
    span = event_id[:16]
    if len(span) == 16 and _HEX.issuperset(span) and span != _NO_SPAN:
        return span
    return blake2b(event_id.encode(), digest_size=8).hexdigest()


def valid_traceparent(given: str) -> str:
    """Return a ``traceparent`` in the form of version 00; empty where it is not valid, so that a new trace begins.

    Later versions may add parts behind the flags; the first four stay what they are.
    """
    found = _CONTEXT.fullmatch(given.strip(" \t"))
    if found is None:
        return ""
    version, trace, span, flags, more = found.groups()
    if version == _INVALID_VERSION or trace == _NO_TRACE or span == _NO_SPAN or (version == "00" and more):
        return ""
    return f"00-{trace}-{span}-{flags}"
