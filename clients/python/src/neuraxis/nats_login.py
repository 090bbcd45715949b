"""A login to the broker: where it is read from, and what nats-py is given of it."""

import json
import ssl
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from neuraxis.errors import Misconfigured
from neuraxis.server import FOLDER, run_file

_UNSUPPORTED = ("nsc", "cert", "key", "token", "socks_proxy", "user_jwt", "jetstream_domain")
"""Fields of a context that are not supported, as the server's own commands do not support them."""

_TOKEN = b"BEGIN NATS USER JWT"
"""What a credentials file has before a user's token."""

_FILES = ("creds", "nkey", "ca")
"""Fields of a context that name files; a relative path begins at the context."""


@dataclass(frozen=True, kw_only=True)
class Login:
    """The address of a broker and a user's login; ``password`` is shown nowhere.

    ``url`` may name several servers, with commas between. ``creds`` is a credentials file, ``nkey`` a file with the
    seed of an nkey, and ``ca`` one of certificate authorities to trust; empty: those of the system. ``inbox_prefix`` is
    that of the inboxes that the user may subscribe to.
    """

    url: str
    user: str = ""
    password: str = field(default="", repr=False)
    creds: str = ""
    nkey: str = ""
    ca: str = ""
    inbox_prefix: str = "_INBOX"

    @classmethod
    def load(cls, file: Path | str) -> "Login":
        """Read a login from a context file of the NATS command line; raises Misconfigured."""
        path = Path(file)
        try:
            context = json.loads(path.read_bytes())
            given = {name: str(context[name]) for name in cls.__dataclass_fields__ if context.get(name)}
            files = {name: str(path.parent / Path(given[name]).expanduser()) for name in _FILES if name in given}
            unsupported = [name for name in _UNSUPPORTED if context.get(name)]
            login = cls(**{**given, **files})
        except (OSError, ValueError, AttributeError, TypeError) as wrong:
            raise Misconfigured(f"{file} is no context of the NATS command line: {wrong}", code="no_login") from wrong
        if unsupported:
            raise Misconfigured(
                f"the context {file} uses {', '.join(unsupported)}, which this client does not support: use a user and "
                "password, an nkey, or a creds file",
                code="no_login",
            )
        return login

    @classmethod
    def of_set(cls, user: str = "observer", data: Path | str = FOLDER) -> "Login":
        """Return a user's login to the broker of the set that runs in a data folder; raises Misconfigured.

        ``observer`` may listen, ``reader`` also has durable consumers of alerts, ``operator`` may read the whole log.
        """
        contexts = run_file(data).get("contexts")
        if not contexts:
            raise Misconfigured(f"the set in {data} has a broker of its own: load a login of yours", code="no_login")
        return cls.load(Path(str(contexts)) / f"{user}.json")


def options_of(login: Login) -> dict[str, Any]:
    """Return nats-py's options of a login; raises Misconfigured for a file that cannot be used.

    nats-py itself reads the files while it connects, and takes what is wrong with them for a broker that is away.
    """
    options: dict[str, Any] = {"inbox_prefix": login.inbox_prefix}
    if login.user:
        options |= {"user": login.user, "password": login.password}
    if login.creds:
        content = _content(login.creds)
        if _TOKEN not in content:  # nats-py would look for it for ever
            raise Misconfigured(f"{login.creds} holds no NATS credentials: name that file", code="no_login")
        _check_seed(login.creds, content.partition(b"USER NKEY SEED")[2].partition(b"\n")[2])
        options["user_credentials"] = login.creds
    elif login.nkey:
        _check_seed(login.nkey, _content(login.nkey))
        options["nkeys_seed"] = login.nkey
    if login.ca:
        try:
            options["tls"] = ssl.create_default_context(cafile=login.ca)
        except OSError as wrong:  # ssl.SSLError included
            what = wrong.strerror or wrong
            raise Misconfigured(f"{login.ca} is no file of certificates: {what}", code="no_login") from wrong
    return options


def _content(file: str) -> bytes:
    try:
        return Path(file).read_bytes()
    except OSError as wrong:
        raise Misconfigured(f"{file} cannot be read: {wrong.strerror}", code="no_login") from wrong


def _check_seed(file: str, content: bytes) -> None:
    """Raise Misconfigured unless some text begins with the seed of an nkey; the message never shows it."""
    try:
        import nkeys
    except ImportError as missing:
        raise Misconfigured(
            "logins with an nkey or credentials take a further package: pip install 'nats-py[nkeys]'", code="no_login"
        ) from missing
    try:
        nkeys.from_seed(bytearray(content.strip().partition(b"\n")[0].strip())).wipe()
    except (nkeys.NkeysError, ValueError) as wrong:  # ValueError: no base 32
        raise Misconfigured(f"{file} does not hold the seed of an nkey: name that file", code="no_login") from wrong
