"""Alerts' state machine: groups of events that call for a person. Pure.

an event of a severity    -> alert.<severity>.<source>, firing: news of its group, if the limit has room
an event that ends one    -> the same, resolved, where the group was announced
clock.fired, own timer    -> resolved, for each group that has gone quiet, and alert.scheduled
whatever opens a group    -> alert.scheduled besides, where no timer is set that is early enough
alert.<severity>.<source>    what was announced
alert.scheduled              when the next look is due
alert.configured             the settings from here on

Every announced group is resolved in the end, and every event is counted once: in the last ``count`` of its outbreak,
or in ``untold`` where that was never announced.
"""

from collections.abc import Iterable, Iterator

import msgspec

from actors.alerts.grouping import ALERTING, ENDED, Key, key_of
from actors.alerts.groups import Group, Window, alert_of, due_ns, grown, has_room, is_news, severity_of, told
from actors.alerts.settings import AlertsSettings
from schemas.actor import Emission, Message, readable_settings
from schemas.event import Event, topic_of
from schemas.persistent import Map
from schemas.vocabulary.alerts import LAPSED, QUIET, Alert, AlertsConfigured, AlertsScheduled
from schemas.vocabulary.clock import ClockFired

_NS_PER_MS = 1_000_000
_SOON_MS = 1_000
_SLACK_NS = 1_000_000_000
"""A timer that is later than wanted by so little is early enough."""


class State(msgspec.Struct, frozen=True):
    """The groups that are open, by their ids; announcements by severity; when the clock wakes us (0: not at all).

    ``untold`` counts events of groups that ended unannounced since ``alert.scheduled`` told of them.
    """

    settings: AlertsSettings = AlertsSettings()
    groups: Map[str, Group] = Map()
    windows: Map[str, Window] = Map()
    wake_ns: int = 0
    untold: int = 0


def decide(state: State, message: Message) -> tuple[Emission, ...]:
    """Return what a message leads to; see the module."""
    if isinstance(message.event, ClockFired):
        events = _looked(state, message) if _wakes(message.event) else ()
    else:
        events = (*_resolved(state, message), *_fired(state, message))
    # About a group, and no part of the exchange that its latest event belongs to: the body names that.
    return tuple(Emission(event, exchange="") for event in events)


def evolve(state: State, message: Message) -> State:
    """Fold a message into the state; total."""
    match message.event:
        case Alert() as alert:
            return _announced(state, message, alert)
        case AlertsScheduled(wake_after_ms=after_ms):
            wake_ns = message.time_ns + after_ms * _NS_PER_MS if after_ms else 0
            return msgspec.structs.replace(state, wake_ns=wake_ns, untold=0)
        case AlertsConfigured() as configured:
            return _configured(state, configured)
        case ClockFired() as fired:
            return _after_look(state, message) if _wakes(fired) else state
    return _counted(_without(state, _ended(state, message)), message)


# --- events that call for a person


def _place(state: State, message: Message) -> tuple[Key, bool]:
    """Return the group an event is counted in, and whether it is the coarse one of its topic."""
    key = key_of(topic_of(message.event), message)
    full = len(state.groups) >= state.settings.most_groups
    return (Key(key.topic), True) if full and key.id not in state.groups else (key, False)


def _grown(state: State, message: Message) -> Group:
    key, coarse = _place(state, message)
    return grown(state.groups.get(key.id), key, coarse, message)


def _fired(state: State, message: Message) -> Iterator[Event]:
    if topic_of(message.event) not in ALERTING:
        return
    settings, now_ns = state.settings, message.time_ns
    state = _without(state, _ended(state, message))
    group = _grown(state, message)
    window = _window(state, group)
    if is_news(group, now_ns, settings) and has_room(window, now_ns, settings):
        yield alert_of(group, window)
    due = due_ns(group, settings)
    if not state.wake_ns or due + _SLACK_NS < state.wake_ns:
        others = len(state.groups) - (group.key.id in state.groups)
        yield AlertsScheduled(wake_after_ms=_after_ms(due, now_ns), open_groups=others + 1, untold=state.untold)


def _counted(state: State, message: Message) -> State:
    if topic_of(message.event) not in ALERTING:
        return state
    settings, now_ns = state.settings, message.time_ns
    group = _grown(state, message)
    window = _window(state, group)
    windows = state.windows
    if is_news(group, now_ns, settings) and not has_room(window, now_ns, settings):
        held = msgspec.structs.replace(window, held=window.held + 1)
        windows = windows.set(severity_of(group.key).value, held)
    return msgspec.structs.replace(state, groups=state.groups.set(group.key.id, group), windows=windows)


def _announced(state: State, message: Message, alert: Alert) -> State:
    group = state.groups.get(alert.alert)
    if group is None or alert.status == "resolved":
        return state
    group = msgspec.structs.replace(group, told=group.count, told_ns=message.time_ns)
    windows = state.windows.set(severity_of(group.key).value, told(_window(state, group), message.time_ns))
    return msgspec.structs.replace(state, groups=state.groups.set(alert.alert, group), windows=windows)


def _window(state: State, group: Group) -> Window:
    return state.windows.get(severity_of(group.key).value) or Window()


# --- ends


def _ended(state: State, message: Message) -> tuple[Group, ...]:
    """Return the open groups whose condition a message ends."""
    keys = (key_of(topic, message).id for topic in ENDED.get(topic_of(message.event), ()))
    found = (state.groups.get(key) for key in keys)
    return tuple(group for group in found if group is not None and not group.coarse)


def _resolved(state: State, message: Message) -> Iterator[Event]:
    by = topic_of(message.event)
    return (alert_of(group, Window(), by) for group in _ended(state, message) if group.told)


def _without(state: State, groups: Iterable[Group]) -> State:
    kept, untold = state.groups, state.untold
    for group in groups:
        kept = kept.delete(group.key.id)
        untold += 0 if group.told else group.count
    return state if kept is state.groups else msgspec.structs.replace(state, groups=kept, untold=untold)


# --- looks at the time


def _wakes(fired: ClockFired) -> bool:
    return fired.set_by == topic_of(AlertsScheduled)


def _quiet(state: State, now_ns: int) -> list[Group]:
    """Return the groups that are over, those due first, as many as one look ends."""
    settings = state.settings
    due = [group for group in state.groups.values() if due_ns(group, settings) <= now_ns]
    due.sort(key=lambda group: (due_ns(group, settings), group.key.id))
    return due[: settings.resolved_at_once]


def _looked(state: State, message: Message) -> tuple[Event, ...]:
    quiet = _quiet(state, message.time_ns)
    after = _without(state, quiet)
    ends = tuple(alert_of(group, Window(), _why(group)) for group in quiet if group.told)
    if not after.groups and not after.untold:
        return ends
    wake_after_ms = _next_look_ms(after, message.time_ns)
    return (
        *ends,
        AlertsScheduled(wake_after_ms=wake_after_ms, open_groups=len(after.groups), untold=after.untold),
    )


def _why(group: Group) -> str:
    return LAPSED if ALERTING[group.key.topic].ended_by and not group.coarse else QUIET


def _next_look_ms(state: State, now_ns: int) -> int:
    if not state.groups:
        return 0
    earliest = min(due_ns(group, state.settings) for group in state.groups.values())
    if earliest <= now_ns:
        return _SOON_MS
    return max(state.settings.rest_ms, _after_ms(earliest, now_ns))


def _after_look(state: State, message: Message) -> State:
    state = msgspec.structs.replace(_without(state, _quiet(state, message.time_ns)), wake_ns=0)
    # With nothing open there is nothing left to limit: the minute's count starts anew.
    return state if state.groups else msgspec.structs.replace(state, windows=Map())


def _after_ms(due: int, now_ns: int) -> int:
    return max(1, -((now_ns - due) // _NS_PER_MS))


def _configured(state: State, event: AlertsConfigured) -> State:
    settings = readable_settings(event, AlertsSettings)
    if settings is None:
        return state
    return msgspec.structs.replace(state, settings=settings)
