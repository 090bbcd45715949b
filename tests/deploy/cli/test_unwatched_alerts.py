"""``neuraxis alerts`` where no living worker makes alerts: that nothing fires is not known then."""

import asyncio
from collections.abc import Mapping

import msgspec
import pytest

from actors.runtime.envelopes import to_record
from actors.runtime.membership.heartbeat import Heartbeat
from deploy.health import stage_watch
from events.errors import NotPermitted
from events.jetstream import JetStreamLog, KeyValueMembership
from events.jetstream.stream import ARCHIVED
from events.log import Append
from events.make_decision import Cause, address_events
from schemas.catalogue import CATALOGUE
from schemas.event import Event, topic_of
from schemas.input_path import WHOLE, WITNESSES
from schemas.subjects import Partitions
from tests.broker import Broker
from tests.deploy.replaying.test_log_copies import neuraxis

FIRING = msgspec.structs.replace(CATALOGUE["forged_id.alert.critical.breaker"].sample, status="firing")
PASSED = CATALOGUE["forged_id.reflex.passed"].sample
WATCHED = {"swarm": (WHOLE,), "alerts": (WHOLE,)}
CAUSE = Cause("cause", 1, 0, "ann", "s", "exchange-0", "00", "00")


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage_watch, "TAKEOVER_S", 0.5)


def stand(broker: Broker, event: Event, serves: Mapping[str, tuple[str, ...]] | None) -> None:
    """Have an event in the log, and a worker of alerts say what it serves; None: no worker has ever run."""

    async def made() -> None:
        log = await JetStreamLog.connect(broker.url)
        owner = CATALOGUE[topic_of(event)].owner
        [addressed] = address_events(owner, CAUSE, (event,), Partitions())
        await log.append([Append([to_record(addressed, "test", "", 1_750_000_000_000_000_000, 0)])])
        if serves is not None:
            membership = await KeyValueMembership.over(log.connection)
            await membership.beat("worker", msgspec.json.encode(Heartbeat(("alerts",), serves=serves)))
        await log.close()

    asyncio.run(made())


def test_without_a_worker_it_is_not_known_whether_an_alert_fires(broker: Broker) -> None:
    stand(broker, PASSED, None)
    done = neuraxis("alerts", "--open", "--nats", broker.url)
    assert (done.exit_code, done.stdout) == (1, "")
    said = " ".join(done.stderr.split())
    assert "whether an alert fires is not known: no living worker makes alerts of what happens" in said
    assert "alerts (no owner)" in said
    assert "no alert is firing" not in said
    listed = neuraxis("alerts", "--no-follow", "--nats", broker.url)
    assert listed.exit_code == 0
    assert "no living worker makes alerts" in " ".join(listed.stderr.split())


def test_without_the_actor_that_notices_a_dead_guard_it_is_not_known_either(broker: Broker) -> None:
    """With the guard and ``swarm`` dead, no alert fires although nobody is served."""
    stand(broker, PASSED, {"alerts": (WHOLE,)})
    done = neuraxis("alerts", "--open", "--nats", broker.url)
    assert (done.exit_code, done.stdout) == (1, "")
    assert "no living worker makes alerts of what happens: swarm (" in " ".join(done.stderr.split())


def test_with_a_worker_that_serves_it_nothing_fires(broker: Broker) -> None:
    stand(broker, PASSED, WATCHED)
    done = neuraxis("alerts", "--open", "--nats", broker.url)
    assert done.exit_code == 0, done.stderr
    assert "no alert is firing" in done.stderr
    assert "no living worker" not in neuraxis("alerts", "--no-follow", "--nats", broker.url).stderr


def test_what_fires_is_printed_and_that_there_may_be_more(broker: Broker) -> None:
    stand(broker, FIRING, {})
    done = neuraxis("alerts", "--open", "--nats", broker.url, "--json")
    assert done.exit_code == 1
    assert len(done.stdout.splitlines()) == 1
    said = " ".join(done.stderr.split())
    assert "1 alert is firing, and there may be more: no living worker makes alerts" in said
    assert "alerts (recovering)" in said


def test_where_it_cannot_be_told_whether_a_worker_does_nothing_is_said_to_be_well(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def unknown(*_: object) -> str:
        raise NotPermitted("this login may not read the members")

    monkeypatch.setattr(stage_watch, "absence_of", unknown)
    stand(broker, PASSED, WATCHED)
    done = neuraxis("alerts", "--open", "--nats", broker.url)
    assert (done.exit_code, done.stdout) == (1, "")
    said = " ".join(done.stderr.split())
    assert "whether an alert fires is not known" in said
    assert "cannot be told: this login may not read the members" in said
    assert "no alert is firing" not in said
    assert "cannot be told" in " ".join(neuraxis("alerts", "--no-follow", "--nats", broker.url).stderr.split())


def test_an_alert_that_cannot_be_stored_cannot_fire(broker: Broker) -> None:
    stand(broker, PASSED, None)

    async def limited() -> None:
        log = await JetStreamLog.connect(broker.url)
        config = (await log.connection.api(f"STREAM.INFO.{log.stream}"))["config"]
        await log.connection.api(f"STREAM.UPDATE.{log.stream}", config | {"max_msgs": 1})
        membership = await KeyValueMembership.over(log.connection)
        await membership.beat("worker", msgspec.json.encode(Heartbeat(WITNESSES, serves=WATCHED)))
        await log.close()

    asyncio.run(limited())
    done = neuraxis("alerts", "--open", "--nats", broker.url)
    assert done.exit_code == 1
    assert "no new alert can be stored: stream NEURAXIS is at its limit" in " ".join(done.stderr.split())


@pytest.mark.parametrize(("lapse_ms", "since"), [(86_400_000, "1h"), (86_400_000, "2"), (1, "1h")])
def test_an_alert_that_fires_may_be_among_what_was_removed_from_the_stream(
    broker: Broker, lapse_ms: int, since: str
) -> None:
    for event in (FIRING, PASSED):
        stand(broker, event, WATCHED)

    async def shortened() -> None:
        log = await JetStreamLog.connect(broker.url)
        config = (await log.connection.api(f"STREAM.INFO.{log.stream}"))["config"]
        changed = {"max_msgs": 1, "discard": "old", "metadata": config["metadata"] | {ARCHIVED: "1"}}
        await log.connection.api(f"STREAM.UPDATE.{log.stream}", config | changed)
        await log.connection.api(f"STREAM.UPDATE.{log.stream}", config | {"metadata": changed["metadata"]})
        await log.close()

    asyncio.run(shortened())
    names = ("quiet_ms", "info_quiet_ms", "lapse_ms", "session_lapse_ms")
    sets = [part for name in names for part in ("--set", f"alerts.{name}={lapse_ms}")]
    done = neuraxis("alerts", "--open", "--since", since, "--nats", broker.url, *sets)
    said = " ".join(done.stderr.split())
    may_fire = lapse_ms > 1 and since != "2"
    unseen = "whether an alert fires is not known: events up to sequence 1 were removed from stream NEURAXIS"
    assert (done.exit_code, unseen in said) == ((1, True) if may_fire else (0, False)), said
