"""What the doctor concludes of the receivers of alerts, and that it sends none and shows no address."""

import asyncio
import contextlib
import socket
from collections.abc import Mapping

import pytest

from actors.webhook.settings import Receiver
from deploy.health.findings import Finding, Verdict
from deploy.health.webhook_check import examine_receivers
from tests.actors.llm.scripted import HANGS, fails, serving
from tests.actors.webhook.alerts import SECRET, TAKES, dripping, url_of
from tests.each import each


def examined(environment: Mapping[str, str], patience_s: float = 5.0) -> dict[str, Finding]:
    return asyncio.run(looked_at(environment, patience_s))


async def looked_at(environment: Mapping[str, str], patience_s: float = 5.0) -> dict[str, Finding]:
    """Look at a receiver for each variable."""
    receivers = {name: Receiver(style="slack", url_env=name) for name in environment}
    findings = await examine_receivers(receivers, environment, patience_s)
    assert SECRET not in str(findings)
    return {finding.check.removeprefix("receiver "): finding for finding in findings}


def test_a_receiver_that_answers_is_well_whatever_it_answers_and_gets_no_alert() -> None:
    async def main() -> None:
        async with serving(TAKES) as takes, serving(fails(404)) as refuses:
            login = url_of(takes).replace("//", "//user:password@")
            found = await looked_at({"TAKES": login, "REFUSES": url_of(refuses)})
            asked = [*takes.asked, *refuses.asked]
        assert {name: finding.verdict for name, finding in found.items()} == {
            "TAKES": Verdict.OK,
            "REFUSES": Verdict.OK,
        }
        assert [(each.method, each.path, each.body) for each in asked] == [("HEAD", "/", b"")] * 2
        assert not any("authorization" in each.headers for each in asked)

    asyncio.run(main())


@each(
    ("status", "verdict", "told"),
    [(502, Verdict.WARN, "is away"), (503, Verdict.WARN, "is away"), (504, Verdict.WARN, "is away"),
     (407, Verdict.FAIL, "the proxy wants a login"), (500, Verdict.OK, "answers"), (401, Verdict.OK, "answers")],
)  # fmt: skip
def test_an_answer_of_what_stands_before_a_receiver_is_none_of_its_own(
    status: int, verdict: Verdict, told: str
) -> None:
    async def main() -> None:
        async with serving(fails(status)) as before:
            found = (await looked_at({"HOOK": url_of(before)}))["HOOK"]
        assert found.verdict is verdict
        assert told in found.detail

    asyncio.run(main())


@each(
    ("location", "verdict"),
    [("https://127.0.0.1/", Verdict.FAIL), ("https://login.example/", Verdict.OK), ("/start", Verdict.OK),
     ("http://[", Verdict.OK)],
)  # fmt: skip
def test_one_that_leads_to_https_would_lead_alerts_there_too(location: str, verdict: Verdict) -> None:
    async def main() -> None:
        async with serving(fails(308, Location=location)) as elsewhere:
            found = (await looked_at({"HOOK": url_of(elsewhere)}))["HOOK"]
        assert found.verdict is verdict
        if verdict is Verdict.FAIL:
            assert "into the address in HOOK" in found.remedy

    asyncio.run(main())


def test_one_that_nobody_listens_at_fails_with_where_its_address_is_from() -> None:
    with socket.socket() as nobody:  # bound, and nobody listens
        nobody.bind(("127.0.0.1", 0))
        found = examined({"HOOK": f"http://127.0.0.1:{nobody.getsockname()[1]}/services/{SECRET}"})
    assert (found["HOOK"].verdict, found["HOOK"].detail) == (Verdict.FAIL, "cannot be reached: ConnectError")
    assert "what is in HOOK" in found["HOOK"].remedy


def test_one_that_speaks_no_tls_fails_where_its_address_asks_for_it() -> None:
    ended = asyncio.Event()

    async def plain(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()
        ended.set()

    async def main() -> None:
        async with await asyncio.start_server(plain, "127.0.0.1", 0) as server:
            found = await looked_at({"HOOK": f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/{SECRET}"})
            async with asyncio.timeout(30):
                await ended.wait()
        assert (found["HOOK"].verdict, found["HOOK"].detail) == (Verdict.FAIL, "cannot be reached: ConnectError")

    asyncio.run(main())


def test_those_that_come_to_no_end_are_not_waited_for() -> None:
    async def main() -> None:
        async with serving(HANGS) as hangs, dripping() as drips:
            found = await looked_at({"HANGS": url_of(hangs), "DRIPS": drips}, patience_s=0.1)
        assert {finding.detail for finding in found.values()} == {"cannot be reached: no answer in time"}

    asyncio.run(main())


@pytest.mark.parametrize("url", ["", f"ftp://hooks.example/{SECRET}"])
def test_an_address_that_cannot_be_used_here_is_a_warning_that_names_its_variable(url: str) -> None:
    found = examined({"HOOK": url})["HOOK"]
    assert found.verdict is Verdict.WARN
    assert "HOOK" in found.detail


def test_without_receivers_there_is_nothing_to_look_at() -> None:
    [finding] = asyncio.run(examine_receivers({}, {}))
    assert finding.verdict is Verdict.SKIP
