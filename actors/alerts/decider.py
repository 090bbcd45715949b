"""Alerts' state machine: groups of events that need a person's attention. Pure.

A group is announced as *firing* when it opens and again as it grows, and as *resolved* when its condition is over. Its
topic is the name of its events' type, as in the catalogue.

an event with a severity  -> alert.<severity>.<source>, firing, if its group is to be announced and the limits allow it
an event that ends a group -> alert.<severity>.<source>, resolved, if the group was announced
clock.fired, own timer    -> firing, for what was held back; resolved, for what has gone quiet; alert.scheduled
a new group, or one held back -> alert.scheduled too, if no timer is set that is early enough
alert.<severity>.<source>    what was announced
alert.scheduled              when the next timer is due
alert.configured             the settings from here on

Every announced group is resolved in the end, and every event is counted once: in the last ``count`` of its group, or in
``untold`` if the group was never announced.
"""

from collections.abc import Iterator, Sequence

import msgspec

from actors.alerts.grouping import ENDED, OTHERS, Key, key_of
from actors.alerts.groups import (
    Group,
    Window,
    alert_of,
    by_agents_turns,
    due_ns,
    has_room,
    is_news,
    next_minute_ns,
    severity_of,
    with_announcement,
    with_event,
)
from actors.alerts.settings import AlertsSettings
from schemas.actor import Emission, Message
from schemas.catalogue import ALERTING
from schemas.event import Event, topic_of
from schemas.persistent import Map
from schemas.vocabulary.alerts import LAPSED, QUIET, Alert, AlertsScheduled
from schemas.vocabulary.clock import ClockFired

_NS_PER_MS = 1_000_000
_NEXT_TIMER_MS = 1_000
"""Time to the next timer where one timer could not do all that is due."""

_SLACK_NS = 1_000_000_000
"""A timer that is later than wanted by at most this (a second) is not set again."""


class State(msgspec.Struct, frozen=True):
    """The open groups by id; in ``windows`` the latest announcements by severity; ``wake_ns``: when the clock wakes
    this actor (0: not at all).

    ``siblings`` counts the open groups of each topic, and of each agent and topic; see ``_sibling_keys``. ``untold``
    counts events of groups that ended unannounced, since the last ``alert.scheduled``, which reports the count.
    """

    settings: AlertsSettings = AlertsSettings()
    groups: Map[str, Group] = Map()
    siblings: Map[str, int] = Map()
    windows: Map[str, Window] = Map()
    wake_ns: int = 0
    untold: int = 0


def decide(state: State, message: Message) -> tuple[Emission, ...]:
    """Return the events that a message leads to; see the module's docstring."""
    if isinstance(message.event, ClockFired):
        events = _timer_events(state, message) if _wakes(message.event) else ()
    else:
        events = (*_resolved_events(state, message), *_firing_events(state, message))
    # It is about a group, not about the exchange of the group's latest event; the body names that exchange.
    return tuple(Emission(event, exchange="") for event in events)


def evolve(state: State, message: Message) -> State:
    """Fold a message into the state; never raises."""
    match message.event:
        case Alert() as alert:
            return _with_announced(state, message, alert)
        case AlertsScheduled(wake_after_ms=after_ms):
            wake_ns = message.time_ns + after_ms * _NS_PER_MS if after_ms else 0
            return msgspec.structs.replace(state, wake_ns=wake_ns, untold=0)
        case ClockFired() as fired:
            return _after_timer(state, message) if _wakes(fired) else state
    return _with_counted(_without(state, _ended_groups(state, message)), message)


# --- events that need a person's attention


def _group_key(state: State, message: Message) -> tuple[Key, bool]:
    """Return the group in which an event is counted, and whether it is the common group for lack of room."""
    key = key_of(topic_of(message.event), message)
    if key.id in state.groups:
        return key, False
    agent_is_full = state.siblings.get(Key(key.topic, key.agent).id, 0) >= state.settings.most_of_an_agent
    key_with_room = Key(key.topic, key.agent, detail=OTHERS) if agent_is_full else key
    if key_with_room.id not in state.groups and state.siblings.get(key.topic, 0) >= state.settings.most_of_a_topic:
        return Key(key.topic, detail=OTHERS), True
    return key_with_room, agent_is_full


def _sibling_keys(group: Group) -> tuple[str, ...]:
    """Return the keys of ``siblings`` that count a group.

    An agent's common group (``coarse``) is counted for its topic only; a topic's common group is not counted.
    """
    key = group.key
    if group.coarse:
        return (key.topic,) if key.agent else ()
    return key.topic, Key(key.topic, key.agent).id


def _group_with_event(state: State, message: Message) -> Group:
    key, is_common = _group_key(state, message)
    return with_event(state.groups.get(key.id), key, is_common, message)


def _firing_events(state: State, message: Message) -> Iterator[Event]:
    if topic_of(message.event) not in ALERTING:
        return
    settings, now_ns = state.settings, message.time_ns
    state = _without(state, _ended_groups(state, message))
    group = _group_with_event(state, message)
    wake_ns = due_ns(group, settings)
    if is_news(group, now_ns, settings):
        if _has_room(state, group, now_ns):
            yield alert_of(group, _window(state, group))
        else:
            wake_ns = min(wake_ns, next_minute_ns(now_ns))
    if not state.wake_ns or wake_ns + _SLACK_NS < state.wake_ns:
        others = len(state.groups) - (group.key.id in state.groups)
        yield AlertsScheduled(wake_after_ms=_after_ms(wake_ns, now_ns), open_groups=others + 1, untold=state.untold)


def _with_counted(state: State, message: Message) -> State:
    """Return the state with an event counted in its group, if it needs a person's attention."""
    if topic_of(message.event) not in ALERTING:
        return state
    group = _group_with_event(state, message)
    windows, siblings = state.windows, state.siblings
    if (
        not group.owed
        and is_news(group, message.time_ns, state.settings)
        and not _has_room(state, group, message.time_ns)
    ):
        window = _window(state, group)
        windows = windows.set(severity_of(group.key).value, msgspec.structs.replace(window, held=window.held + 1))
        group = msgspec.structs.replace(group, owed=True)
    if group.key.id not in state.groups:
        for sibling_key in _sibling_keys(group):
            siblings = siblings.set(sibling_key, siblings.get(sibling_key, 0) + 1)
    groups = state.groups.set(group.key.id, group)
    return msgspec.structs.replace(state, groups=groups, siblings=siblings, windows=windows)


def _with_announced(state: State, message: Message, alert: Alert) -> State:
    """Return the state after an announcement; nothing changes if its group is over."""
    group = state.groups.get(alert.alert)
    if group is None or alert.status == "resolved":
        return state
    group = msgspec.structs.replace(group, told=group.count, told_ns=message.time_ns, owed=False)
    window = with_announcement(_window(state, group), group.key.agent, message.time_ns)
    windows = state.windows.set(severity_of(group.key).value, window)
    return msgspec.structs.replace(state, groups=state.groups.set(alert.alert, group), windows=windows)


def _window(state: State, group: Group) -> Window:
    return state.windows.get(severity_of(group.key).value) or Window()


def _has_room(state: State, group: Group, now_ns: int) -> bool:
    return has_room(_window(state, group), group.key.agent, now_ns, state.settings)


# --- ends


def _ended_groups(state: State, message: Message) -> tuple[Group, ...]:
    """Return the open groups whose condition a message ends."""
    keys = (key_of(topic, message).id for topic in ENDED.get(topic_of(message.event), ()))
    found = (state.groups.get(key) for key in keys)
    return tuple(group for group in found if group is not None and not group.coarse)


def _resolved_events(state: State, message: Message) -> Iterator[Event]:
    by = topic_of(message.event)
    return (alert_of(group, Window(), by) for group in _ended_groups(state, message) if group.told)


def _without(state: State, groups: Sequence[Group]) -> State:
    if not groups:
        return state
    kept, siblings, untold = state.groups, state.siblings, state.untold
    for group in groups:
        kept = kept.delete(group.key.id)
        untold += 0 if group.told else group.count
        for sibling_key in _sibling_keys(group):
            count_left = siblings.get(sibling_key, 0) - 1
            siblings = siblings.set(sibling_key, count_left) if count_left > 0 else siblings.delete(sibling_key)
    return msgspec.structs.replace(state, groups=kept, siblings=siblings, untold=untold)


# --- timer


def _wakes(fired: ClockFired) -> bool:
    return fired.set_by == topic_of(AlertsScheduled)


def _quiet_groups(state: State, now_ns: int) -> list[Group]:
    """Return the groups that are over, those due first, as many as one timer ends."""
    settings = state.settings
    due = [group for group in state.groups.values() if due_ns(group, settings) <= now_ns]
    due.sort(key=lambda group: (due_ns(group, settings), group.key.id))
    return due[: settings.at_once]


def _timer_events(state: State, message: Message) -> tuple[Event, ...]:
    now_ns = message.time_ns
    quiet = _quiet_groups(state, now_ns)
    after = _without(state, quiet)
    ends = tuple(alert_of(group, Window(), _reason_of_end(group)) for group in quiet if group.told)
    news = tuple(_held_back_alerts(after, message))
    for alert in news:
        after = _with_announced(after, message, alert)
    if not after.groups and not after.untold:
        return ends
    wake_after_ms = _next_timer_ms(after, now_ns)
    return (
        *ends,
        *news,
        AlertsScheduled(wake_after_ms=wake_after_ms, open_groups=len(after.groups), untold=after.untold),
    )


def _held_back_alerts(state: State, message: Message) -> Iterator[Alert]:
    """Yield the announcements that were held back and have room now, as many as one timer makes."""
    alerts_left = state.settings.at_once
    for group in by_agents_turns(state.groups.values()):
        if alerts_left and _has_room(state, group, message.time_ns):
            alert = alert_of(group, _window(state, group))
            yield alert
            state = _with_announced(state, message, alert)
            alerts_left -= 1


def _reason_of_end(group: Group) -> str:
    """Return why a group is over: the event that ends it never came, or no event can end it, and all is quiet."""
    return LAPSED if ALERTING[group.key.topic].ended_by and not group.coarse else QUIET


def _next_timer_ms(state: State, now_ns: int) -> int:
    """Return in how many milliseconds the next timer is due; 0 if none is needed."""
    if not state.groups:
        return 0
    earliest_ns = min(due_ns(group, state.settings) for group in state.groups.values())
    held_back = [group for group in state.groups.values() if group.owed]
    if earliest_ns <= now_ns or any(_has_room(state, group, now_ns) for group in held_back):
        return _NEXT_TIMER_MS
    rest_ms = max(state.settings.rest_ms, _after_ms(earliest_ns, now_ns))
    # At the very beginning of a minute, before other announcements have used up its limit.
    return min(rest_ms, _after_ms(next_minute_ns(now_ns), now_ns)) if held_back else rest_ms


def _after_timer(state: State, message: Message) -> State:
    state = msgspec.structs.replace(_without(state, _quiet_groups(state, message.time_ns)), wake_ns=0)
    # If nothing is open, there is nothing to limit: the count of the minute starts again.
    return state if state.groups else msgspec.structs.replace(state, windows=Map())


def _after_ms(time_ns: int, now_ns: int) -> int:
    """Return the milliseconds from now until a time in nanoseconds, rounded up, at least 1."""
    return max(1, -((now_ns - time_ns) // _NS_PER_MS))
