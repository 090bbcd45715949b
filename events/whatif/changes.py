"""What is otherwise in the second timeline."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from events.codec import Recorded
from events.errors import Misconfigured
from schemas.actor import Actor, readable_settings
from schemas.choices import blame
from schemas.event import Configured
from schemas.known_part import known_part


class Changes(msgspec.Struct, frozen=True, kw_only=True):
    """What is otherwise in the second timeline.

    Attributes:
        settings: Actor -> the values that replace recorded ones, nested as its settings are.
        dropped: Public subjects whose recorded events do not count, and ``added`` events from outside that stand in
            front of the first recorded one instead: another pattern library, other precedents.
        latest: Whether all is decided under today's behaviours, instead of those that were recorded as in force.
    """

    settings: Mapping[str, Mapping[str, Any]] = msgspec.field(default_factory=dict)
    dropped: frozenset[str] = frozenset()
    added: Sequence[Recorded] = ()
    latest: bool = False


def laid_over(actor: Actor[Any], recorded: Configured, changed: Mapping[str, Any]) -> tuple[Configured, bool]:
    """Return recorded settings with changed ones laid over them, and whether they are others than recorded.

    Raises:
        Misconfigured: the changed ones are not valid over the recorded ones.
    """
    # Only of the recorded ones may some have gone since: an unknown one among the changed is a mistake.
    below = known_part(recorded.settings, actor.settings_type)
    event = msgspec.structs.replace(recorded, settings=_merged(below, changed))
    try:
        settings = msgspec.convert(event.settings, actor.settings_type)
    except msgspec.ValidationError as wrong:
        raise Misconfigured(
            f"the changed settings of {actor.name} are not valid: {blame(actor.settings_type, str(wrong))}"
        ) from wrong
    return event, settings != readable_settings(recorded, actor.settings_type)


def _merged(below: Any, above: Any) -> Any:
    if not (isinstance(below, Mapping) and isinstance(above, Mapping)):
        return above
    return {**below, **{key: _merged(below.get(key), value) for key, value in above.items()}}
