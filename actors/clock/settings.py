"""The clock's settings: none. Deadlines are set by the events that carry them."""

import msgspec


class ClockSettings(msgspec.Struct, frozen=True):
    """The clock has no settings."""
