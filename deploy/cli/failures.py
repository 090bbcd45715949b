"""A command's failure: one line on stderr and an exit status (``outcomes``), which are made only here."""

import errno
import os
import traceback

import click

from deploy.cli.outcomes import BUG, CHECK_FAILED, NOT_REACHABLE, WRONG_USE, WrongUse
from deploy.config.loading import BadConfiguration
from deploy.processes.broker_access import BadContext
from deploy.processes.running_set import FolderTaken, FolderUnusable, NotRunning
from events.errors import LogError, Misconfigured, Unavailable, UnknownOutcome
from events.exhaustion import exhausted

_WRONG_USE = (BadConfiguration, BadContext, FolderTaken, FolderUnusable, Misconfigured)
# Wrong use, too. These errors are recognised by their codes: importing their classes takes too long for a message.
_WRONG_USE_CODES = frozenset(
    {
        "unknown_actor",
        "unknown_work",
        "program_refused",
        "bad_point",
        "invalid_input",
        "bad_endpoint",
        "bad_receiver",
        "no_such_partition",
        "bad_keys",
        "bad_group",
        "bad_configuration",
        "bad_context",
        "bad_environment",
    }
)
_WRITE_ERRORS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO})
"""Error numbers of a failed write to a disk, such as that of a command's own output (``> FILE``)."""

_PATH_ERRORS = frozenset(
    {errno.EACCES, errno.EPERM, errno.ENAMETOOLONG, errno.ELOOP, errno.ENOTDIR, errno.EISDIR, errno.EINVAL}
)
"""Error numbers that mean that the named path itself is at fault, whatever was to be done with it."""

_NOT_REACHABLE = (Unavailable, UnknownOutcome, NotRunning)


def explain(error: Exception) -> tuple[str, int]:
    """Return the line that tells a person what happened, why and what to do, and the exit status."""
    if isinstance(error, click.UsageError):
        command = error.ctx.command_path if error.ctx is not None else "neuraxis"
        return (
            f"{_with_full_stop(_without_click_terms(_on_one_line(error.format_message())))} See `{command} --help`.",
            WRONG_USE,
        )
    if isinstance(error, click.ClickException):
        return _on_one_line(error.format_message()), error.exit_code
    if isinstance(error, (*_WRONG_USE, WrongUse)) or getattr(error, "code", "") in _WRONG_USE_CODES:
        return _on_one_line(str(error)), WRONG_USE
    if isinstance(error, _NOT_REACHABLE):
        return _on_one_line(str(error)), NOT_REACHABLE
    if isinstance(error, LogError) or hasattr(error, "code"):  # every expected error has a stable code
        return _on_one_line(str(error)), CHECK_FAILED
    if isinstance(error, OSError) and error.errno in _WRITE_ERRORS:
        where = error.filename or "the output"
        return f"{where} cannot be written: {error.strerror}", WRONG_USE
    if isinstance(error, OSError) and error.errno in _PATH_ERRORS and error.filename:
        return f"{error.filename} cannot be used: {error.strerror}; name another, or mend that", WRONG_USE
    if what := exhausted(error):
        return f"this command has run out of {what}", NOT_REACHABLE
    if os.environ.get("NEURAXIS_DEBUG"):
        traceback.print_exception(error)
    return (
        f"a bug: {type(error).__name__}: {_on_one_line(str(error))}; NEURAXIS_DEBUG=1 shows where. Please report it.",
        BUG,
    )


def _with_full_stop(line: str) -> str:
    return line if line.endswith((".", "?", ".)", "?)")) else f"{line}."


def _without_click_terms(message: str) -> str:
    """Return click's message without the names of its types."""
    for term, plain in _CLICK_TERMS.items():
        message = message.replace(term, plain)
    return message


_CLICK_TERMS = {
    "is not a valid float range": "is no number",
    "is not a valid integer range": "is no whole number",
    "is not a valid float": "is no number",
    "is not a valid integer": "is no whole number",
}


def _on_one_line(message: str) -> str:
    return " ".join(message.split())
