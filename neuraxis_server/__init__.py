"""Starts the command line, whatever ``PYTHONPATH`` and the working folder hold.

Others use the names of the project's packages, too: a user's project may have a ``deploy/``, and other distributions
install ``events``. Python looks first in the folders of ``PYTHONPATH``, and ``python -m`` in the working folder. So
this module puts the folder of this installation first on the search path, before anything of it is imported. It does so
for this process and, by environment variables, for every process that it starts.
"""

import gc
import io
import os
import signal
import sys
from collections.abc import Iterable

_PACKAGE_FOLDERS = ("site-packages", "dist-packages")
"""Names of the folders into which distributions are installed."""

_GC_THRESHOLD = 20_000
"""Net allocations after which Python's garbage collector runs on the youngest generation; its default is 700.

With the default it walks again and again through what is being imported, for a fifth of the time of a start.
"""


def main() -> None:
    """Run the command line; ends the process."""
    gc.set_threshold(_GC_THRESHOLD, *gc.get_threshold()[1:])
    if os.getpid() == 1:
        # The kernel drops signals that the first process of a container does not handle: without this handler, SIGTERM
        # could not stop a process that is still starting.
        signal.signal(signal.SIGTERM, lambda number, _frame: os._exit(128 + number))
    write_every_character()
    home = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    sys.path[:] = ordered(sys.path, home, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    os.environ.update(for_children(sys.path, home))
    try:
        from deploy.cli import main as run

        run()
    except KeyboardInterrupt:  # during the import, or a second one while a command ends by the first
        print("\nneuraxis: interrupted", file=sys.stderr)
        sys.exit(130)


def write_every_character() -> None:
    """Have stdout write what its locale has no character for, such as our arrows in Latin-1, as ``\\u2193``.

    JSON escapes it the same way. Otherwise the command would end with an error.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def ordered(path: Iterable[str], home: str, added: Iterable[str]) -> list[str]:
    """Return a search path on which ``home`` comes before all installed packages, and ``added`` folders come last.

    Python's own modules stay in front of ``home``, which is a folder of installed packages itself, unless this is a
    checkout.
    """
    foreign = {os.path.abspath(each) for each in added} - {home}
    first, last = list[str](), list[str]()
    for each in path:
        if os.path.abspath(each) != home:
            (last if os.path.abspath(each) in foreign else first).append(each)
    index = next((n for n, each in enumerate(first) if os.path.basename(each) in _PACKAGE_FOLDERS), len(first))
    return [*first[:index], home, *first[index:], *last]


def for_children(path: list[str], home: str) -> dict[str, str]:
    """Return environment variables for child processes: these import the same, and nothing of their working folder."""
    return {"PYTHONPATH": os.pathsep.join(path[path.index(home) :]), "PYTHONSAFEPATH": "1"}
