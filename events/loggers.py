"""The loggers of this process: structlog's, without the coloured tracebacks that it makes if rich is installed.

Importing rich takes a fifth of a command's start, so only code that draws imports it. Its tracebacks also show the
values of variables, which may be people's words or secrets.
"""

from events.libraries.without_rich import without_rich

with without_rich():
    import structlog

from structlog.typing import EventDict, Processor, WrappedLogger

get_logger = structlog.get_logger
"""Return the logger of a name, such as ``neuraxis.broker``."""

__all__ = ["EventDict", "Processor", "WrappedLogger", "get_logger", "structlog"]
