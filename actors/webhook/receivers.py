"""The addresses and tokens of receivers, from the environment or from files; they are never shown."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from actors.webhook.settings import Receiver
from events.files.bounded_files import MOST_SECRET_BYTES, read_bounded
from schemas import permissions
from schemas.catalogue import ALERTS
from schemas.entry import Severity
from schemas.intake.nearest_name import nearest_or_all
from schemas.subjects import fnv1a_32

QUEUES = permissions.ORDERED_QUEUES["webhook"]
"""Names of the ordered queues of deliveries: numbers from 1 on."""

_SEVERITY_RANK = (Severity.INFO, Severity.WARNING, Severity.CRITICAL)
_SOURCES = sorted({source for _, source in ALERTS} - {"webhook"})


_URI = re.compile(r"(?:[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=-]|%[0-9A-Fa-f]{2})+")
"""The characters of a URI (RFC 3986)."""


class BadReceiver(ValueError):
    """A receiver cannot be used as it is configured; the message names it, and never shows its address or token."""

    code = "bad_receiver"


class Address(msgspec.Struct, frozen=True):
    """A receiver's address and token (empty: none); its repr shows neither."""

    url: str
    token: str = ""

    def __repr__(self) -> str:
        return "Address([hidden])"


def addresses(receivers: Mapping[str, Receiver], environment: Mapping[str, str]) -> dict[str, Address]:
    """Return the address of each receiver; for an Alertmanager that of its alerts API.

    Raises:
        BadReceiver: there is no receiver, one has an address, token or link that cannot be used, or one would never get
            an alert.
    """
    if not receivers:
        raise BadReceiver("no receiver is configured: write a table [webhook.receivers.NAME], or run no webhook worker")
    for name, receiver in receivers.items():
        _check_filter(name, receiver)
    return {name: _address(name, receiver, environment) for name, receiver in receivers.items()}


def queue_numbers(receivers: Iterable[str]) -> dict[str, int]:
    """Return the number of each receiver's queue: one of its own, as long as there are not more receivers than queues.

    The number depends on the receiver's name, and on other names only if two would have the same number. So most
    receivers keep their queue when others are added or removed.
    """
    numbers: dict[str, int] = {}
    for name in sorted(receivers):
        first = fnv1a_32(name)
        candidates = [(first + step) % len(QUEUES) + 1 for step in range(len(QUEUES))]
        numbers[name] = next((queue for queue in candidates if queue not in numbers.values()), candidates[0])
    return numbers


def is_wanted(receiver: Receiver, severity: Severity, source: str) -> bool:
    """Whether a receiver gets alerts of a severity and source. No receiver gets those about webhook."""
    severe_enough = _SEVERITY_RANK.index(severity) >= _SEVERITY_RANK.index(receiver.least)
    return source != "webhook" and severe_enough and (not receiver.sources or source in receiver.sources)


def _check_filter(name: str, receiver: Receiver) -> None:
    for source in receiver.sources:
        if source not in _SOURCES:
            hint = nearest_or_all(source, _SOURCES)
            raise BadReceiver(f"webhook receiver {name}: no alert has the source {source!r}: {hint}")
    if not any(is_wanted(receiver, *key) for key in ALERTS):
        raise BadReceiver(
            f"webhook receiver {name}: its sources have no alert of severity {receiver.least.value} or above: lower "
            "its least"
        )
    # Slack's format puts it between "<" and "|", and an Alertmanager refuses alerts whose generatorURL is not a URI.
    if receiver.link and not (_is_web(receiver.link) and _URI.fullmatch(receiver.link)):
        raise BadReceiver(f"webhook receiver {name}: its link {receiver.link!r} is no http(s) URL: correct it")


def _address(name: str, receiver: Receiver, environment: Mapping[str, str]) -> Address:
    url = _secret(name, "url", receiver.url_env, receiver.url_file, environment)
    if not url:
        raise BadReceiver(f"webhook receiver {name} has no address: set url_env or url_file of it")
    if not _is_web(url):
        raise BadReceiver(f"webhook receiver {name}: its address is no http(s) URL: correct {_origin('url', receiver)}")
    parts = urlsplit(url)
    if receiver.style == "alertmanager" and not parts.path.endswith("/api/v2/alerts"):
        url = parts._replace(path=f"{parts.path.rstrip('/')}/api/v2/alerts").geturl()
    return Address(url, _secret(name, "token", receiver.token_env, receiver.token_file, environment))


def _is_web(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _origin(what: str, receiver: Receiver) -> str:
    return str(getattr(receiver, f"{what}_env") or getattr(receiver, f"{what}_file"))


def _secret(name: str, what: str, variable: str, file: str, environment: Mapping[str, str]) -> str:
    if variable and file:
        raise BadReceiver(f"webhook receiver {name} has both {what}_env and {what}_file: leave one of them out")
    if variable and not environment.get(variable, "").strip():
        raise BadReceiver(f"webhook receiver {name}: the environment variable {variable} is empty: set it")
    value = environment[variable].strip() if variable else ""
    if file:
        try:
            value = read_bounded(Path(file).expanduser(), MOST_SECRET_BYTES).decode().strip()
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or type(error).__name__
            raise BadReceiver(f"webhook receiver {name}: the file {file} cannot be read: {why}") from error
    if not all("!" <= char <= "~" for char in value):
        origin = variable or file
        raise BadReceiver(f"webhook receiver {name}: what is in {origin} is not one line of visible ASCII: correct it")
    return value
