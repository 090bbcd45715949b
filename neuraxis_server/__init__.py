"""Starts the command line, whatever ``PYTHONPATH`` and the working folder hold.

The project's packages have names that others have, too: a user's project has a ``deploy/``, other distributions install
``events``. Python finds what ``PYTHONPATH`` names first, and ``python -m`` what lies in the working folder. So what
belongs to this installation is put in front here, before anything of it is imported: for this process, and by its
environment for every process that it starts.
"""

import os
import sys
from collections.abc import Iterable

_INSTALLED = ("site-packages", "dist-packages")


def main() -> None:
    """Run the command line; ends the process."""
    home = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    sys.path[:] = ordered(sys.path, home, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    os.environ.update(for_children(sys.path, home))
    from deploy.cli import main as run

    run()


def ordered(path: Iterable[str], home: str, added: Iterable[str]) -> list[str]:
    """Return a search path on which ``home`` comes before all that is installed, and what was ``added`` last.

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
    """Return what has any module run by ``python -m`` find the same, and nothing in its working folder."""
    return {"PYTHONPATH": os.pathsep.join(path[path.index(home) :]), "PYTHONSAFEPATH": "1"}
