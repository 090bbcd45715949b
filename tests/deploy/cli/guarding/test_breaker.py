"""``neuraxis breaker`` against a real broker with the breaker and the clock at work."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from actors import breaker, clock
from actors.runtime.worker import Worker
from deploy.operating.deadline import Deadline
from deploy.operating.guarding.breaker_orders import NotCarriedOut, OrderDone, give_breaker_order
from events.jetstream import JetStreamLog, KeyValueMembership, KeyValueSnapshots
from events.log import Append, Record, Stored
from schemas.envelope import Envelope, encode_headers
from schemas.event import encode_event, topic_of
from schemas.subjects import Partitions, stored_subject, topic_filter
from schemas.vocabulary.breaker import BreakerRecoveryStarted
from schemas.vocabulary.operator import BreakerRecoveryOrdered, BreakerResetOrdered
from tests.actors.breaker.builders import appraised, layer
from tests.broker import Broker
from tests.e2e.live import run

DEADLINE_S = 60.0
SESSION = "travel"
ANSWERS = ("cleared", "terminated", "tripped", "withheld")


def appraisal(name: str, falsehood: float, partitions: Partitions, agent: str) -> Record:
    event = appraised(layer(falsehood, truth=0.5))
    topic = topic_of(event)
    envelope = Envelope(
        id=name, topic=topic, source="test", time="", agent=agent, session=SESSION, exchange=f"exchange-{name}"
    )
    subject = stored_subject(topic, partitions.agent_token(agent), partitions.session_token(SESSION))
    return Record(subject, encode_headers(envelope), encode_event(event))


@asynccontextmanager
async def at_work(log: JetStreamLog) -> AsyncIterator[None]:
    """Run the breaker and the clock for the length of a block."""
    worker = Worker(
        log,
        await KeyValueSnapshots.over(log.connection),
        await KeyValueMembership.over(log.connection),
        [breaker.ACTOR, clock.ACTOR],
        name="w",
    )
    stop = asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(worker.run(stop))
        try:
            await asyncio.wait_for(worker.ready.wait(), DEADLINE_S)
            yield
        finally:
            stop.set()


async def judged(log: JetStreamLog, falsehoods: list[float], agent: str = "default") -> None:
    """Have inputs appraised, and wait until the breaker has answered the last."""
    begin = (await log.info()).last_seq
    names = [f"{agent}-{begin + number}" for number in range(len(falsehoods))]
    for name, falsehood in zip(names, falsehoods, strict=True):
        await log.append([Append([appraisal(name, falsehood, log.partitions, agent)])])
    await heard(log, ANSWERS, lambda stored: stored.headers["ce-cause"] == names[-1])


async def heard(log: JetStreamLog, events: tuple[str, ...], wanted: Callable[[Stored], bool]) -> None:
    """Wait until the log holds one of the breaker's events that is wanted."""
    tail = await log.tail([topic_filter(f"forged_id.breaker.{event}") for event in events], 0)
    try:
        async with asyncio.timeout(DEADLINE_S):
            while not any(map(wanted, await tail.next())):
                continue
    finally:
        await tail.close()


def meanwhile(broker: Broker, scenario: Callable[[JetStreamLog], Awaitable[None]]) -> None:
    async def live() -> None:
        log = await JetStreamLog.connect(broker.url)
        try:
            async with at_work(log):
                await scenario(log)
        finally:
            await log.close()

    asyncio.run(live())


async def neuraxis(folder: Path, broker: Broker, *arguments: str, status: int = 0) -> Any:
    """Run ``neuraxis breaker ... --json``; return what it printed, or its complaint where it fails."""
    given = ("breaker", *arguments, "--nats", broker.url, "--json")
    done = await asyncio.to_thread(run, folder, *given, status=status)
    return json.loads(done.stdout) if status == 0 else done.stderr


def test_show_tells_where_a_session_stands_and_how_it_came_there(broker: Broker, tmp_path: Path) -> None:
    async def scenario(log: JetStreamLog) -> None:
        await judged(log, [0.0, 0.75, 0.0])
        found = await neuraxis(tmp_path, broker, "show", SESSION)
        assert (found["state"], found["trust"], found["stance"]) == ("RECOVERY", 0.4365, "cautious")
        assert (found["attempts"], found["attempt_turns"]) == (1, 1)
        assert found["violations"] == {"role_confusion": 1, "context_saturation": 0}
        assert found["falsehoods"] == [0.0], "the window began anew with the attempt"
        assert [each["event"] for each in found["events"]] == ["cleared", "tripped", "recovery_started", "withheld"]
        assert [each["why"] for each in found["events"]] == ["", "role_confusion, text", "input", ""]
        for last in (0, 1, 3, 4, 5, 7):
            fewer = await neuraxis(tmp_path, broker, "show", SESSION, "--last", str(last))
            assert fewer["events"] == found["events"][4 - min(last, 4) :], f"of four events, the last {last}"

    meanwhile(broker, scenario)


def test_show_in_words_names_state_counts_and_the_latest_events_alone(broker: Broker, tmp_path: Path) -> None:
    async def scenario(log: JetStreamLog) -> None:
        await judged(log, [0.75, 0.75, 0.75])
        said = await asyncio.to_thread(run, tmp_path, "breaker", "show", SESSION, "--last", "1", "--nats", broker.url)
        first, *_ = lines = said.stdout.splitlines()
        assert first == "session travel of agent default: TERMINATED · trust 0.0375 · stance terminated"
        assert "violations 3 (role_confusion 3, context_saturation 0)" in lines
        assert [line.split()[2] for line in lines if "breakers_in_session" in line] == ["terminated"]
        assert "tripped" not in said.stdout

    meanwhile(broker, scenario)


def test_reset_is_carried_out_told_and_kept_in_the_log(broker: Broker, tmp_path: Path) -> None:
    async def scenario(log: JetStreamLog) -> None:
        await judged(log, [0.75, 0.75, 0.75])
        done = await neuraxis(tmp_path, broker, "reset", SESSION, "--by", "ann", "--why", "false alarm, reviewed")
        assert (done["state_before"], done["trust_before"]) == ("TERMINATED", 0.0375)
        assert done["answered_seq"] > done["ordered_seq"]
        found = await neuraxis(tmp_path, broker, "show", SESSION)
        assert (found["state"], found["trust"], sum(found["violations"].values())) == ("NORMAL", 0.5, 0)
        assert found["events"][-1]["why"] == "ann, false alarm, reviewed"

    meanwhile(broker, scenario)


def recovering(log: JetStreamLog, seen: int) -> Awaitable[OrderDone]:
    order = BreakerRecoveryOrdered(by="ann", why="spoke with them")
    return give_breaker_order(
        log, "default", SESSION, order, BreakerRecoveryStarted, deadline=Deadline(DEADLINE_S), violated_at=seen
    )


def test_an_order_to_recover_that_comes_behind_the_sessions_own_recovery_says_so(broker: Broker) -> None:
    async def scenario(log: JetStreamLog) -> None:
        await judged(log, [0.75])
        seen = (await log.info()).last_seq
        await judged(log, [0.0])
        with pytest.raises(NotCarriedOut, match="its recovery began with its next input at sequence") as refused:
            await recovering(log, seen)
        assert str(refused.value).startswith("session 'travel' left VIOLATED before the order came")

    meanwhile(broker, scenario)


def test_an_order_to_recover_is_carried_out_though_the_session_recovered_and_fell_again(broker: Broker) -> None:
    async def scenario(log: JetStreamLog) -> None:
        await judged(log, [0.75])
        seen = (await log.info()).last_seq
        await judged(log, [0.75])
        assert (await recovering(log, seen)).state_before == "VIOLATED"

    meanwhile(broker, scenario)


def test_a_violated_session_can_be_told_to_recover_and_no_other(broker: Broker, tmp_path: Path) -> None:
    async def scenario(log: JetStreamLog) -> None:
        ordering = ("recover", SESSION, "--by", "ann", "--why", "spoke with them")
        await judged(log, [0.75])
        done = await neuraxis(tmp_path, broker, *ordering)
        assert (done["state_before"], done["state"], done["trust"]) == ("VIOLATED", "RECOVERY", done["trust_before"])
        found = await neuraxis(tmp_path, broker, "show", SESSION)
        assert (found["attempts"], found["events"][-1]["why"]) == (1, "operator")
        complaint = await neuraxis(tmp_path, broker, *ordering, status=1)
        assert "is in RECOVERY: a recovery attempt begins from VIOLATED only" in complaint

    meanwhile(broker, scenario)


def test_a_session_of_another_agent_is_another_session(broker: Broker, tmp_path: Path) -> None:
    async def scenario(log: JetStreamLog) -> None:
        await judged(log, [0.75])
        await judged(log, [0.0], agent="concierge")
        found = await neuraxis(tmp_path, broker, "show", SESSION, "--agent", "concierge")
        assert (found["state"], len(found["events"])) == ("NORMAL", 1)

    meanwhile(broker, scenario)


def test_a_session_that_was_never_judged_is_neither_shown_nor_reset(broker: Broker, tmp_path: Path) -> None:
    async def scenario(log: JetStreamLog) -> None:
        for asked in (("show", "nobody"), ("reset", "nobody", "--by", "ann", "--why", "reviewed")):
            complaint = await neuraxis(tmp_path, broker, *asked, status=1)
            assert "has judged no input of session 'nobody' of agent 'default'" in complaint
        assert await log.last(topic_filter(topic_of(BreakerResetOrdered))) == 0

    meanwhile(broker, scenario)


def test_an_order_that_no_breaker_carries_out_is_reported_as_stored(broker: Broker, tmp_path: Path) -> None:
    async def scenario() -> None:
        log = await JetStreamLog.connect(broker.url)
        try:
            async with at_work(log):
                await judged(log, [0.75])
            ordering = ("reset", SESSION, "--by", "ann", "--why", "reviewed", "--timeout", "3")
            complaint = await neuraxis(tmp_path, broker, *ordering, status=3)
            assert re.search(
                r"'travel' is in the log \(sequence \d+\), but after \d+\.\d s no breaker has carried it out", complaint
            )
            async with at_work(log):
                await heard(log, ("reset",), lambda stored: stored.headers["ce-session"] == SESSION)
        finally:
            await log.close()

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("session", "by", "why", "complaint"),
    [
        (SESSION, "ann", "  ", "'--why': it is blank"),
        (SESSION, "", "reviewed", "'--by': it is blank"),
        (SESSION, "ann", "x" * 201, "forged_id.operator.breaker_reset_ordered is not valid"),
        ("", "ann", "reviewed", "the session is empty"),
        (" ", "ann", "reviewed", "the session is empty"),
    ],
)
def test_an_order_that_cannot_be_recorded_is_wrong_use_and_not_stored(
    session: str, by: str, why: str, complaint: str, broker: Broker, tmp_path: Path
) -> None:
    async def scenario() -> None:
        log = await JetStreamLog.connect(broker.url)
        try:
            said = await neuraxis(tmp_path, broker, "reset", session, "--by", by, "--why", why, status=2)
            assert complaint in said
            assert (await log.info()).messages == 0
        finally:
            await log.close()

    asyncio.run(scenario())
