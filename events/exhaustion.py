"""Errors that say that the process or the machine has run out of something: no bug, and gone once there is more."""

import errno

_RESOURCES = {
    errno.EMFILE: "open files: raise its limit (ulimit -n)",
    errno.ENFILE: "open files of the machine: close some, or raise fs.file-max",
    errno.ENOMEM: "memory: give it more, or raise its limit (ulimit -v)",
    errno.EAGAIN: "processes or threads: raise their limit (ulimit -u), or end some",
}
_NO_THREAD = "can't start new thread"
"""What Python says where the system gives no thread."""


def exhausted(error: BaseException) -> str:
    """Return what an error says has run out, and what to do; empty if it says something else."""
    if isinstance(error, MemoryError):
        return _RESOURCES[errno.ENOMEM]
    if isinstance(error, RuntimeError) and _NO_THREAD in str(error):
        return _RESOURCES[errno.EAGAIN]
    if isinstance(error, BlockingIOError) and hasattr(error, "characters_written"):
        return ""  # a pipe that takes no more for now
    if isinstance(error, OSError) and error.errno is not None:
        return _RESOURCES.get(error.errno, "")
    return ""
