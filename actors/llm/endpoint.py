"""The address of a model's endpoint, and its key."""

import re
from collections.abc import Mapping
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit, urlunsplit

import msgspec

from actors.llm.wire.refusals import without_secrets
from events.files.bounded_files import MOST_SECRET_BYTES, read_bounded

API_KEY = "NEURAXIS_LLM_API_KEY"
"""Environment variable that holds an endpoint's key."""


_SECRET = re.compile(r"(?i)key|token|secret|passw|^sig$|signature|auth|^code$")
"""Names of query parameters that probably hold a secret."""


class BadEndpoint(ValueError):
    """An endpoint's address or key cannot be used; the message says why, and never shows a key."""

    code = "bad_endpoint"


class Endpoint(msgspec.Struct, frozen=True):
    """An endpoint: its base address without a closing slash, its query, and its key, which the repr does not show."""

    base_url: str
    api_key: str = ""

    def __repr__(self) -> str:
        return f"Endpoint(base_url={self.base_url!r})"

    def url_of(self, path: str) -> str:
        """Return the address of a path of the endpoint; the query, such as an API version, stays at the end."""
        base, mark, query = self.base_url.partition("?")
        return f"{base}{path}{mark}{query}"

    @property
    def key_headers(self) -> dict[str, str]:
        """The headers with the key: OpenAI's, and in addition Azure's if the address has an API version."""
        if not self.api_key:
            return {}
        is_azure = "api-version=" in self.base_url.lower()
        return {"Authorization": f"Bearer {self.api_key}", **({"api-key": self.api_key} if is_azure else {})}

    @property
    def is_loopback(self) -> bool:
        """Whether it is on this machine."""
        host = urlsplit(self.base_url).hostname or ""
        try:
            return ip_address(host).is_loopback
        except ValueError:
            return host == "localhost"

    @property
    def key_in_the_clear(self) -> bool:
        """Whether the key would leave this machine unencrypted."""
        return bool(self.api_key) and not self.is_loopback and self.base_url.startswith("http://")


def base_url(written: str, variable: str = API_KEY) -> str:
    """Return the normal form of an endpoint's address; one without a path gets ``/v1``.

    A query is kept, such as ``?api-version=2024-10-21``; the path of the chat completions is removed if present.

    Raises:
        BadEndpoint: it is not an http(s) address, or contains a secret or a fragment.
    """
    shown = repr(written.partition("?")[0])
    try:
        parts = urlsplit(written.strip())
        port = parts.port
    except ValueError as wrong:
        raise BadEndpoint(f"{shown} is not an address of an LLM endpoint ({wrong}): {_HINT}") from wrong
    if "@" in parts.netloc:
        raise BadEndpoint(f"the address of the LLM endpoint holds a login: leave it out, and put the key in {variable}")
    if (
        parts.scheme not in ("http", "https")
        or not parts.hostname
        or any(character.isspace() for character in written.strip())
    ):
        raise BadEndpoint(f"{shown} is not an address of an LLM endpoint: {_HINT}")
    if parts.fragment:
        raise BadEndpoint(f"the address of the LLM endpoint {parts.hostname} has a fragment: {_HINT}")
    for name, value in parse_qsl(parts.query, keep_blank_values=True):
        if _SECRET.search(name) or without_secrets(value) != value:
            raise BadEndpoint(
                f"the query of the LLM endpoint's address holds a secret ({name}): leave it out, put the key in "
                f"{variable}, and {_HINT}"
            )
    if port == 0:
        raise BadEndpoint(f"{shown} names port 0: {_HINT}")
    path = parts.path.rstrip("/").removesuffix("/chat/completions").rstrip("/") or "/v1"
    return urlunsplit((parts.scheme, parts.netloc, path, parts.query, ""))


_HINT = "write http://HOST:PORT/v1, such as http://127.0.0.1:11434/v1"


def api_key(environment: Mapping[str, str], file: str = "", variable: str = API_KEY) -> str:
    """Return the endpoint's key: from the environment, else from ``file`` if given, else none.

    Raises:
        BadEndpoint: the file cannot be read, or the key is not a single line of visible ASCII.
    """
    key, origin = environment.get(variable, "").strip(), variable
    if not key and file:
        origin = file
        try:
            key = read_bounded(Path(file).expanduser(), MOST_SECRET_BYTES).decode().strip()
        except (OSError, UnicodeDecodeError) as wrong:
            why = getattr(wrong, "strerror", None) or type(wrong).__name__
            raise BadEndpoint(f"the key file {file} cannot be read: {why}") from wrong
    if not all("!" <= character <= "~" for character in key):
        raise BadEndpoint(f"the key in {origin} is not one line of visible ASCII: correct it")
    return key
