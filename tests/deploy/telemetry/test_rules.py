"""The alert rules and the dashboard: sound by Prometheus' own tool, and about metrics that are documented."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

import deploy.telemetry
from actors.gateway.metrics import Metrics
from schemas.catalogue import ALERTS
from schemas.vocabulary.alerts import SEVERITY_NAMES
from schemas.vocabulary.responder import Stage

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
    quiet, *loud = yaml.safe_load(WORLDS.read_text())["tests"]
    names = {rule["alert"] for rule in rules()}
    assert {each["alertname"] for each in quiet["alert_rule_test"]} == names
    fired = [each["labels"] for world in loud for asked in world["promql_expr_test"] for each in asked["exp_samples"]]
    assert {re.findall(r'"(\w+)"', labels)[0] for labels in fired} == names


def test_no_rate_needs_more_than_a_sample_a_minute() -> None:
    """Prometheus asks once a minute by default. A range with one sample has no rate, and its rule never fires."""
    ranges = [found for rule in rules() for found in re.findall(r"\[(\w+)\]", str(rule["expr"]))]
    assert ranges
    assert all(found.endswith("m") and int(found[:-1]) >= 3 for found in ranges), ranges


def test_labels_that_a_rule_names_are_there_before_the_first_event() -> None:
    """Prometheus takes a counter that appears with 1 for one that has not risen: the first event would go unseen."""
    counted = Metrics().render(log_seq=0, ledger_seq=0, served={}, ready=True).decode()
    begun = {
        (sample.name, *(value for _, value in sorted(sample.labels.items())))
        for family in text_string_to_metric_families(counted)
        for sample in family.samples
    }
    named = {severity for rule in rules() for severity in re.findall(r'severity="(\w+)"', str(rule["expr"]))}
    alerts = {(SEVERITY_NAMES[severity], source) for severity, source in ALERTS}
    assert named
    assert {("neuraxis_alerts_total", *each, "firing") for each in alerts if each[0] in named} <= begun
    assert {("neuraxis_exchanges_total", "FAILED", "", stage) for stage in get_args(Stage)} <= begun


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
