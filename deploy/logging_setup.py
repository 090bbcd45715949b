"""Logging: JSON lines for machines, coloured lines for people; secrets and people's words are left out.

Processes log to stderr; stdout belongs to a command's data. People's words are logged at debug only, secrets never.
"""

import logging
import re
import sys
from collections.abc import MutableMapping
from typing import Any, Literal

from deploy.command_warnings import CommandWarnings
from events.loggers import EventDict, Processor, WrappedLogger, structlog

Format = Literal["auto", "json", "pretty"]

PERSONAL_KEYS = frozenset({"text", "response", "content", "prompt", "quote", "layers"})
"""Keys whose values are people's words."""

# Keys of values that are secrets, and the user and password of a URL (scheme://user:password@host).
_SECRET_KEY = re.compile(r"passw|secret|token|api_?key|authorization|creds", re.IGNORECASE)
_URL_SECRET = re.compile(r"(\b[a-z][a-z0-9+.-]*://)[^/\s@]+@", re.IGNORECASE)
_HIDDEN = "[hidden]"
_MAX_ITEMS_SHOWN = 6

_PROCESSORS: list[Processor] = []
"""The processors of every logger. The list is changed in place, so that loggers already in use follow a new set-up."""


def redact(_: WrappedLogger, method: str, event: EventDict) -> EventDict:
    """Hide secrets, and people's words above debug; a structlog processor."""
    for key, value in event.items():
        if key in PERSONAL_KEYS and method != "debug":
            event[key] = _HIDDEN
        elif not isinstance(value, str):
            continue  # counts of tokens are no secrets
        elif _SECRET_KEY.search(key):
            event[key] = _HIDDEN
        elif "@" in value:
            event[key] = _URL_SECRET.sub(rf"\1{_HIDDEN}@", value)
    return event


def name_actor(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """Put the actor in front of the event, as ``[ROUTER] ...``; a structlog processor for people's format."""
    actor = event.pop("actor", None)
    if isinstance(actor, str):
        event["event"] = f"[{actor.upper()}] {event.get('event', '')}"
    return event


def shorten_lists(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """Give the length of a long list instead of its items; a structlog processor for people's format."""
    for key, value in event.items():
        if isinstance(value, list | tuple) and len(value) > _MAX_ITEMS_SHOWN:
            event[key] = f"{len(value)} of them"
    return event


def set_up(level: str = "info", style: Format = "auto", **bound: str) -> None:
    """Send this process's logs, the standard library's included, to stderr.

    Args:
        level: Lowest level logged.
        style: ``json``, ``pretty``, or ``auto``: pretty on a terminal.
        bound: Values on every line of this process, such as ``process="deciders"``.
    """
    pretty = style == "pretty" or (style == "auto" and sys.stderr.isatty())
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=not pretty),
        redact,
    ]
    _PROCESSORS[:] = [
        structlog.stdlib.filter_by_level,
        *shared,
        structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
    ]
    structlog.configure(
        processors=_PROCESSORS,
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
    final: list[Processor] = (
        [name_actor, shorten_lists, _renderer()]
        if pretty
        else [structlog.processors.format_exc_info, structlog.processors.JSONRenderer(serializer=_to_json)]
    )
    handler = _ToStderr()
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *final],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level.upper())
    # An HTTP client at debug writes headers, and with them keys.
    for library in ("asyncio", "httpx", "httpcore"):
        logging.getLogger(library).setLevel(logging.WARNING)
    logging.getLogger("asyncio").addFilter(_is_worth_logging)
    structlog.contextvars.clear_contextvars()
    structlog.contextvars.bind_contextvars(**bound)


def set_up_for_command() -> None:
    """Send a command's warnings to stderr, a sentence each, unless this process has its logs set up already.

    Left alone, structlog prints to stdout, among what the command is asked for.
    """
    if structlog.is_configured():
        return
    set_up("warning")
    # That the broker is back is logged at info: a person is told of it, too.
    logging.getLogger("neuraxis.broker").setLevel(logging.INFO)
    processors: list[Processor] = [structlog.stdlib.ProcessorFormatter.remove_processors_meta, CommandWarnings()]
    for handler in logging.getLogger().handlers:
        handler.setFormatter(
            structlog.stdlib.ProcessorFormatter(
                foreign_pre_chain=[structlog.stdlib.add_log_level, redact], processors=processors
            )
        )


def _is_worth_logging(record: logging.LogRecord) -> bool:
    """Whether to log a line of asyncio's: the warning that it gives at the end of each TLS connection is dropped."""
    return not record.getMessage().startswith("returning true from eof_received()")


class _ToStderr(logging.Handler):
    """Writes to the current ``sys.stderr``: while a progress bar is shown, a stream that prints above the bar."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line, unless it is empty."""
        try:
            line = self.format(record)
            if line:
                sys.stderr.write(f"{line}\n")
                sys.stderr.flush()
        except Exception:
            self.handleError(record)


def _renderer() -> Processor:
    """Return what writes lines for people; its tracebacks are Python's, which show no values of variables."""
    return structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback)


def _to_json(value: MutableMapping[str, Any], **_: Any) -> str:
    # Imported here: a command that logs nothing does not load the encoder.
    import orjson

    return orjson.dumps(value, default=str, option=orjson.OPT_NON_STR_KEYS).decode()
