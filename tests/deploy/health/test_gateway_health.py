"""What the doctor concludes of a gateway."""

import asyncio
import socket

from deploy.health.findings import Verdict
from deploy.health.gateway_check import examine_gateway, judge_gateway
from deploy.processes.running_set import RunFile
from tests.each import each


@each(
    ("url", "status", "checks", "verdict", "detail"),
    [
        ("", 0, {}, Verdict.SKIP, "no set runs"),
        ("http://127.0.0.1:1", 200, {"log": "ok"}, Verdict.OK, "serves at http://127.0.0.1:1"),
        ("http://127.0.0.1:1", 503, {"log": "unavailable", "judgements": "ok"}, Verdict.FAIL, "log: unavailable"),
        ("http://127.0.0.1:1", 0, {"http": "ConnectError"}, Verdict.FAIL, "http: ConnectError"),
    ],
)
def test_a_gateway_is_judged_by_what_it_says(
    url: str, status: int, checks: dict[str, str], verdict: Verdict, detail: str
) -> None:
    found = judge_gateway(url, status, checks)
    assert found.verdict is verdict
    assert detail in found.detail


def test_a_gateway_that_does_not_answer_fails() -> None:
    with socket.socket() as nobody:  # bound, and nobody listens
        nobody.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{nobody.getsockname()[1]}"
        run = RunFile(pid=1, started="", version="0", nats_url="", http=url)
        assert asyncio.run(examine_gateway(run)).verdict is Verdict.FAIL


def test_a_set_without_a_gateway_has_none_to_check() -> None:
    assert asyncio.run(examine_gateway(None)).verdict is Verdict.SKIP
    assert asyncio.run(examine_gateway(RunFile(pid=1, started="", version="0", nats_url=""))).verdict is Verdict.SKIP
