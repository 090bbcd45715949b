"""A command's warnings as sentences for the person at the terminal: one when the broker goes, one when it is back."""

from events.loggers import EventDict, WrappedLogger

_KEPT_BACK = frozenset({"reading_silent", "broker_unreachable"})
"""Lines of a process that runs for days. A command says by itself, at the end of its time, what it waited for."""

_ABOUT_THE_LINE = frozenset({"event", "level", "logger", "timestamp"})


class CommandWarnings:
    """A structlog renderer; what is not worth a sentence becomes an empty one, which is not printed."""

    def __init__(self) -> None:
        self._away = False
        self._said = ""

    def __call__(self, _: WrappedLogger, __: str, event: EventDict) -> str:
        """Return the line, or nothing."""
        line = self._sentence(event)
        if line == self._said:
            return ""
        self._said = line or self._said
        return line and f"neuraxis: {line}"

    def _sentence(self, event: EventDict) -> str:
        name = str(event.get("event", ""))
        if name == "broker_disconnected":
            self._away = True
            return f"the broker at {event.get('servers')} is gone: waiting for it to come back"
        if name == "broker_reconnected":
            was, self._away = self._away, False
            return "the broker is back" if was else ""
        if name == "broker_error":
            return "" if self._away else f"the broker says: {event.get('detail')}"
        if name in _KEPT_BACK or event.get("level") in ("debug", "info"):
            return ""
        rest = ", ".join(f"{key} {value}" for key, value in event.items() if key not in _ABOUT_THE_LINE)
        return f"{name.replace('_', ' ')}: {rest}" if rest else name.replace("_", " ")
