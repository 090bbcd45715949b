"""Where receivers are is told by the environment or files, and shown to nobody."""

from pathlib import Path

import pytest

from actors.webhook.receivers import Address, BadReceiver, addresses
from actors.webhook.settings import Receiver
from schemas.entry import Severity
from tests.actors.webhook.alerts import SECRET
from tests.each import each

HOOK = f"https://hooks.example/services/{SECRET}"


def test_an_address_comes_from_a_variable_and_a_token_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("s3cret\n")
    receiver = Receiver(style="slack", url_env="HOOK", token_file=str(file))
    assert addresses({"ops": receiver}, {"HOOK": f" {HOOK}\n"}) == {"ops": Address(HOOK, "s3cret")}


def test_an_address_is_not_shown() -> None:
    assert SECRET not in repr(addresses({"ops": Receiver(style="slack", url_env="HOOK")}, {"HOOK": HOOK}))


@each("base", ["http://am:9093", "http://am:9093/", "http://am:9093/api/v2/alerts"])
def test_an_alertmanager_may_be_named_by_its_base(base: str) -> None:
    [address] = addresses({"am": Receiver(style="alertmanager", url_env="AM")}, {"AM": base}).values()
    assert address.url == "http://am:9093/api/v2/alerts"


@each(
    ("receiver", "complaint"),
    [
        (Receiver(style="slack"), "receiver ops has no address: set url_env or url_file"),
        (Receiver(style="slack", url_env="UNSET"), "the environment variable UNSET is empty"),
        (Receiver(style="slack", url_env="HOOK", url_file="f"), "has both url_env and url_file"),
        (Receiver(style="slack", url_file="no such file"), "cannot be read: No such file or directory"),
        (Receiver(style="slack", url_env="WORD"), "its address is no http.s. URL: correct WORD"),
        (Receiver(style="slack", url_env="HOOK", token_env="LINES"), "not one line of visible ASCII"),
        (Receiver(style="slack", url_env="HOOK", sources=("monitor", "braker")), "'braker': did you mean 'breaker'"),
        (Receiver(style="slack", url_env="HOOK", sources=("webhook",)), "no alert has the source 'webhook': there are"),
        (Receiver(style="slack", url_env="HOOK", link="grafana.example"), "its link 'grafana.example' is no http"),
        (Receiver(style="slack", url_env="HOOK", link="javascript:alert(1)"), "is no http.s. URL"),
        (Receiver(style="slack", url_env="HOOK", link="https://grafana.example/|<!here>"), "is no http.s. URL"),
        (Receiver(style="slack", url_env="HOOK", link="https://grafana.example/d 1"), "is no http.s. URL"),
        (
            Receiver(style="slack", url_env="HOOK", sources=("llm",), least=Severity.CRITICAL),
            "no alert of severity critical or above: lower its least",
        ),
    ],
)
def test_what_cannot_be_used_is_refused_without_showing_it(receiver: Receiver, complaint: str) -> None:
    environment = {"HOOK": HOOK, "WORD": "ftp://secret-word", "LINES": "one\ntwo"}
    with pytest.raises(BadReceiver, match=complaint) as refused:
        addresses({"ops": receiver}, environment)
    assert SECRET not in str(refused.value)
    assert "secret-word" not in str(refused.value)


def test_without_a_receiver_there_is_nothing_to_run() -> None:
    with pytest.raises(BadReceiver, match=r"write a table \[webhook.receivers.NAME\]"):
        addresses({}, {})


@each("link", ["", "https://grafana.example/d/1?orgId=1&from=now-6h#panel", "http://10.0.0.1:3000/a%20b"])
def test_a_link_may_be_any_web_address(link: str) -> None:
    assert addresses({"ops": Receiver(style="slack", url_env="HOOK", link=link)}, {"HOOK": HOOK})
