"""Open groups, and how many announcements were made in the current minute. Pure."""

from collections import Counter
from collections.abc import Iterable

import msgspec

from actors.alerts.grouping import Key, figures
from actors.alerts.settings import AlertsSettings
from schemas.actor import Message
from schemas.catalogue import ALERTING, ALERTS
from schemas.entry import Severity
from schemas.persistent import Map
from schemas.vocabulary.alerts import SEVERITY_NAMES, Alert

_NS_PER_MS = 1_000_000
_MINUTE_NS = 60_000_000_000


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """An open group: the events of one key.

    ``first_seq`` and ``since_ns`` are the sequence and time (Unix nanoseconds) of its first event; ``last_seq`` and
    ``last_ns`` are those of its latest, ``exchange`` is that event's exchange, ``figures`` its numbers and codes.
    ``told`` is the count that was announced last (0: none), ``told_ns`` when. ``owed``: its latest announcement was
    held back by the limit. ``coarse``: it is a common group for events without room elsewhere; the end of one of
    its conditions does not end the group.
    """

    key: Key
    coarse: bool
    first_seq: int
    since_ns: int
    last_seq: int
    last_ns: int
    exchange: str
    figures: dict[str, str]
    count: int = 1
    told: int = 0
    told_ns: int = 0
    owed: bool = False


class Window(msgspec.Struct, frozen=True):
    """The announcements of a severity in one minute, which are limited.

    ``minute`` is its number since the Unix epoch. ``told`` counts the announcements made in it, ``shares`` those for
    each agent, ``held`` those held back since the last one was made.
    """

    minute: int = 0
    told: int = 0
    held: int = 0
    shares: Map[str, int] = Map()


def with_event(group: Group | None, key: Key, coarse: bool, message: Message) -> Group:
    """Return a group with one more event, or the group that the event opens, a common one if ``coarse``."""
    if group is None:
        group = Group(
            key=key,
            coarse=coarse,
            first_seq=message.seq,
            since_ns=message.time_ns,
            last_seq=message.seq,
            last_ns=message.time_ns,
            exchange="",
            figures={},
            count=0,
        )
    return msgspec.structs.replace(
        group,
        last_seq=message.seq,
        last_ns=message.time_ns,
        exchange=message.exchange,
        figures=figures(message.event),
        count=group.count + 1,
    )


def severity_of(key: Key) -> Severity:
    """Return the severity of a group's topic."""
    severity = ALERTING[key.topic].severity
    assert severity is not None, "ALERTING holds what has one"
    return severity


def is_news(group: Group, now_ns: int, settings: AlertsSettings) -> bool:
    """Whether a group that has just grown must be announced: the first time, at twice the count, or after a while."""
    return group.count >= 2 * group.told or now_ns - group.told_ns >= settings.repeat_ms * _NS_PER_MS


def due_ns(group: Group, settings: AlertsSettings) -> int:
    """Return when a group is over if no further event comes, in Unix nanoseconds."""
    return group.last_ns + _lifetime_ms(group, settings) * _NS_PER_MS


def _lifetime_ms(group: Group, settings: AlertsSettings) -> int:
    if ALERTING[group.key.topic].ended_by and not group.coarse:
        return settings.session_lapse_ms if group.key.session else settings.lapse_ms
    return settings.info_quiet_ms if severity_of(group.key) is Severity.INFO else settings.quiet_ms


def next_minute_ns(now_ns: int) -> int:
    """Return when the next minute begins, with room for announcements, in Unix nanoseconds."""
    return (now_ns // _MINUTE_NS + 1) * _MINUTE_NS


def has_room(window: Window, agent: str, now_ns: int, settings: AlertsSettings) -> bool:
    """Whether another announcement for an agent fits into the current minute."""
    if window.minute != now_ns // _MINUTE_NS:
        return True
    return window.told < settings.most_a_minute and window.shares.get(agent, 0) < settings.most_an_agent


def with_announcement(window: Window, agent: str, now_ns: int) -> Window:
    """Return a window after an announcement for an agent."""
    minute = now_ns // _MINUTE_NS
    if minute != window.minute:
        return Window(minute, 1, 0, Map({agent: 1}))
    return Window(minute, window.told + 1, 0, window.shares.set(agent, window.shares.get(agent, 0) + 1))


def by_agents_turns(groups: Iterable[Group]) -> list[Group]:
    """Return the groups whose announcement was held back, in the order in which they are announced later.

    Agents take turns. Open groups of an agent that were announced count as turns it has had; otherwise a few agents
    that had their share this minute would be first in the next one, too. Within a turn, common groups come first; of an
    agent's own groups, those never announced, then the oldest.
    """
    groups = tuple(groups)
    turns = Counter(group.key.agent for group in groups if group.told)
    ranked = []
    held_back = (group for group in groups if group.owed)
    for group in sorted(held_back, key=lambda group: (group.told > 0, not group.coarse, group.since_ns, group.key.id)):
        ranked.append((turns[group.key.agent], not group.coarse, group))
        turns[group.key.agent] += 1
    return [group for *_, group in sorted(ranked, key=lambda each: each[:2])]


def alert_of(group: Group, window: Window, resolved_by: str = "") -> Alert:
    """Return the event that announces a group, or its end, with what ended it (``resolved_by``)."""
    entry, severity, key = ALERTING[group.key.topic], severity_of(group.key), group.key
    return ALERTS[severity, entry.owner](
        alert=key.id,
        status="resolved" if resolved_by else "firing",
        severity=SEVERITY_NAMES[severity],
        source=entry.owner,
        event=key.topic,
        figures=group.figures,
        agent=key.agent,
        session=key.session,
        exchange=group.exchange,
        detail=key.detail,
        count=group.count,
        suppressed=window.held,
        since_ns=group.since_ns,
        last_ns=group.last_ns,
        first_seq=group.first_seq,
        cause_seq=group.last_seq,
        resolved_by=resolved_by,
    )
