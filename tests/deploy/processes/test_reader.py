"""The login ``reader`` as it is documented: each right that is promised, and each that is denied, on a real server."""

import asyncio
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from deploy.processes.broker import DECIDERS
from deploy.processes.broker.users import broker_users
from deploy.processes.supervising.supervisor import Supervisor
from events.jetstream import JetStreamLog
from events.log import Append, Record
from schemas.catalogue import CATALOGUE
from schemas.event import encode_event
from schemas.export.headers import sample_headers
from tests.deploy.processes.broker.test_broker import as_user, embedded, run
from tests.deploy.waiting import until
from tests.deploy.wire import Denied, Wire

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "alerts.md").read_text().partition("## Missing nothing")[2]
REQUESTS: dict[str, Any] = {
    subject: json.loads(body) if body else None
    for subject, body in re.findall(r"^(\$JS\.API\.\S+)(?: +(\{.*\}))?$", PAGE, re.MULTILINE)
}
CREATE, NEXT, INFO, DELETE = REQUESTS
ALERT, BLOCKED = "forged_id.alert.critical.breaker", "forged_id.reflex.blocked"
STORED = {ALERT: "log.00.03.alert.critical.breaker", BLOCKED: "log.00.03.reflex.blocked"}


def read(tmp_path: Path, act: Callable[[Wire], None], **settings: object) -> None:
    """Run ``act`` with the reader's login on a broker that holds an alert and another event."""
    broker = embedded(tmp_path / ".neuraxis" / "broker", **settings)

    async def body(_: Supervisor) -> None:
        log = await JetStreamLog.connect(as_user(broker, DECIDERS), create=False)
        for topic, subject in STORED.items():
            entry = CATALOGUE[topic]
            headers = sample_headers(entry) | {"Nats-Msg-Id": topic}
            await log.append([Append([Record(subject, headers, encode_event(entry.sample))])])
        await log.close()
        await asyncio.to_thread(_acting, broker.layout.contexts / "reader.json", act)

    run(broker, body)


def _acting(login: Path, act: Callable[[Wire], None]) -> None:
    with Wire(login) as wire:
        act(wire)


def test_a_foreign_client_makes_reads_acknowledges_and_deletes_its_consumer_of_alerts(tmp_path: Path) -> None:
    def act(wire: Wire) -> None:
        made = wire.api(CREATE, REQUESTS[CREATE])
        assert (made["name"], made["num_pending"]) == ("alerts", 1), made
        alert = wire.request(NEXT, REQUESTS[NEXT])
        assert (alert.subject, json.loads(alert.body)["topic"]) == (STORED[ALERT], ALERT)
        assert wire.api(INFO)["num_ack_pending"] == 1
        wire.publish(alert.reply, b"+ACK")
        until(lambda: wire.api(INFO)["ack_floor"]["stream_seq"] > 0, "the acknowledgement is noted")
        assert (wire.api(INFO)["num_pending"], wire.api(INFO)["num_ack_pending"]) == (0, 0)
        assert wire.api(DELETE)["success"] is True

    read(tmp_path, act)


def test_it_hears_public_events_as_they_come(tmp_path: Path) -> None:
    def act(wire: Wire) -> None:
        wire.subscribe("forged_id.>")

    read(tmp_path, act)


def test_its_consumers_have_the_names_that_the_configuration_gives_them(tmp_path: Path) -> None:
    other = {**REQUESTS[CREATE], "config": {**REQUESTS[CREATE]["config"], "name": "pager", "durable_name": "pager"}}

    def act(wire: Wire) -> None:
        assert wire.api(CREATE.replace(".alerts.", ".pager."), other)["name"] == "pager"
        with pytest.raises(Denied):
            wire.request(CREATE, REQUESTS[CREATE])

    read(tmp_path, act, alert_consumers=["pager"])


@pytest.mark.parametrize(
    "changes",
    [
        {"filter_subject": "log.>"},
        {"filter_subject": ""},
        {"filter_subject": "log.*.*.input.received"},
        {"filter_subject": "", "filter_subjects": ["log.>"]},
        {"filter_subjects": ["log.*.*.alert.>", "log.*.*.input.>"]},
        {"name": "pager", "durable_name": "pager"},
        {"deliver_subject": "log.00.00.reflex.blocked"},
    ],
    ids=str,
)
def test_a_consumer_gets_what_its_subject_says_and_no_more(tmp_path: Path, changes: dict[str, Any]) -> None:
    def act(wire: Wire) -> None:
        body = {"stream_name": "NEURAXIS", "config": {**REQUESTS[CREATE]["config"], **changes}}
        assert "error" in wire.api(CREATE, body)
        assert "error" in wire.api(INFO)

    read(tmp_path, act)


def test_a_consumer_that_pushes_brings_recorded_alerts_under_their_stored_subject(tmp_path: Path) -> None:
    """The server lets a consumer's body name where it delivers to: it can forge no event by that."""

    def act(wire: Wire) -> None:
        wire.subscribe(ALERT)
        pushing = {**REQUESTS[CREATE]["config"], "ack_policy": "none", "deliver_subject": ALERT}
        heard = wire.request(CREATE, {"stream_name": "NEURAXIS", "config": pushing})
        if not heard.subject.startswith("log."):  # the server's answer, unless the alert came before it
            heard = wire.hear("the alert")
        assert (heard.subject, json.loads(heard.body)["topic"]) == (STORED[ALERT], ALERT)

    read(tmp_path, act)


DENIED = [
    *CATALOGUE,
    *STORED.values(),
    "log.00.03.input.received",
    "forged_id.query.breaker.state",
    "$SRV.PING",
    "specialist.calculator",
    "_INBOX.operator.1",
    "$JS.API.CONSUMER.CREATE.NEURAXIS",
    "$JS.API.CONSUMER.CREATE.NEURAXIS.alerts",
    "$JS.API.CONSUMER.CREATE.NEURAXIS.alerts.log.>",
    "$JS.API.CONSUMER.CREATE.NEURAXIS.alerts.log.*.*.input.received",
    "$JS.API.CONSUMER.CREATE.NEURAXIS.other.log.*.*.alert.>",
    "$JS.API.CONSUMER.CREATE.NEURAXIS.nx-llm.log.*.*.alert.>",
    "$JS.API.CONSUMER.DURABLE.CREATE.NEURAXIS.alerts",
    *(f"$JS.API.CONSUMER.{call}.NEURAXIS.other" for call in ("INFO", "MSG.NEXT", "DELETE")),
    *(f"$JS.API.CONSUMER.{call}.NEURAXIS.nx-llm" for call in ("INFO", "MSG.NEXT", "DELETE")),
    "$JS.API.CONSUMER.PAUSE.NEURAXIS.alerts",
    "$JS.API.CONSUMER.LIST.NEURAXIS",
    "$JS.API.CONSUMER.NAMES.NEURAXIS",
    "$JS.ACK.NEURAXIS.nx-llm.1.1.1.1.0",
    *(f"$JS.API.STREAM.{call}.NEURAXIS" for call in ("CREATE", "UPDATE", "DELETE", "PURGE", "MSG.GET", "MSG.DELETE")),
    "$JS.API.DIRECT.GET.NEURAXIS",
    "$JS.API.DIRECT.GET.NEURAXIS.log.00.03.input.received",
    "$JS.API.STREAM.LIST",
    "$JS.API.STREAM.NAMES",
    *(f"$JS.API.STREAM.{call}.KV_NEURAXIS_{bucket}" for call in ("INFO", "MSG.GET", "DELETE")
      for bucket in ("keys", "members", "snapshots")),
    "$KV.NEURAXIS_members.x",
    "$KV.NEURAXIS_snapshots.reflex.07",
    "$KV.NEURAXIS_keys.x",
    "$SYS.REQ.SERVER.PING",
]  # fmt: skip


def test_it_may_do_nothing_else(tmp_path: Path) -> None:
    def act(wire: Wire) -> None:
        for subject in DENIED:
            with pytest.raises(Denied, match="Permissions Violation for Publish"):
                wire.publish(subject, b"{}")
        for subject in (
            "log.>",
            ">",
            "_INBOX.>",
            "_INBOX.operator.>",
            "$KV.>",
            "$JS.EVENT.>",
            "$SRV.>",
            "specialist.>",
        ):
            with pytest.raises(Denied, match="Permissions Violation for Subscription"):
                wire.subscribe(subject)

    read(tmp_path, act)


def test_the_documented_program_prints_each_alert_once_across_restarts(tmp_path: Path) -> None:
    (script,) = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)

    def listened(wire: Wire, name: str, done: Callable[[str], bool]) -> str:
        heard = tmp_path / name
        with heard.open("wb") as output:
            listening = subprocess.Popen([sys.executable, "-c", script], cwd=tmp_path, stdout=output, stderr=output)
        try:
            until(lambda: done(heard.read_text()) or listening.poll() is not None, "the program has done its part")
        finally:
            listening.kill()
            listening.wait()
        return heard.read_text()

    def act(wire: Wire) -> None:
        first = listened(wire, "first", lambda _: is_done_with(info(wire)))
        assert first.startswith(f"{STORED[ALERT]} ")
        assert first.count("\n") == 1
        assert listened(wire, "second", lambda _: info(wire)["num_waiting"] > 0) == ""

    def is_done_with(told: dict[str, Any]) -> bool:
        return told.get("num_ack_pending") == 0 == told["num_pending"]

    def info(wire: Wire) -> dict[str, Any]:
        answer = wire.api(INFO)
        return {"num_pending": 1, "num_waiting": 0, **answer}

    read(tmp_path, act)


def test_every_login_that_the_documentation_names_is_written() -> None:
    pages = "".join(page.read_text() for page in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")))
    named = {*re.findall(r"contexts/(\w+)\.json", pages), *re.findall(r"(?:, as|login|user) `(\w+)`", pages)}
    assert {"observer", "reader", "specialist", "gateway"} <= named
    assert named <= {user.name for user in broker_users("NEURAXIS")}
