"""A command's log events as sentences for the person at the terminal: one when the broker goes, one when it is back."""

from events.loggers import EventDict, WrappedLogger

_NOT_SHOWN = frozenset({"reading_silent", "broker_unreachable", "broker_closed_connection"})
"""Log events for processes that run for days. A command itself says what ended it."""

_METADATA = frozenset({"event", "level", "logger", "timestamp"})


class CommandWarnings:
    """A structlog renderer. A log event that a person need not see becomes an empty line, which is not printed."""

    def __init__(self) -> None:
        self._broker_gone = False
        self._last_line = ""

    def __call__(self, _: WrappedLogger, __: str, event: EventDict) -> str:
        """Return the line to print; empty for none, and for a repetition of the last line."""
        line = self._sentence(event)
        if line == self._last_line:
            return ""
        self._last_line = line or self._last_line
        return line and f"neuraxis: {line}"

    def _sentence(self, event: EventDict) -> str:
        name = str(event.get("event", ""))
        if name == "broker_disconnected":
            self._broker_gone = True
            return f"the broker at {event.get('servers')} is gone: waiting for it to come back"
        if name == "broker_reconnected":
            was_gone, self._broker_gone = self._broker_gone, False
            return "the broker is back" if was_gone else ""
        if name == "broker_error":
            return "" if self._broker_gone else f"the broker says: {event.get('detail')}"
        if name in _NOT_SHOWN or event.get("level") in ("debug", "info"):
            return ""
        fields = ", ".join(f"{key} {value}" for key, value in event.items() if key not in _METADATA)
        return f"{name.replace('_', ' ')}: {fields}" if fields else name.replace("_", " ")
