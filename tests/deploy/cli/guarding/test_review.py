"""``neuraxis review show`` against a real broker with self-review and memory at work."""

import asyncio
import json
from pathlib import Path
from typing import Any

from actors import memory, self_review
from events.jetstream import JetStreamLog
from events.log import Append
from tests.actors.runtime.living import living
from tests.actors.runtime.partition.test_several_prefixes import PARTITIONS, cycle, record, written
from tests.actors.self_review.builders import WARM_UP, tick
from tests.broker import Broker
from tests.e2e.live import run

ACTORS = (self_review.ACTOR, memory.ACTOR)


async def neuraxis(folder: Path, broker: Broker, *arguments: str, status: int = 0) -> str:
    """Run ``neuraxis review show ...``; return what it printed, or its complaint where it fails."""
    done = await asyncio.to_thread(run, folder, "review", "show", *arguments, "--nats", broker.url, status=status)
    return str(done.stdout if status == 0 else done.stderr)


def test_an_agent_is_shown_with_its_gate_records_scores_and_entities(broker: Broker, tmp_path: Path):
    async def scenario() -> None:
        log = await JetStreamLog.connect(broker.url, partitions=PARTITIONS)
        async with living(broker, "a", actors=ACTORS):
            events = [*[tick(modes={"guardian": 0.1})] * WARM_UP, cycle(0)[0], tick()]
            for number, event in enumerate(events):
                await log.append([Append([record(event, number)])])
            await written(log, 7)
            shown: Any = json.loads(await neuraxis(tmp_path, broker, "felix", "--json"))
            assert (shown["agent"], shown["gate"], shown["ticks"]) == ("felix", "armed", WARM_UP + 2)
            affect = shown["signals"][0]
            assert (affect["signal"], affect["latest"], affect["record"], affect["median"]) == (
                "affect",
                0.0,
                0.25,
                0.0,
            )
            assert {each["signal"] for each in shown["signals"]} >= {"regret", "wm_churn"}
            assert len(shown["scores_since_review"]) == 1
            assert len(shown["last_scores"]) == 10
            everything: Any = json.loads(await neuraxis(tmp_path, broker, "felix", "--last", "1000", "--json"))
            scores = everything["last_scores"]
            assert len(scores) > 10
            assert shown["last_scores"] == scores[-10:]
            for last in (0, len(scores), len(scores) + 1):
                some: Any = json.loads(await neuraxis(tmp_path, broker, "felix", "--last", str(last), "--json"))
                assert some["last_scores"] == (scores if last else [])
            worth = {each["entity"]: each["pog"] for each in shown["entities"]}
            assert worth["validator"] > worth["worse"]
            assert {each["weight"] for each in shown["entities"]} == {None}, "entities of an engine outside"
            text = await neuraxis(tmp_path, broker, "felix", "--last", "1")
            assert "agent felix: armed" in text
            assert "fires above" in text
            refused = await neuraxis(tmp_path, broker, "nobody", status=1)
            assert "'nobody' has had no tick" in refused
        await log.close()

    asyncio.run(scenario())
