"""``neuraxis-probe``: whether the process that writes a health file lives, and whether it is ready.

An orchestrator runs it every few seconds, so it imports none of the rest and takes a few hundredths of a second.
Exit status: 0 yes, 1 no, 2 wrong use.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

HEARTBEAT_INTERVAL_S = 1.0
"""Seconds between two heartbeats: a process writes its health file at each."""

STUCK_AFTER_S = 15.0
"""Seconds without a heartbeat after which a process counts as stuck."""

HEALTH_FILE_VARIABLE = "NEURAXIS_RUNTIME__HEALTH_FILE"
"""Variable that names the health file: the setting runtime.health_file."""

USAGE = f"""\
usage: neuraxis-probe live|ready [FILE]

Says whether the process that writes the health file FILE (setting runtime.health_file; default: \
${HEALTH_FILE_VARIABLE}) lives:
its event loop has turned in the last {STUCK_AFTER_S:g} seconds. ready: that, and it does its work. \
Exit status: 0 yes, 1 no,
2 wrong use.
"""


class Health(NamedTuple):
    """The content of a health file.

    ``pid`` is the process that writes it, ``beat_s`` the time of its last heartbeat (``time.monotonic``), and ``fault``
    says why it is not ready, or is empty.
    """

    pid: int
    beat_s: float
    fault: str


def main() -> None:
    """Run the command; ends the process."""
    sys.exit(run(sys.argv[1:], os.environ.get(HEALTH_FILE_VARIABLE, ""), time.monotonic))


def run(arguments: Sequence[str], default: str, clock: Callable[[], float]) -> int:
    """Print ``live`` or ``ready`` on stdout, or on stderr why it is not; return the exit status."""
    what, file = (*arguments, default)[:2] if 1 <= len(arguments) <= 2 else ("", "")
    if what not in ("live", "ready") or not file:
        print(USAGE, file=sys.stdout if {"-h", "--help"}.intersection(arguments) else sys.stderr, end="")
        return 0 if {"-h", "--help"}.intersection(arguments) else 2
    reason = why_not(file, what, clock())
    print(f"not {what}: {reason}" if reason else what, file=sys.stderr if reason else sys.stdout)
    return 1 if reason else 0


def why_not(file: str, what: str, now: float) -> str:
    """Return why the process is not ``live`` or ``ready`` at the time ``now``; empty: it is."""
    try:
        with open(file, encoding="utf-8") as stream:
            health = Health(**json.load(stream))
        age = now - health.beat_s
    except FileNotFoundError:
        return f"there is no {file}: nothing has started that writes it, or it has stopped"
    except (OSError, ValueError, TypeError) as wrong:
        return f"{file} cannot be read as a health file ({type(wrong).__name__}): name the one in runtime.health_file"
    # The monotonic clock starts at 0 with the machine: a heartbeat in its future is of a process before the restart.
    if not 0 <= age <= STUCK_AFTER_S:
        return (
            f"process {health.pid} has not beaten for {age:.0f} s: it hangs, or was killed"
            if age > 0
            else (f"{file} is from before this machine started")
        )
    return str(health.fault) if what == "ready" else ""
