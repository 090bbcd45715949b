"""The doctor's check of the upstream: the endpoint that answers the requests which the gateway passes on."""

import re
from collections.abc import Mapping

from actors.llm.endpoint import BadEndpoint, Endpoint, api_key, base_url
from deploy.config.loading import UPSTREAM_VARIABLE
from deploy.config.models import LISTING_TIMEOUT_S, listed_models
from deploy.health.findings import Finding, Verdict

_CHECK = "upstream"
_KEY = f"set {UPSTREAM_VARIABLE}, or the file gateway.upstream.key_file, to a key that it takes"
_START = "start it, or correct gateway.upstream.url: requests that are passed on to it fail meanwhile"
_AWAY = re.compile(r"no answer within|endpoint unreachable|\(HTTP (?:\d+: error )?5\d\d\)")
"""What is said of an endpoint that nobody can use now."""

_PROXY = re.compile(r"_PROXY |SSL_CERT_|certificates cannot be used")
_WANTS_A_KEY = re.compile(r"\(HTTP (?:\d+: error )?40[13]\)")
_LOGIN_OF_PROXY = "(HTTP 407)"


async def examine_upstream(
    url: str, environment: Mapping[str, str], key_file: str, timeout_s: float = LISTING_TIMEOUT_S
) -> Finding:
    """Ask the upstream at ``url`` for its models, with this process's own key; an empty ``url`` means there is none."""
    if not url:
        return judge_upstream("", 0)
    try:
        endpoint = Endpoint(base_url(url, UPSTREAM_VARIABLE), api_key(environment, key_file, UPSTREAM_VARIABLE))
    except BadEndpoint as wrong:
        return Finding(
            _CHECK, Verdict.WARN, str(wrong), f"correct gateway.upstream, or the variable {UPSTREAM_VARIABLE}"
        )
    listed = await listed_models(endpoint, timeout_s)
    found = listed if isinstance(listed, str) else len(listed)
    return judge_upstream(endpoint.base_url, found, has_key=bool(endpoint.api_key))


def judge_upstream(url: str, listed: int | str, *, has_key: bool = False) -> Finding:
    """Judge an upstream by how many models it lists, or by the reason (a text) why it lists none.

    Without a key of ours, callers' own are passed on, so that it need not answer us.
    """
    if not url:
        return Finding(_CHECK, Verdict.SKIP, "no requests are passed on to other models")
    if isinstance(listed, int):
        return Finding(_CHECK, Verdict.OK, f"{url} answers, and lists {listed} {'model' if listed == 1 else 'models'}")
    if _AWAY.search(listed):
        return Finding(_CHECK, Verdict.FAIL, f"{url} cannot be used: {listed}", _START)
    if _PROXY.search(listed):
        return Finding(_CHECK, Verdict.FAIL, listed, "correct it where the gateway runs, and start that again")
    if _LOGIN_OF_PROXY in listed:
        remedy = "put the proxy's login into HTTPS_PROXY, or name the upstream's host in NO_PROXY"
        return Finding(_CHECK, Verdict.FAIL, f"{url} cannot be reached: the proxy wants a login (HTTP 407)", remedy)
    if _WANTS_A_KEY.search(listed):
        if has_key:
            return Finding(_CHECK, Verdict.FAIL, f"{url} does not take our key: {listed}", _KEY)
        return Finding(_CHECK, Verdict.OK, f"{url} answers, and wants a key: callers send theirs, as we have none")
    return Finding(
        _CHECK,
        Verdict.WARN,
        f"{url} answers, and does not list its models: {listed}",
        "see whether gateway.upstream.url names an endpoint as OpenAI's, with its version, such as .../v1",
    )
