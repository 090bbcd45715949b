"""What a partition writes: the envelopes of its decisions, the event with its settings, and its log lines."""

from typing import Any

import msgspec

from actors.runtime.committer import Group
from actors.runtime.context import Context
from actors.runtime.envelopes import to_record, trace_of
from events.decoding import Unreadable
from events.loggers import get_logger
from events.make_decision import Cause, NewEvent
from events.partition_fold import Delivery, View
from schemas.actor import Actor, Scope
from schemas.envelope import LATENCY
from schemas.event import Configured
from schemas.identity import content_hash
from schemas.subjects import NO_PARTITION

_logger = get_logger("neuraxis.shard")

_MAX_DETAIL = 300
"""Most characters that a log line has of the reason why a message cannot be read."""


class EventAuthor:
    """Builds the events of one partition of an actor, with that actor as their source.

    Attributes:
        settings: The actor's settings, as they are recorded.
    """

    def __init__(self, actor: Actor[Any], partition: str, settings: msgspec.Struct, context: Context) -> None:
        self.settings: dict[str, Any] = msgspec.to_builtins(settings)
        self._settings_hash = content_hash(self.settings)
        self._actor = actor
        self._partition = partition
        self._context = context
        self._source = f"{context.source}/{actor.name}/{partition}"
        self._build = f"{context.build}+{self._settings_hash[:8]}"

    def group(
        self, decided: tuple[NewEvent, ...], latency_us: int, exceeded_budget_us: int | None, cause: Delivery | None
    ) -> Group:
        """Return the events of one decision on ``cause`` as they are stored. If the decision is a failure, log that."""
        now, counters = self._context.clock.now_ns(), self._context.counters
        trace = trace_of(cause)
        records = tuple(
            to_record(one, self._source, self._build, now, latency_us, exceeded_budget_us, trace) for one in decided
        )
        counters.emitted += len(decided)
        if isinstance(decided[0].message.event, self._actor.failed):
            counters.failed += 1
            failure = decided[0].message.event
            _logger.error(
                "decision_failed",
                actor=self._actor.name,
                partition=self._partition,
                reason=failure.reason,
                error=failure.error or _why_unreadable(cause),
                seq=failure.failed_seq,
                exchange=decided[0].message.exchange,
            )
        return Group(decided, records)

    def log(self, group: Group) -> None:
        """Write the actor's log lines about a decision that is stored."""
        # Only after it is stored: a decision that the fence refused never happened, and a log line would claim it did.
        if self._actor.log_lines is None:
            return
        for one, record in zip(group.decided, group.records, strict=True):
            for line in self._actor.log_lines(one.message.event, int(record.headers[LATENCY]) / 1000):
                _logger.info(line, exchange=one.message.exchange)

    def configured(self) -> Configured:
        """Return the event that records the settings."""
        return self._actor.configured(
            settings=self.settings, settings_hash=self._settings_hash, behaviour=self._actor.behaviour
        )

    def is_configured(self, view: View) -> bool:
        """Return whether the settings in force in ``view`` are the actor's settings here."""
        known = view.configured
        return known is not None and (known.settings_hash, known.behaviour) == (
            self._settings_hash,
            self._actor.behaviour,
        )

    def settings_cause(self, view: View) -> Cause:
        """Return the cause of the event that records the settings."""
        actor = self._actor
        cause = f"{actor.name}/{self._partition}/{view.own_last}/{self._settings_hash}/{actor.behaviour}"
        return self.spontaneous_cause(view, cause)

    def spontaneous_cause(self, view: View, identity: str) -> Cause:
        """Return the cause of a spontaneous event (one that no message caused); ``identity`` tells it from others."""
        # (agent token, session token) of the subject.
        tokens = {Scope.SESSION: (NO_PARTITION, self._partition), Scope.AGENT: (self._partition, NO_PARTITION)}
        agent_token, session_token = tokens.get(self._actor.scope, (NO_PARTITION, NO_PARTITION))
        return Cause(
            id=identity,
            seq=view.position,
            time_ns=view.time_ns,
            agent="",
            session="",
            exchange="",
            agent_token=agent_token,
            session_token=session_token,
        )


def _why_unreadable(cause: Delivery | None) -> str:
    """Return why a message could not be read, cut: it may repeat something of the message; empty for any other."""
    return cause.detail[:_MAX_DETAIL] if isinstance(cause, Unreadable) else ""
