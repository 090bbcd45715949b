"""The name of the person who gives orders. It loads nothing: options are read before a command's time can end it."""

import getpass


def current_user_name() -> str:
    """Return the name of this machine's user, which orders record."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user may have no name
        return "unknown"
