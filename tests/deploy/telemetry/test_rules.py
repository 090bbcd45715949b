"""The alert rules and the dashboard: sound by Prometheus' own tool, and about metrics that are documented."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

import deploy.telemetry

FOLDER = Path(deploy.telemetry.__path__[0])
RULES = FOLDER / "alerts.yml"
DASHBOARD = FOLDER / "dashboard.json"
WORLDS = Path(__file__).with_name("alerts_test.yml")


def promtool(*arguments: str, folder: Path) -> str:
    found = shutil.which("promtool")
    if found is None:
        pytest.skip("promtool is not installed: it comes with Debian's package prometheus")
    told = subprocess.run([found, *arguments], cwd=folder, capture_output=True, text=True, timeout=60, check=False)
    assert told.returncode == 0, told.stdout + told.stderr
    return told.stdout


def rules() -> list[dict[str, object]]:
    (group,) = yaml.safe_load(RULES.read_text())["groups"]
    found: list[dict[str, object]] = group["rules"]
    return found


def expressions() -> Iterator[str]:
    """Yield what the rules and the panels of the dashboard ask Prometheus."""
    yield from (str(rule["expr"]) for rule in rules())
    for panel in json.loads(DASHBOARD.read_text())["panels"]:
        yield from (target["expr"] for target in panel.get("targets", ()))


def metrics_named() -> set[str]:
    """Return the metrics that rules and panels name, a histogram's parts as the histogram."""
    named = {name for expression in expressions() for name in re.findall(r"\b(?:neuraxis|process)_\w+", expression)}
    return {re.sub(r"_(bucket|count|sum)$", "", name) for name in named}


def test_prometheus_takes_the_rules(tmp_path: Path) -> None:
    shutil.copy(RULES, tmp_path)
    assert f"{len(rules())} rules found" in promtool("check", "rules", RULES.name, folder=tmp_path)


def test_each_rule_fires_when_it_should_and_not_before(tmp_path: Path) -> None:
    shutil.copy(RULES, tmp_path)
    shutil.copy(WORLDS, tmp_path)
    promtool("test", "rules", WORLDS.name, folder=tmp_path)
    quiet, loud = yaml.safe_load(WORLDS.read_text())["tests"]
    names = {rule["alert"] for rule in rules()}
    assert {each["alertname"] for each in quiet["alert_rule_test"]} == names
    (fired,) = loud["promql_expr_test"]
    assert {re.findall(r'"(\w+)"', each["labels"])[0] for each in fired["exp_samples"]} == names


def test_prometheus_takes_what_the_panels_ask(tmp_path: Path) -> None:
    asked = [each.replace("$__rate_interval", "5m") for each in expressions()]
    groups = [{"name": "panels", "rules": [{"record": f"panel:{n}", "expr": each} for n, each in enumerate(asked)]}]
    (tmp_path / "panels.yml").write_text(yaml.safe_dump({"groups": groups}))
    assert f"{len(asked)} rules found" in promtool("check", "rules", "panels.yml", folder=tmp_path)


def test_every_rule_says_what_is_wrong_and_what_to_do() -> None:
    for rule in rules():
        labels, annotations = rule["labels"], rule["annotations"]
        assert isinstance(labels, dict)
        assert isinstance(annotations, dict)
        assert labels["severity"] in ("critical", "warning", "info"), rule
        assert set(annotations) == {"summary", "description"}, rule


def test_panels_have_places_of_their_own_and_the_data_source_that_is_chosen() -> None:
    panels = json.loads(DASHBOARD.read_text())["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    assert len({(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels}) == len(panels)
    sources = {json.dumps(panel["datasource"]) for panel in panels if panel["type"] != "row"}
    assert sources == {'{"type": "prometheus", "uid": "${datasource}"}'}
