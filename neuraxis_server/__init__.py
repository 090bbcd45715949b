"""Starts the command line, whatever ``PYTHONPATH`` and the working folder hold.

Others use the names of the project's packages, too: a user's project may have a ``deploy/``, and other distributions
install ``events``. Python looks first in the folders of ``PYTHONPATH``, and ``python -m`` in the working folder. So
this module puts the folder of this installation first on the search path, before anything of it is imported. It does so
for this process and, by environment variables, for every process that it starts.
"""

import os
import signal
import sys
from collections.abc import Iterable

_INSTALLED = ("site-packages", "dist-packages")


def main() -> None:
    """Run the command line; ends the process."""
    if os.getpid() == 1:
        # The kernel drops signals that the first process of a container has no handler for: without this one, a
        # process that still starts could only be killed.
        signal.signal(signal.SIGTERM, lambda number, _frame: os._exit(128 + number))
    home = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    sys.path[:] = ordered(sys.path, home, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    os.environ.update(for_children(sys.path, home))
    from deploy.cli import main as run

    run()


def ordered(path: Iterable[str], home: str, added: Iterable[str]) -> list[str]:
    """Return a search path on which ``home`` comes before all installed packages, and ``added`` folders come last.

    Python's own modules stay in front of ``home``, which is a folder of installed packages itself, unless this is a
    checkout.
    """
    foreign = {os.path.abspath(each) for each in added} - {home}
    kept, last = list[str](), list[str]()
    for each in path:
        if os.path.abspath(each) != home:
            (last if os.path.abspath(each) in foreign else kept).append(each)
    place = next((n for n, each in enumerate(kept) if os.path.basename(each) in _INSTALLED), len(kept))
    return [*kept[:place], home, *kept[place:], *last]


def for_children(path: list[str], home: str) -> dict[str, str]:
    """Return environment variables for child processes: these import the same, and nothing of their working folder."""
    return {"PYTHONPATH": os.pathsep.join(path[path.index(home) :]), "PYTHONSAFEPATH": "1"}
