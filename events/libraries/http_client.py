"""httpx, imported without its command line, which would import rich; and clients that use the environment's proxies.

httpx raises errors of many kinds for an environment that it cannot use: a SOCKS proxy without the package for it, a
port that is no number, a file of certificates that is not there. And it refuses to work at all where ``NO_PROXY`` has
an address of IPv6 in brackets, or a network of IPv6, which other programs take.
"""

import os
from collections.abc import Mapping
from ipaddress import ip_address, ip_network
from typing import Any
from urllib.request import getproxies

from events.libraries.without_rich import without_rich
from events.loggers import get_logger

with without_rich():
    import httpx as httpx

_SCHEMES = ("http", "https", "all")
"""What the names of the variables begin with: ``HTTP_PROXY``, ``HTTPS_PROXY``, ``ALL_PROXY``."""

_CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR")
_warned = set[str]()  # entries of NO_PROXY that were warned of
_logger = get_logger("neuraxis.http")


class BadEnvironment(ValueError):
    """No HTTP client can be made by the environment's proxies or certificates; the message says what to correct."""

    code = "bad_environment"


def new_client(
    *,
    trust_env: bool = True,
    limits: httpx.Limits | None = None,
    mounts: Mapping[str, httpx.AsyncBaseTransport | None] | None = None,
    **options: Any,
) -> httpx.AsyncClient:
    """Return an HTTP client that uses the proxies and certificates of the environment, if ``trust_env`` says so.

    The arguments are those of ``httpx.AsyncClient``. Raises BadEnvironment.
    """
    limits = limits or httpx.Limits(max_connections=100, max_keepalive_connections=20)  # httpx's own defaults
    if not trust_env:
        return httpx.AsyncClient(trust_env=False, limits=limits, mounts=mounts, **options)
    try:
        direct = httpx.AsyncHTTPTransport(limits=limits)
    except OSError as wrong:  # ssl.SSLError included
        named = " and ".join(name for name in _CERTIFICATES if os.environ.get(name)) or "the system's certificates"
        raise BadEnvironment(f"{named} cannot be used ({wrong.strerror or wrong}): correct that") from wrong
    routes: dict[str, httpx.AsyncBaseTransport | None] = dict.fromkeys(_direct_patterns(getproxies().get("no", "")))
    for scheme, proxy in _proxies().items():
        routes[f"{scheme}://"] = _by_proxy(scheme, proxy, limits)
    return httpx.AsyncClient(transport=direct, mounts={**routes, **(mounts or {})}, limits=limits, **options)


def _proxies() -> dict[str, str]:
    """Return the environment's proxies by the scheme of the URLs that they serve; none where ``NO_PROXY`` is ``*``."""
    found = getproxies()
    if "*" in _entries(found.get("no", "")):
        return {}
    named = {scheme: found[scheme] for scheme in _SCHEMES if found.get(scheme)}
    return {scheme: proxy if "://" in proxy else f"http://{proxy}" for scheme, proxy in named.items()}


def _by_proxy(scheme: str, proxy: str, limits: httpx.Limits) -> httpx.AsyncBaseTransport:
    # The address is left out of messages: it may hold a login.
    variable = f"{scheme.upper()}_PROXY"
    kind = proxy.partition("://")[0].lower()
    try:
        return httpx.AsyncHTTPTransport(proxy=proxy, limits=limits)
    except ImportError as missing:
        raise BadEnvironment(
            f"{variable} names a SOCKS proxy, for which a package is missing: `pip install socksio`, name an HTTP "
            "proxy, or list in NO_PROXY the hosts that are called directly"
        ) from missing
    except (ValueError, httpx.InvalidURL) as wrong:
        raise BadEnvironment(
            f"{variable} is no proxy that can be used ({kind}://...): write http://HOST:PORT, https:// or socks5://"
        ) from wrong


def _direct_patterns(no_proxy: str) -> list[str]:
    """Return httpx's patterns of the hosts in ``NO_PROXY``; warn once of each entry that is no host."""
    found = []
    for entry in _entries(no_proxy):
        if entry == "*":
            continue
        pattern = _pattern_of(entry)
        if pattern:
            found.append(pattern)
        elif entry not in _warned:
            _warned.add(entry)
            _logger.warning("no_proxy_ignored", entry=entry, reason="it is no host: networks are not known here")
    return found


def _entries(no_proxy: str) -> list[str]:
    return [entry for entry in map(str.strip, no_proxy.split(",")) if entry]


def _pattern_of(entry: str) -> str:
    """Return httpx's pattern of a host, with those below it if it is a name; empty where the entry is no host."""
    if "://" in entry:
        return entry if _is_url(entry) else ""
    host = entry.removeprefix("[").removesuffix("]")
    try:
        return f"all://[{host}]" if ip_address(host).version == 6 else f"all://{host}"
    except ValueError:
        pass
    try:
        ip_network(entry, strict=False)
        return ""  # httpx compares hosts as text
    except ValueError:
        pass
    pattern = f"all://{entry}" if entry.lower() == "localhost" else f"all://*{entry}"
    return pattern if _is_url(pattern) else ""


def _is_url(pattern: str) -> bool:
    try:
        httpx.URL(pattern)
    except httpx.InvalidURL:
        return False
    return True
