"""What can go wrong in a simulated world, and the count of what did."""

from enum import StrEnum

import msgspec

Span = tuple[float, float]
"""A range that values are drawn from evenly, in seconds."""


class Faults(msgspec.Struct, frozen=True, kw_only=True):
    """How often (probabilities in [0, 1]) and how badly a simulated world fails. The defaults are a perfect one.

    Attributes:
        request_delay_s: Time a request takes to the broker; concurrent ones overtake each other by it, those of one
            connection too (in a real network only across a reconnection: code may rely on neither).
        reply_delay_s: Time an answer takes back.
        lost_request: A request never arrives; nothing is stored and its caller is left in doubt.
        late_request: A request arrives only after its caller has given up, by another ``late_by_s``.
        lost_reply: A request is served but the answer never arrives.
        busy: The broker answers that it cannot serve now.
        outage: The broker dies as a request arrives, and starts again after ``outage_s``.
        clock_set_back: The server's clock is set back by ``clock_set_back_s`` before a store. Timestamps then fall
            from one message to the next: only sequences order a log.
        delivery_delay_s: Time between a message's storing and its reaching a tail.
        slow_delivery: A tail's next messages are held up by ``slow_delivery_s`` instead.
        pages: Fewest and most messages that one step of a reading yields.
        snapshot_lost: A load finds nothing.
        snapshot_stale: A load finds the snapshot before the newest.
        snapshot_corrupt: A load finds the newest cut short or with a wrong bit.
    """

    request_delay_s: Span = (0.0, 0.0)
    reply_delay_s: Span = (0.0, 0.0)
    lost_request: float = 0.0
    late_request: float = 0.0
    late_by_s: Span = (0.0, 30.0)
    lost_reply: float = 0.0
    busy: float = 0.0
    outage: float = 0.0
    outage_s: Span = (0.1, 8.0)
    clock_set_back: float = 0.0
    clock_set_back_s: Span = (0.001, 2.0)
    delivery_delay_s: Span = (0.0, 0.0)
    slow_delivery: float = 0.0
    slow_delivery_s: Span = (0.1, 5.0)
    pages: tuple[int, int] = (1000, 1000)
    snapshot_lost: float = 0.0
    snapshot_stale: float = 0.0
    snapshot_corrupt: float = 0.0


CALM = Faults()
"""Nothing fails and nothing takes time."""

STORMY = Faults(
    request_delay_s=(0.0002, 0.02),
    reply_delay_s=(0.0002, 0.02),
    lost_request=0.01,
    late_request=0.01,
    lost_reply=0.02,
    busy=0.01,
    outage=0.003,
    clock_set_back=0.005,
    delivery_delay_s=(0.0, 0.03),
    slow_delivery=0.02,
    pages=(1, 50),
    snapshot_lost=0.1,
    snapshot_stale=0.1,
    snapshot_corrupt=0.1,
)
"""Everything fails, each thing often enough to meet the others within a short world."""


class Incident(StrEnum):
    """A kind of thing that happened; ``SimulatedStream.incidents`` counts them."""

    STORED = "stored"
    """An append was stored."""
    CONFLICT = "conflict"
    """An append met a fence that did not hold, or a known id in a batch."""
    DUPLICATE = "duplicate"
    """A lone record was known already; its caller got the stored sequence."""
    UNKNOWN_OUTCOME = "unknown_outcome"
    """A caller was left in doubt."""
    STORED_IN_DOUBT = "stored_in_doubt"
    """An append was stored after its caller had been left in doubt."""
    STORED_AFTER_DEATH = "stored_after_death"
    """An append was stored after its sender had died."""
    REQUEST_LOST = "request_lost"
    REQUEST_LATE = "request_late"
    REQUEST_HELD = "request_held"
    """A request waited in a client's buffer for the broker to come back."""
    REPLY_LOST = "reply_lost"
    BUSY = "busy"
    UNREACHABLE = "unreachable"
    """A caller knew at once that the broker was gone."""
    OUTAGE = "outage"
    CLOCK_SET_BACK = "clock_set_back"
    SLOW_DELIVERY = "slow_delivery"
    KILLED = "killed"
    SNAPSHOT_LOST = "snapshot_lost"
    SNAPSHOT_STALE = "snapshot_stale"
    SNAPSHOT_CORRUPT = "snapshot_corrupt"
    MEMBER_EXPIRED = "member_expired"
