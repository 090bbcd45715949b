"""The doctor's check of the gateway: it asks ``/readyz`` over HTTP, as an orchestrator's probe does."""

from actors.gateway.http.check_results import passes
from deploy.health.findings import Finding, Verdict
from deploy.processes.running_set import RunFile
from events.libraries.http_client import httpx

_TIMEOUT_S = 5.0


async def examine_gateway(run: RunFile | None) -> Finding:
    """Ask the gateway of the running set whether it serves."""
    if run is None or not run.http:
        return judge_gateway("", 0, {})
    try:
        async with httpx.AsyncClient(timeout=_TIMEOUT_S, trust_env=False) as client:
            answer = await client.get(f"{_reachable(run.http)}/readyz")
            checks = answer.json()["checks"]
    except (httpx.HTTPError, ValueError, KeyError, TypeError) as wrong:
        return judge_gateway(run.http, 0, {"http": type(wrong).__name__})
    return judge_gateway(run.http, answer.status_code, checks)


def judge_gateway(url: str, status: int, checks: dict[str, str]) -> Finding:
    """Judge a gateway by the answer of its ``/readyz``; status 0 means no answer, an empty URL no gateway."""
    if not url:
        return Finding("gateway", Verdict.SKIP, "no set runs in this data folder, or it has none")
    if status == 200:
        return Finding("gateway", Verdict.OK, f"serves at {url}")
    wrong = ", ".join(f"{name}: {result}" for name, result in checks.items() if not passes(result))
    return Finding("gateway", Verdict.FAIL, f"{url} does not serve: {wrong}", _remedy(checks))


_REMEDIES = {
    "http": "is its process alive? start the set again with `neuraxis up`, or the gateway with `neuraxis gateway`",
    "log": "the broker is away, or its cluster has no leader: the checks of the broker say which",
    "storing": "make room on the broker's disk, raise its limits, or start its servers anew: its check says which",
    "ledger": "make room where the ledger lies, or start its process with `neuraxis worker ledger`",
    "resources": "free what it names, or give it more: the gateway serves again by itself",
    "stages": "run `neuraxis up`, or `neuraxis worker all`; the check of the stages names who is missing",
    "guardrails": "run `neuraxis up`, or `neuraxis worker guardrails`",
    "judgements": "wait: it reads the log from its beginning, and then serves; its own log says why it cannot",
}
"""Failed check -> what to do. A check whose failure makes others fail stands before them: only the first is named."""


def _remedy(checks: dict[str, str]) -> str:
    wrong = [name for name, result in checks.items() if not passes(result)]
    first = next((name for name in _REMEDIES if name in wrong), "")
    return _REMEDIES.get(first, "read what its process printed, and start it again")


def _reachable(url: str) -> str:
    """Return a URL that can be called: a gateway that listens on all addresses is reached by loopback."""
    return url.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")
