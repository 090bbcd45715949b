"""The readiness checks of what a gateway depends on: its log, earlier judgements, guardrails, and further ones."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

import msgspec

from actors.gateway.http.check_results import OK, passes, without_locations
from actors.gateway.http.loops.judgements import Judgements
from actors.gateway.input_client import Client
from events.errors import LogError, NoLeader, Unavailable
from events.exhaustion import exhausted
from events.loggers import get_logger

_logger = get_logger("neuraxis.gateway")

LOG_WAIT_S = 2.0
"""Seconds within which the log must respond to a readiness check."""


CUT_OFF_S = 5.0
"""Seconds for which reads of the log may fail while the broker answers: recreating a consumer takes less."""


class Readiness(msgspec.Struct, frozen=True, kw_only=True):
    """Whether requests are served in full, and the result of each check."""

    status: str
    checks: dict[str, str]


class ReadinessChecks:
    """Checks what the gateway depends on.

    Args:
        client: Its log is checked.
        judgements: The projection of guardrails' events; the gateway is ready once they were read.
        hosted: Returns the names of the actors that living workers run.
        further_checks: Further checks by name; each returns ``ok``, ``n/a``, or what is wrong.
    """

    def __init__(
        self,
        client: Client,
        judgements: Judgements,
        *,
        hosted: Callable[[], Awaitable[frozenset[str]]],
        further_checks: Mapping[str, Callable[[], Awaitable[str]]] | None = None,
    ) -> None:
        self._client = client
        self._judgements = judgements
        self._hosted = hosted
        self._further_checks = dict(further_checks or {})
        self._checking: asyncio.Task[dict[str, str]] | None = None
        self._failing: Mapping[str, str] = {}

    async def checks(self) -> dict[str, str]:
        """Return what this gateway depends on, each with ``ok`` or what is wrong with it; checked now.

        Callers that arrive during a check share its result: many probes must not put load on the broker.
        """
        if self._checking is None or self._checking.done():
            self._checking = asyncio.create_task(self._check(), name="checks")
        return await asyncio.shield(self._checking)

    async def _check(self) -> dict[str, str]:
        log, guardrails, *further = await asyncio.gather(
            _result_of(self._log), _result_of(self._guardrails), *map(_result_of, self._further_checks.values())
        )
        unread = "" if self._judgements.caught_up.is_set() else "still being read from the log"
        if self._judgements.cut_off_s >= CUT_OFF_S:
            unread = "the log cannot be read from here any more: the gateway's own log says why"
        checks = {
            "log": log,
            "judgements": unread or OK,
            "guardrails": guardrails,
            **dict(zip(self._further_checks, further, strict=True)),
        }
        self._log_changes(checks)
        return {name: without_locations(result) for name, result in checks.items()}

    def _log_changes(self, checks: Mapping[str, str]) -> None:
        """Log each check that has started to fail or to pass since the last time, with its full message."""
        failing = {name: result for name, result in checks.items() if not passes(result)}
        for name, result in failing.items():
            if result != self._failing.get(name):
                _logger.warning("not_ready", check=name, detail=result)
        for name in self._failing.keys() - failing:
            _logger.info("ready_again", check=name)
        self._failing = failing

    async def _log(self) -> str:
        await self._client.log.info()
        return OK

    async def _guardrails(self) -> str:
        return OK if "guardrails" in await self._hosted() else "no living worker is ready to run them"


async def _result_of(check: Callable[[], Awaitable[str]]) -> str:
    try:
        async with asyncio.timeout(LOG_WAIT_S):
            return await check()
    except (LogError, OSError) as wrong:
        return _why(wrong)
    except Exception as wrong:  # a bug in a check must not hide the others either
        what = exhausted(wrong)
        _logger.debug("check_failed", error=type(wrong).__name__, exc_info=True)
        return f"cannot be checked: {f'this process has run out of {what}' if what else type(wrong).__name__}"


def _why(wrong: LogError | OSError) -> str:
    """Return why a check failed. One that cannot be made, say for lack of file descriptors, must not hide others."""
    if isinstance(wrong, NoLeader):
        return "the broker's cluster has no leader"
    if isinstance(wrong, Unavailable):
        return "the broker is away"
    if isinstance(wrong, LogError):
        return wrong.code
    if isinstance(wrong, TimeoutError):
        return f"no answer within {LOG_WAIT_S:g} s"
    return f"cannot be checked: {wrong.strerror or type(wrong).__name__}"
