"""Environment variables that look like ours, and that nothing reads: whoever set one may believe that it has an effect.

They are warned of, not refused: Kubernetes sets variables for each service, and a project may have some of its own.
"""

import re
from collections.abc import Mapping

from deploy.config.loading import CLIENT_KEY_VARIABLE, ENVIRONMENT_PREFIX, VARIABLES
from events.loggers import get_logger

READ_ELSEWHERE = frozenset(
    {CLIENT_KEY_VARIABLE, "NEURAXIS_URL", "NEURAXIS_COMMAND", "NEURAXIS_DEBUG"}
    | {"NEURAXIS_BENCH_BRIEF", "NEURAXIS_BENCH_RECORDS", "NEURAXIS_PROBES"}
)
"""Variables that clients, the pytest plugin and benchmarks read; ``NEURAXIS_DEBUG`` shows where a bug is."""

_SERVICE_NAME = re.compile(
    r"\w+_(?:SERVICE_HOST|SERVICE_PORT(?:_\w+)?|PORT_\d+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?)"
)
_SERVICE_ADDRESS = re.compile(r"(?:tcp|udp|sctp)://\S+")
"""Variables that Kubernetes sets for a service: their names, and the value of the one that ends with ``_PORT``."""

_logger = get_logger("neuraxis.config")


def ignored_variables(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names of the variables that nothing reads, sorted.

    Those of settings (``NEURAXIS_SECTION__KEY``) are not among them: a wrong one of these is refused. Names are
    compared in capitals: one in small letters is not read either.
    """
    return tuple(
        name
        for name, value in sorted(environment.items())
        if name.upper().startswith(ENVIRONMENT_PREFIX) and not _is_read(name) and not _is_of_a_service(name, value)
    )


def log_ignored_variables(environment: Mapping[str, str]) -> None:
    """Log the variables that nothing reads, if there are any."""
    if names := ignored_variables(environment):
        _logger.warning("variables_ignored", names=names, remedy=REMEDY)


REMEDY = "unset them, or write them as NEURAXIS_SECTION__KEY: `neuraxis config show` lists sections and keys"


def _is_read(name: str) -> bool:
    is_setting = name.startswith(ENVIRONMENT_PREFIX) and "__" in name
    return is_setting or name in VARIABLES or name in READ_ELSEWHERE


def _is_of_a_service(name: str, value: str) -> bool:
    if _SERVICE_NAME.fullmatch(name):
        return True
    return name.endswith("_PORT") and _SERVICE_ADDRESS.fullmatch(value) is not None
