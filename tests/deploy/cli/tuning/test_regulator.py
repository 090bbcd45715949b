"""``neuraxis regulator show`` against a real broker with router, regulator and clock at work."""

import asyncio
import json
from pathlib import Path
from typing import Any

from deploy.processes.supervising.lifeline import READY
from events.jetstream import JetStreamLog
from schemas.vocabulary.regulator import Adjusted
from tests.broker import Broker
from tests.deploy.processes.live.test_live_weights import HOSTED, QUICK, SESSIONS, found, say
from tests.deploy.processes.test_worker import worker
from tests.e2e.live import run


async def neuraxis(folder: Path, broker: Broker, *arguments: str, status: int = 0) -> str:
    """Run ``neuraxis regulator show ...``; return what it printed, or its complaint where it fails."""
    done = await asyncio.to_thread(run, folder, "regulator", "show", *arguments, "--nats", broker.url, status=status)
    return str(done.stdout if status == 0 else done.stderr)


def test_an_agent_is_shown_with_its_weights_cooldowns_and_history(broker: Broker, tmp_path: Path) -> None:
    async def scenario() -> None:
        log = await JetStreamLog.connect(broker.url)
        for number in range(12):
            await say(log, f"The boiler in cellar {number} makes a noise again", SESSIONS[number % len(SESSIONS)])
        [adjusted, *_] = await found(log, Adjusted, 1)
        shown: Any = json.loads(await neuraxis(tmp_path, broker, "a", "--json"))
        weights = {each["weight"]: each for each in shown["weights"]}
        weight = weights[adjusted.parameter]
        assert (weight["offset"], weight["trial"], weight["factor"]) == (adjusted.offset, adjusted.delta, 1.0)
        assert weight["next_change"] > shown["as_of"]
        assert shown["decisions"] == 12
        events = [each["event"] for each in shown["events"]]
        assert events[0] == "regulator.scheduled"
        assert {"regulator.adjusted", "regulator.cycle_completed"} <= {*events}
        text = await neuraxis(tmp_path, broker, "a", "--last", "3")
        assert "agent a: 12 decisions in the window, a cycle is due" in text
        assert adjusted.parameter in text
        assert "no mode was ever selected for agent 'nobody'" in await neuraxis(tmp_path, broker, "nobody", status=1)
        await log.close()

    with worker(broker, tmp_path, *HOSTED, *QUICK) as (_, line):
        assert line.recv(64) == READY
        asyncio.run(scenario())
