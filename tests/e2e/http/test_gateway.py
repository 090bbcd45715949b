"""The gateway of a running set, over real HTTP: source G's requests as they stand, keys, limits, and a kill."""

import contextlib
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.deploy.waiting import until
from tests.e2e.live import Live, command, environment, gateway_of, run
from tests.each import each

LOOP, STATUS, OVERRIDE = (
    f"/orchestrator/{name}" for name in ("loop-complete", "guardrails-status", "override-guardrails")
)
KEY = "a-key-of-more-than-sixteen-characters"


def completion(loop: str, **fields: Any) -> dict[str, Any]:
    """Source G's request, of a loop of one's own."""
    return {
        "loop_id": loop,
        "reflection_status": "done",
        "orchestrator_persona": "SAGE",
        "override_fatigue": False,
        "override_max_reruns": False,
        "override_by": None,
        **fields,
    }


SCORES = {"alignment_score": 0.72, "drift_score": 0.28}


def run_file(live: Live) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((live.data / "run.json").read_text())
    return found


def pid_of(live: Live, name: str) -> int:
    (found,) = [process["pid"] for process in run_file(live)["processes"] if process["name"] == name]
    return int(found)


def last_in(ledger: Path) -> int:
    with contextlib.closing(sqlite3.connect(ledger)) as opened:
        (last,) = opened.execute("SELECT max(seq) FROM events").fetchone()
    return int(last or 0)


@pytest.fixture
def client(live: Live) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=run_file(live)["http"], timeout=60, trust_env=False) as opened:
        yield opened


def test_a_loop_is_judged_shown_overridden_and_explained(client: httpx.Client, live: Live) -> None:
    told = client.post(LOOP, json=completion("seed_001", **SCORES)).json()
    assert told["decision_result"] == {
        "decision": "rerun",
        "original_loop_id": "seed_001",
        "new_loop_id": "seed_001_r1",
        "rerun_reason": "alignment_threshold_not_met",
        "rerun_number": 1,
        "rerun_count": 1,
        "max_reruns": 3,
    }
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", told["timestamp"])
    shown = client.get(f"{STATUS}/seed_001").json()["guardrails_status"]
    assert (shown["rerun_trigger"], shown["reflection_persona"]) == (["alignment", "drift"], "SAGE")

    override = {
        "override_fatigue": True,
        "override_max_reruns": False,
        "override_by": "operator",
        "override_reason": "Manual override to continue exploration",
    }
    done = client.post(f"{OVERRIDE}/seed_001", json=override)
    assert done.json()["overridden_by"] == "operator"

    (found,) = live.rows("guardrails", "show", "seed_001", "--json")
    assert (found["decision"], found["new_loop_id"]) == ("rerun_ordered", "seed_001_r1")
    (recorded,) = found["overrides"]
    assert (recorded["by"], recorded["why"]) == ("operator", "Manual override to continue exploration")
    assert (recorded["fatigue"], recorded["max_reruns"]) == (True, False)
    until(lambda: last_in(live.ledger) >= recorded["seq"], "the ledger has it")
    assert live.rows("guardrails", "show", "seed_001", "--log", str(live.ledger), "--json") == [found]


def test_an_override_from_the_command_line_lets_a_family_run_on(client: httpx.Client, live: Live) -> None:
    stopped = client.post(LOOP, json=completion("cli_001_r3", **SCORES)).json()
    assert stopped["decision_result"]["decision"] == "finalize"
    (done,) = live.rows(
        "guardrails", "override", "cli_001_r3", "--max-reruns", "--by", "ann", "--why", "near", "--json"
    )
    assert (done["family"], done["by"], done["why"], done["lasts_s"]) == ("cli_001", "ann", "near", 3600.0)
    decision = client.post(LOOP, json=completion("cli_001_r4", **SCORES)).json()["decision_result"]
    assert (decision["decision"], decision["new_loop_id"]) == ("rerun", "cli_001_r5")
    assert "ann" in live.run("guardrails", "show", "cli_001_r4").stdout


def test_the_command_line_says_what_it_cannot_do(live: Live) -> None:
    unknown = live.run("guardrails", "override", "nowhere", "--fatigue", "--by", "ann", "--why", "x", status=1)
    assert "know no loop 'nowhere'" in unknown.stderr
    assert "judged no loop" in live.run("guardrails", "show", "nowhere", status=1).stderr
    assert "--fatigue" in live.run("guardrails", "override", "nowhere", "--by", "ann", "--why", "x", status=2).stderr


def test_concurrent_completions_of_a_family_get_reruns_of_their_own(client: httpx.Client) -> None:
    loops = ["family_001", "family_001_r1", "family_001_r2"]
    with ThreadPoolExecutor(3) as pool:
        answers = list(pool.map(lambda loop: client.post(LOOP, json=completion(loop, **SCORES)).json(), loops))
    ordered = [answer["decision_result"]["new_loop_id"] for answer in answers]
    assert len({each for each in ordered if each}) == len([each for each in ordered if each])
    assert client.post(LOOP, json=completion("family_001", **SCORES)).json() == answers[0]


def test_a_key_makes_repeats_one_event(client: httpx.Client, live: Live) -> None:
    tick = {"citizen": "felix", "arousal": 0.9, "modes": {"guardian": 0.9}}
    first, again = (client.post("/v1/ticks", json=tick, headers={"Idempotency-Key": "t1"}) for _ in range(2))
    assert first.status_code == 202
    assert again.json() == first.json()
    assert client.post("/v1/ticks", json=tick).json()["seq"] > first.json()["seq"]


@each(
    ("path", "body", "status", "named"),
    [
        (LOOP, {"loop_id": 7, "reflection_status": "done"}, 400, "loop_id"),
        (LOOP, {"loop_id": "x"}, 400, "reflection_status"),
        (LOOP, {"loop_id": "x", "reflection_status": "running"}, 400, "Invalid reflection status. Must be 'done'."),
        (LOOP, {"loop_id": "x", "reflection_status": "done", "alignment_score": 2}, 400, "alignment_score"),
        (f"{OVERRIDE}/x", {"override_by": "ann"}, 400, "override_reason"),
        (f"{OVERRIDE}/x", {"override_by": "ann", "override_reason": "y"}, 400, "override_fatigue"),
        (f"{OVERRIDE}/x", {"override_by": "ann", "override_reason": "y", "override_fatigue": True}, 404, "'x'"),
        (LOOP, {"loop_id": "x", "reflection_status": "done", "alignment_scor": 1}, 400, "'alignment_score'"),
        ("/v1/ticks", {}, 400, "says nothing"),
        ("/v1/ticks", {"modes": {"guardian": 2}}, 400, "modes"),
    ],
)
def test_what_cannot_be_taken_is_named(
    client: httpx.Client, path: str, body: dict[str, Any], status: int, named: str
) -> None:
    refused = client.post(path, json=body)
    assert refused.status_code == status
    assert refused.json()["status"] == "error"
    assert named in refused.json()["message"]


def test_an_unknown_loop_is_not_found(client: httpx.Client) -> None:
    refused = client.get(f"{STATUS}/nowhere")
    assert (refused.status_code, refused.json()["loop_id"]) == (404, "nowhere")


def test_too_large_a_body_is_refused(client: httpx.Client) -> None:
    assert client.post("/v1/ticks", content=b" " * 1_100_000).status_code == 413


def test_a_page_of_another_site_gets_nothing(client: httpx.Client) -> None:
    assert client.get("/schema", headers={"Origin": "https://evil.example"}).status_code == 403
    assert client.get("/schema", headers={"Host": "evil.example"}).status_code == 403


def test_an_answer_of_the_set_is_a_loop_too_when_it_was_judged(client: httpx.Client, live: Live) -> None:
    answered = live.ask("What is the capital of Peru?")
    asked = client.get(f"{STATUS}/{answered['exchange']}")
    assert asked.status_code == 404, "the composer's answers are not judged: only a model's are"


@pytest.mark.skipif(shutil.which("curl") is None, reason="the examples are for curl")
def test_the_examples_of_the_documentation_work(live: Live) -> None:
    page = (Path(__file__).parents[3] / "docs" / "http.md").read_text()
    written = re.findall(r"^```sh\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    examples = [each for each in written if "curl" in each]
    assert len(examples) >= 3
    judged = live.ask("Hello!", "--session", "travel")["exchange"]
    for example in examples:
        script = example.replace("http://127.0.0.1:8642", run_file(live)["http"]).replace("curl -s", "curl -sS --fail")
        script = script.replace("01936f2c8a41...", judged)
        done = subprocess.run(
            ["sh", "-ec", script], capture_output=True, text=True, env=environment(), timeout=60, check=False
        )
        assert done.returncode == 0, done.stderr
        assert len(values_in(done.stdout)) == example.count("curl -s"), done.stdout


def values_in(told: str) -> list[Any]:
    """Return the JSON values that stand in a text, one after the other."""
    found, place, decoder = list[Any](), 0, json.JSONDecoder()
    while told[place:].strip():
        place += len(told[place:]) - len(told[place:].lstrip())
        value, place = decoder.raw_decode(told, place)
        found.append(value)
    return found


def test_a_killed_gateway_comes_back_at_its_address_and_knows_what_was_judged(client: httpx.Client, live: Live) -> None:
    before = client.post(LOOP, json=completion("killed_001", **SCORES)).json()
    killed = pid_of(live, "gateway")
    os.kill(killed, signal.SIGKILL)
    # Its socket outlives it: a request meanwhile waits for the next one instead of being turned away.
    with httpx.Client(base_url=client.base_url, timeout=60, trust_env=False) as other:
        assert other.get(f"{STATUS}/killed_001").json()["guardrails_status"]["rerun_count"] == 1
        assert other.post(LOOP, json=completion("killed_001", **SCORES)).json() == before
    until(lambda: pid_of(live, "gateway") not in (0, killed), "the gateway is back")
    # It answers before its supervisor has heard that it is ready, and a set that is not is nothing good to the doctor.
    until(lambda: all(process["ready"] for process in run_file(live)["processes"]), "the set is ready again")
    assert "gateway" in live.run("doctor").stdout


def test_an_address_that_others_reach_takes_keys_or_nothing_starts(tmp_path: Path) -> None:
    refused = run(tmp_path, "up", "--http", "0.0.0.0:0", "--llm", "composer", status=2)
    assert "NEURAXIS_API_KEYS" in refused.stderr.splitlines()[-1]


def test_a_gateway_of_ones_own_serves_a_running_set_to_those_with_a_key(live: Live, tmp_path: Path) -> None:
    said = tmp_path / "gateway.log"
    with (
        gateway_of(live, said, NEURAXIS_API_KEYS=KEY) as address,
        httpx.Client(base_url=address, timeout=60, trust_env=False) as client,
    ):
        assert client.post(LOOP, json=completion("keyed_001")).status_code == 401
        allowed = {"Authorization": f"Bearer {KEY}"}
        assert client.post(LOOP, json=completion("keyed_001"), headers=allowed).status_code == 200
    assert KEY not in said.read_text()


def command_lines() -> bytes:
    """Return what a list of the processes shows of them."""
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # it has ended
            found.append(file.read_bytes())
    return b"".join(found)


def test_keys_are_added_and_revoked_while_a_gateway_runs_and_show_up_nowhere(live: Live, tmp_path: Path) -> None:
    said, where = tmp_path / "gateway.log", ("--set", f"gateway.keys_file={tmp_path / 'keys'}")
    [owner] = live.rows("keys", "add", "--scope", "operate", "--scope", "ask", "--json", *where)
    with (
        gateway_of(live, said, *where, "--set", "runtime.log_level=debug") as address,
        httpx.Client(base_url=address, timeout=60, trust_env=False) as client,
    ):

        def status(key: str, id: str) -> int:
            headers = {"Authorization": f"Bearer {key}"}
            return client.post(LOOP, json=completion(id, agent="keyed"), headers=headers).status_code

        assert status("nx_nobodys_key", "keyed_002") == 401
        [added] = live.rows("keys", "add", "--scope", "ask", "--agent", "keyed", "--json", *where)
        until(lambda: status(added["key"], "keyed_002") == 200, "the new key is in force")
        listed = live.run("keys", "list", "--json", *where).stdout
        live.run("keys", "revoke", added["id"], *where)
        until(lambda: status(added["key"], "keyed_002") == 401, "the revoked key is in force no more")
        assert status(owner["key"], "keyed_003") == 200
        refused = client.get("/api/overview", headers={"Authorization": f"Bearer {owner['key']}"})
        assert refused.status_code == 403
        override = {"override_fatigue": True, "override_by": "ann", "override_reason": "close", "agent": "keyed"}
        path = "/orchestrator/override-guardrails/keyed_003"
        done = client.post(path, json=override, headers={"Authorization": f"Bearer {owner['key']}"})
        assert done.status_code == 200, done.text
        processes = command_lines()
    [acted] = [each for each in live.events("forged_id.access.operated") if each["data"]["key_id"] == owner["id"]]
    assert acted["data"]["about"] == "keyed_003"
    everything = live.run("log", "tail", "--since", "1", "--no-follow", "--json", "--text").stdout
    for key in (added, owner):
        secret = key["key"].split("_", 2)[2]
        for place in (said.read_text(), everything, listed, refused.text, (tmp_path / "keys").read_text()):
            assert secret not in place
        assert secret.encode() not in processes


def test_a_gateway_that_others_reach_warns_of_an_agent_that_is_everybodys(live: Live, tmp_path: Path) -> None:
    key = {"NEURAXIS_API_KEYS": KEY}  # behind a reverse proxy, a gateway on loopback has one, too
    for number, (http, flags, keys, warns) in enumerate(
        (
            ("0.0.0.0:0", (), key, True),
            ("0.0.0.0:0", ("--set", "gateway.agent_per=user"), key, False),
            ("127.0.0.1:0", (), key, True),
            ("127.0.0.1:0", (), {}, False),
        )
    ):
        said = tmp_path / f"gateway-{number}.log"
        with (
            said.open("wb") as output,
            subprocess.Popen(
                command("gateway", "--http", http, *flags),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=live.folder,
                env={**environment(), **keys},
            ) as process,
        ):
            try:
                until(lambda: "gateway_ready" in said.read_text() or process.poll() is not None, "the gateway serves")  # noqa: B023
                assert ("agent_shared_by_all" in said.read_text()) is warns
            finally:
                process.kill()
