"""The program of a process between a parent and its child, for systems that cannot kill a child with its parent.

It waits for the child to exit, and for a pipe to close whose other end only the parent holds. When the pipe closes, it
kills the child. It exits with the child's status.
"""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence


def command(lifeline: int, keep_fds: Sequence[int], argv: Sequence[str]) -> list[str]:
    """Return the command line of a guardian that runs ``argv`` and watches ``lifeline``, its end of the pipe."""
    fds = ",".join(map(str, keep_fds))
    return [sys.executable, "-I", os.path.abspath(__file__), str(lifeline), fds, *argv]


def guard(lifeline: int, keep_fds: Sequence[int], argv: Sequence[str]) -> int:
    """Run ``argv`` until it ends or the pipe ``lifeline`` closes; return its exit status as a shell would."""
    for number in (signal.SIGTERM, signal.SIGINT):
        # The whole process group gets these signals, so the child gets them, too, and decides. They are handled, not
        # ignored: the child would inherit SIG_IGN.
        signal.signal(number, lambda *_: None)
    child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, pass_fds=tuple(keep_fds))
    for fd in keep_fds:
        os.close(fd)

    def watch() -> None:
        os.read(lifeline, 1)
        child.kill()

    threading.Thread(target=watch, daemon=True).start()
    status = child.wait()
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    kept = [int(fd) for fd in sys.argv[2].split(",") if fd]
    sys.exit(guard(int(sys.argv[1]), kept, sys.argv[3:]))
