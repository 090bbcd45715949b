"""The changes of a what-if. Its *second timeline* is the log decided again with them."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from events.decoding import Recorded
from events.errors import Misconfigured
from schemas.actor import Actor, readable_settings
from schemas.event import Configured
from schemas.intake.error_messages import error_line
from schemas.settings.known_settings import known_part
from schemas.settings.measured_settings import ReadBy, measured_settings
from schemas.settings.nested_values import leaves, overlaid
from schemas.settings.settings_fault import settings_fault
from schemas.settings.unreachable_settings import unreachable_setting


class UnfitChanges(Misconfigured):
    """The changed settings do not fit the log: it holds nothing of their actor, or they contradict recorded ones."""


class Changes(msgspec.Struct, frozen=True, kw_only=True):
    """What is changed in the second timeline.

    Attributes:
        settings: Actor -> the values that replace recorded ones, nested as its settings are.
        dropped: Public subjects whose recorded events are left out, such as imported patterns or precedents.
        added: External events that come before the first recorded one instead, such as another pattern library.
        latest: Whether all is decided under today's behaviours, instead of the recorded ones.
    """

    settings: Mapping[str, Mapping[str, Any]] = msgspec.field(default_factory=dict)
    dropped: frozenset[str] = frozenset()
    added: Sequence[Recorded] = ()
    latest: bool = False

    def measured(self, actors: Mapping[str, Actor[Any]]) -> tuple[dict[str, ReadBy], bool]:
        """Return the changed settings that running processes measure by, and whether no decision reads any change.

        A setting's path begins with the actor's name. Who reads it is as in ``schemas.settings.measured_settings``.
        """
        found = {
            f"{name}.{path}": reading
            for name, changed in self.settings.items()
            for path, reading in measured_settings(changed, actors[name].settings_type).items()
        }
        # The settings that no decision reads.
        alone = {name for name, reading in found.items() if reading == "alone"}
        every = {f"{name}.{path}" for name, changed in self.settings.items() for path, _ in leaves(changed) if path}
        return found, bool(alone) and alone == every and not (self.dropped or self.added or self.latest)

    def undecidable(self, actor: Actor[Any], recorded: Configured) -> str:
        """Return why nothing can be decided again under recorded settings as changed; empty if it can.

        Raises:
            UnfitChanges: as :func:`changed_settings`.
        """
        changed = self.settings.get(actor.name)
        event, _ = changed_settings(actor, recorded, changed) if changed else (recorded, False)
        return actor.undecidable(event, latest=self.latest)


def changed_settings(actor: Actor[Any], recorded: Configured, changed: Mapping[str, Any]) -> tuple[Configured, bool]:
    """Return recorded settings with changes merged in, and whether the result differs from the recorded ones.

    Recorded settings that this release does not accept stay as they are, unless they are changed.

    Raises:
        UnfitChanges: the changed ones are not valid over the recorded ones.
    """
    # Recorded settings may have been removed since; among the changed ones an unknown setting is a mistake.
    below = known_part(recorded.settings, actor.settings_type)
    event = msgspec.structs.replace(recorded, settings=overlaid(below, changed))
    try:
        settings = msgspec.convert(event.settings, actor.settings_type)
    except msgspec.ValidationError as wrong:
        if settings_fault(actor.name, recorded.settings, actor.settings_type):
            _refuse_by_themselves(actor, changed)
            return event, True
        raise _unfit(actor, str(wrong)) from wrong
    before = readable_settings(recorded, actor.settings_type)
    if (fault := unreachable_setting(settings)) and not (before and unreachable_setting(before)):
        raise _unfit(actor, fault)
    return event, settings != before


def _refuse_by_themselves(actor: Actor[Any], changed: Mapping[str, Any]) -> None:
    """Raise UnfitChanges where changed settings are not valid over the default ones either."""
    try:
        msgspec.convert(overlaid(msgspec.to_builtins(actor.settings_type()), changed), actor.settings_type)
    except msgspec.ValidationError as wrong:
        raise _unfit(actor, str(wrong)) from wrong


def _unfit(actor: Actor[Any], fault: str) -> UnfitChanges:
    found = error_line(actor.settings_type, fault)
    return UnfitChanges(f"the changed settings of {actor.name} are not valid: {found}")
