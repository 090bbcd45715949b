"""Choosing how to connect to a broker: by flags, the environment, a NATS CLI context, or the set in a data folder."""

import os
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote, urlsplit

import msgspec

from deploy.config.settings import BrokerSettings
from deploy.processes.broker.storage_watch import own_store
from deploy.processes.broker.users import OPERATOR, Context, context_file
from deploy.processes.running_set import DataFolder, NotReachableYet
from events.files.bounded_files import MOST_SECRET_BYTES, read_bounded
from events.jetstream.connection import Access

_UNSUPPORTED_FIELDS = ("nsc", "cert", "key", "token", "socks_proxy", "user_jwt", "jetstream_domain")


class BadContext(ValueError):
    """A context, a credentials file or a URL cannot be used; the message says why."""

    code = "bad_context"


class BrokerChoice(msgspec.Struct, frozen=True, kw_only=True):
    """What a person chose about how to reach a broker; an empty field is no choice.

    ``context`` names a NATS CLI context, its file, or a folder that ``deploy nats-conf`` writes, with such a file for
    each login: then each process uses its own.
    """

    url: str = ""
    context: str = ""
    creds: str = ""
    tls_ca: str = ""

    @property
    def named(self) -> bool:
        """Whether a broker was named."""
        return bool(self.url or self.context)

    @property
    def logins(self) -> str:
        """The folder of logins that ``context`` names; empty if it names one context."""
        return self.context if self.context and Path(self.context).expanduser().is_dir() else ""

    @property
    def folder(self) -> Path:
        """The folder of logins, absolute."""
        return Path(self.logins).expanduser().resolve()

    def as_user(self, user: str) -> "BrokerChoice":
        """Return the same choice with the context of ``user``, if this one names a folder of logins."""
        if not self.logins:
            return self
        return msgspec.structs.replace(self, context=str(context_file(self.folder, user)))

    def exists(self) -> bool:
        """Whether ``context`` names a file that exists."""
        return Path(self.context).expanduser().is_file()


_BROKER_VARIABLES = frozenset({"NEURAXIS_BROKER__URL", "NEURAXIS_BROKER__CONTEXT"})


def effective_choice(flags: BrokerChoice, settings: BrokerSettings, environment: Mapping[str, str]) -> BrokerChoice:
    """Return the choice in effect: the flags, else ``NATS_URL``, else the configuration's section ``broker``.

    Raises:
        BadContext: two variables name different brokers.
    """
    if flags.named:
        return flags
    if url := environment.get("NATS_URL", ""):
        for name, value in environment.items():
            if name.upper() in _BROKER_VARIABLES and value and value != url:
                raise BadContext(f"NATS_URL and {name} name two brokers: unset one of them")
    for source in (
        BrokerChoice(url=environment.get("NATS_URL", "")),
        BrokerChoice(url=settings.url, context=settings.context),
    ):
        if source.named:
            return msgspec.structs.replace(source, creds=flags.creds, tls_ca=flags.tls_ca)
    return flags


def access_of(choice: BrokerChoice, data: DataFolder, *, user: str = OPERATOR, name: str = "neuraxis") -> Access:
    """Return how to connect: to the broker that ``choice`` names, else to that of the set running in ``data``.

    Args:
        choice: The choice in effect; see :func:`effective_choice`.
        data: The data folder.
        user: The login to use at the embedded broker, or of a folder of logins.
        name: The name of the connection at the broker.

    Raises:
        BadContext: the named context, URL or credentials cannot be used.
        NotRunning: no broker was named and no set runs in the folder, or none whose broker is known.
    """
    if choice.url and choice.context:
        raise BadContext("a broker was named twice: use --nats or --context, not both")
    if not choice.named:
        run = data.read()
        if not run.nats_url:
            raise NotReachableYet(f"the set in {data.path} is still starting: try again, or wait for its --ready-file")
        context = str(context_file(Path(run.contexts), user)) if run.contexts else run.context
        choice = msgspec.structs.replace(choice, context=context)
    if choice.logins and not choice.as_user(user).exists():
        there = ", ".join(sorted(file.stem for file in choice.folder.glob("*.json"))) or "none"
        raise BadContext(
            f"the folder {choice.folder} holds no login {user}, only {there}: copy {user}.json and its secret there, "
            f"or write them with `neuraxis deploy nats-conf` (--login for a worker of several actors)"
        )
    choice = choice.as_user(user)
    access = _from_context(choice.context) if choice.context else Access(servers="")
    if choice.url:
        access = _with_url(access, choice.url)
    if choice.creds:
        access = msgspec.structs.replace(access, credentials=_readable(choice.creds))
    if choice.tls_ca:
        access = msgspec.structs.replace(access, tls_ca=_readable(choice.tls_ca))
    return msgspec.structs.replace(access, name=name)


def _with_url(access: Access, url: str) -> Access:
    """Set the servers. A user and password in a URL are moved out of it, since URLs are shown in logs."""
    servers, logins = [], set()
    for server in filter(None, (part.strip() for part in url.split(","))):
        shown = repr(server.rpartition("@")[2])
        try:
            parts = urlsplit(server if "://" in server else f"nats://{server}")
            port = 4222 if parts.port is None else parts.port
        except ValueError as wrong:
            raise BadContext(f"{shown} is not a broker's address ({wrong}): write nats://HOST:PORT") from wrong
        hostname = parts.hostname or ""
        is_address = parts.scheme in ("nats", "tls", "ws", "wss") and hostname and port > 0
        if not is_address or parts.path.strip("/") or parts.query or parts.fragment:
            raise BadContext(f"{shown} is not a broker's address: write nats://HOST:PORT")
        if bool(parts.username) != bool(parts.password):
            raise BadContext(
                f"the address of {shown} holds half a login, and tokens are not supported: write "
                "nats://USER:PASSWORD@HOST:PORT, or name a --creds file or a --context"
            )
        if parts.username and parts.password:
            logins.add((unquote(parts.username), unquote(parts.password)))
        host = f"[{hostname}]" if ":" in hostname else hostname
        servers.append(f"{parts.scheme}://{host}:{port}")
    if not servers:
        raise BadContext(f"{url!r} names no broker: write nats://HOST:PORT")
    if len(logins) > 1:
        raise BadContext("the addresses of the broker's servers hold different logins: write one for all of them")
    for user, password in logins:
        access = msgspec.structs.replace(access, user=user, password=password)
    return msgspec.structs.replace(access, servers=",".join(servers))


def context_of(access: Access) -> Context:
    """Return an access as a NATS CLI context, for other processes to use."""
    return Context(
        description=access.name,
        url=access.servers,
        user=access.user,
        password=access.password,
        creds=access.credentials,
        nkey=access.nkey,
        ca=access.tls_ca,
        inbox_prefix=access.inbox_prefix,
    )


def _from_context(context: str) -> Access:
    path = _context_path(context)
    try:
        raw = read_bounded(path, MOST_SECRET_BYTES)
        found = msgspec.json.decode(raw, type=Context)
        all_fields = msgspec.json.decode(raw, type=dict[str, object])
    except FileNotFoundError:
        raise BadContext(f"there is no NATS context {context!r} ({path}): `nats context ls` lists them") from None
    except (OSError, msgspec.DecodeError) as wrong:
        raise BadContext(f"the NATS context {path} cannot be read: {wrong}") from wrong
    if unsupported := [field for field in _UNSUPPORTED_FIELDS if all_fields.get(field)]:
        raise BadContext(
            f"the NATS context {path} uses {', '.join(unsupported)}, which neuraxis does not support: "
            "use a user and password, an nkey, or a creds file"
        )
    access = Access(
        servers="",
        user=found.user,
        password=found.password,
        credentials=_named_file(path, found.creds),
        nkey=_named_file(path, found.nkey),
        tls_ca=_named_file(path, found.ca),
        inbox_prefix=found.inbox_prefix or "_INBOX",
    )
    return _with_url(access, found.url or "nats://127.0.0.1:4222")


def _context_path(context: str) -> Path:
    if os.sep in context or context.endswith(".json"):
        return Path(context).expanduser()
    home = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    return home / "nats" / "context" / f"{context}.json"


def _named_file(context: Path, file: str) -> str:
    """Return the path of a file that a context names; a relative one starts at the context, so both can be moved."""
    return _readable(str(context.parent / Path(file).expanduser())) if file else ""


def _readable(file: str) -> str:
    path = Path(file).expanduser()
    if not os.access(path, os.R_OK):
        raise BadContext(f"{path} cannot be read: correct the path, or its permissions")
    return str(path.absolute())


def store_of(choice: BrokerChoice, data: DataFolder) -> Path | None:
    """Return the folder of the streams of a set's own broker, whose logins lie beside it; None for another broker."""
    return own_store(data.path, str(Path(choice.context).resolve().parent)) if choice.context else None
