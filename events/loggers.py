"""The loggers of this process: structlog's, without the tracebacks in colour that it makes where rich is installed.

rich is loaded by what draws, and only there: with what it brings along it took a fifth of the time in which a command
starts. And its tracebacks show the values of variables, people's words and secrets among them.
"""

from events.undrawn import undrawn

with undrawn():
    import structlog

from structlog.typing import EventDict, Processor, WrappedLogger

get_logger = structlog.get_logger
"""Return the logger of a name, such as ``neuraxis.broker``."""

__all__ = ["EventDict", "Processor", "WrappedLogger", "get_logger", "structlog"]
