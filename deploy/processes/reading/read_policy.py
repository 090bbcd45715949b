"""What a narrow worker may read: the filters over what its owners consume and publish, and over recorded losses.

A worker is narrow if its login may not read the whole log. Its owners are the actors and effectors that it runs.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any

import msgspec

from events.jetstream.rights import covers
from events.losses import LOSS_FILTER
from events.routes import consumed_filters, own_filters
from schemas.catalogue import requests_to
from schemas.event import topic_of
from schemas.permissions import durable_names, stored_filters
from schemas.subjects import topic_filter

_CONFIG_FIELDS = frozenset(
    {"name", "durable_name", "deliver_policy", "opt_start_seq", "ack_policy", "ack_wait", "max_deliver"}
    | {"max_ack_pending", "replay_policy", "mem_storage", "num_replicas", "inactive_threshold"}
    | {"filter_subject", "filter_subjects", "metadata"}
)
"""What a consumer may be configured with. No subject to deliver to is among it: the worker pulls."""


class Denied(ValueError):
    """A read that an owner has no right to; the message says why."""

    code = "denied"


class ConsumerRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of a request to create a consumer."""

    stream_name: str
    config: dict[str, Any]
    action: str = ""


@cache
def readable_by(owner: str) -> tuple[str, ...]:
    """Return the filters over all that an owner may read."""
    # Imported here: a process that no narrow worker asks does not load the actors.
    from actors.registry import ACTORS
    from actors.runtime.dispatcher import SHARED_FILTERS

    actor = ACTORS.get(owner)
    consumed = (*consumed_filters(actor), *own_filters(actor), *SHARED_FILTERS) if actor is not None else ()
    requests = tuple(topic_filter(topic_of(event)) for event in requests_to(owner))
    return (*consumed, *requests, *stored_filters(owner), LOSS_FILTER)


def check_filter(owners: Sequence[str], wanted: str) -> None:
    """Raise Denied unless one of the owners may read all that a filter matches."""
    if not any(covers(pattern, wanted) for owner in owners for pattern in readable_by(owner)):
        raise Denied(f"{', '.join(owners)} may not read {wanted}")


def check_consumer(owners: Sequence[str], stream: str, name: str, request: ConsumerRequest, *, durable: bool) -> None:
    """Raise Denied unless owners may have the consumer that they ask for."""
    config = request.config
    if unknown := sorted(config.keys() - _CONFIG_FIELDS):
        raise Denied(f"a reading has no {', '.join(unknown)}")
    if request.stream_name != stream or config.get("name") != name:
        raise Denied("the request is about another stream or consumer than its subject names")
    if durable:
        if config.get("durable_name") != name or name not in {each for one in owners for each in durable_names(one)}:
            raise Denied(f"{name} is not a durable consumer of {', '.join(owners)}")
    elif "durable_name" in config or request.action != "create":
        # Only a new one: whoever may change a consumer may take it from its reader.
        raise Denied(f"{name} would not be a new consumer of one reading")
    filters = [*(config.get("filter_subjects") or ()), *filter(None, [config.get("filter_subject")])]
    if not filters:
        raise Denied("a consumer without a filter would read everything")
    for wanted in filters:
        check_filter(owners, str(wanted))
