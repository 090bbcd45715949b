"""How long an Alertmanager keeps an alert, against how long it may fire."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from deploy.cli import main
from deploy.config.alert_lifetimes import check_alert_lifetimes
from deploy.config.loading import BadConfiguration, Config, Layer, all_sections, assignment_layer, resolve
from tests.each import each

LONG = "alerts.lapse_ms=100000000"


def configured(style: str, *assignments: str) -> Config:
    receivers = {"receivers": {"ops": {"style": style, "url_env": "THE_VARIABLE"}}}
    layers = [Layer("neuraxis.toml", {"webhook": receivers}), *map(assignment_layer, assignments)]
    return resolve(all_sections(), layers)


@each("assignment", [LONG, "alerts.session_lapse_ms=100000000", "webhook.lasts_ms=86400000"])
def test_an_alert_that_fires_longer_than_an_alertmanager_keeps_it_is_refused(assignment: str) -> None:
    with pytest.raises(BadConfiguration, match=r"would end them before; set webhook\.lasts_ms higher"):
        check_alert_lifetimes(configured("alertmanager", assignment))
    check_alert_lifetimes(configured("slack", assignment))


def test_one_that_it_keeps_longer_is_taken() -> None:
    check_alert_lifetimes(configured("alertmanager"))
    check_alert_lifetimes(configured("alertmanager", LONG, "webhook.lasts_ms=100000001"))


@pytest.mark.parametrize("command", [("up",), ("worker", "webhook")], ids=" ".join)
def test_it_is_refused_before_anything_starts(
    command: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.umask", lambda mask: mask)
    file = tmp_path / "neuraxis.toml"
    file.write_text('[webhook.receivers.ops]\nstyle = "alertmanager"\nurl_env = "THE_VARIABLE"\n')
    told = CliRunner().invoke(main, [*command, "--data", str(tmp_path), "--config", str(file), "--set", LONG])
    assert told.exit_code == 2, told.output
    assert "an Alertmanager would end them before" in " ".join(told.stderr.split())
