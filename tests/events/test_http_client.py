"""HTTP clients by the environment: odd entries of NO_PROXY harm nothing, and what cannot be used is named."""

import asyncio
import sys
from pathlib import Path

import pytest
from structlog.testing import capture_logs

import neuraxis
from actors.llm.endpoint import Endpoint
from actors.webhook.settings import Receiver
from deploy.cli.failures import explain
from deploy.cli.outcomes import WRONG_USE
from deploy.config.loading import BadConfiguration
from deploy.config.models import listed_models
from deploy.health.findings import Verdict
from deploy.health.upstream_check import examine_upstream
from deploy.health.webhook_check import examine_receivers
from deploy.telemetry.collector import check_collector
from events.libraries.http_client import BadEnvironment, new_client
from tests.actors.llm.scripted import serving
from tests.actors.webhook.alerts import TAKES

VARIABLES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR")
HIDDEN = "hidden-word"
ELSEWHERE = "https://192.0.2.1"
BAD = [
    ("HTTPS_PROXY", f"http://me:{HIDDEN}@127.0.0.1:port", "HTTPS_PROXY is no proxy that can be used"),
    ("HTTP_PROXY", f"socks4://me:{HIDDEN}@127.0.0.1:9", r"HTTP_PROXY is no proxy that can be used \(socks4://"),
    ("ALL_PROXY", f"socks5://me:{HIDDEN}@127.0.0.1:9", "ALL_PROXY names a SOCKS proxy, for which a package is missing"),
    ("SSL_CERT_FILE", "/no/such/file.pem", "SSL_CERT_FILE cannot be used .No such file"),
    ("SSL_CERT_FILE", __file__, "SSL_CERT_FILE cannot be used"),
]


@pytest.fixture(autouse=True)
def _plain(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    monkeypatch.setitem(sys.modules, "socksio", None)


@pytest.fixture(params=BAD, ids=lambda bad: f"{bad[0]}={bad[1][:20]}")
def told(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    name, value, told = request.param
    monkeypatch.setenv(name, value)
    return str(told)


def test_an_environment_that_cannot_be_used_is_named_without_its_secrets(told: str) -> None:
    with pytest.raises(BadEnvironment, match=told) as caught:
        new_client()
    line, status = explain(caught.value)
    assert HIDDEN not in line
    assert status == WRONG_USE
    new_client(trust_env=False)


def test_the_doctor_tells_of_it_and_does_not_end(told: str) -> None:
    receivers = {"hook": Receiver(style="json", url_env="HOOK")}
    findings = asyncio.run(examine_receivers(receivers, {"HOOK": ELSEWHERE}))
    findings.append(asyncio.run(examine_upstream(f"{ELSEWHERE}/v1", {}, "")))
    assert [each.verdict for each in findings] == [Verdict.FAIL, Verdict.FAIL]
    for each in findings:
        with pytest.raises(BadEnvironment, match=told):
            raise BadEnvironment(each.detail)
        assert HIDDEN not in str(each)


def test_so_do_the_choice_of_a_model_the_check_of_traces_and_the_client(told: str) -> None:
    listed = asyncio.run(listed_models(Endpoint(f"{ELSEWHERE}/v1"), 1.0))
    with pytest.raises(BadEnvironment, match=told):
        raise BadEnvironment(str(listed))
    with pytest.raises(BadConfiguration, match=told):
        check_collector("http://127.0.0.1:4318")
    for client in (neuraxis.Client, neuraxis.AsyncClient):
        with pytest.raises(neuraxis.Misconfigured, match="proxies or certificates of the environment"):
            client(ELSEWHERE)


def test_entries_of_no_proxy_that_httpx_does_not_know_harm_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> list[str]:
        async with serving(TAKES) as proxy, serving(TAKES) as direct:
            port = direct.base_url.partition("127.0.0.1:")[2].partition("/")[0]
            monkeypatch.setenv("HTTP_PROXY", proxy.base_url.removesuffix("/v1"))
            monkeypatch.setenv("NO_PROXY", " [::1],::1,fe80::/10 ,10.0.0.0/8,, .internal.example,127.0.0.1")
            with capture_logs() as lines:
                async with new_client(timeout=10) as http:
                    for url in ("http://far.example/x", "http://10.1.2.3/x", f"http://127.0.0.1:{port}/x"):
                        assert (await http.get(url)).is_success
            assert [each.path for each in direct.asked] == ["/x"]
            assert [each.path for each in proxy.asked] == ["http://far.example/x", "http://10.1.2.3/x"]
            return [str(line["entry"]) for line in lines if line["event"] == "no_proxy_ignored"]

    assert asyncio.run(main()) == ["fe80::/10", "10.0.0.0/8"]


def test_no_proxy_may_be_a_star(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "socks5://127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", "*")
    new_client()


def test_a_file_of_certificates_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    import certifi

    monkeypatch.setenv("SSL_CERT_FILE", str(Path(certifi.where())))
    new_client()
