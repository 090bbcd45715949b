"""Whose agent a person's words are for, and how many they may be, as ``ask`` and ``chat`` find it."""

import os
from pathlib import Path

import pytest

from deploy.cli.asking.ask import agent_of
from deploy.cli.connect import input_limits
from deploy.cli.options import Target
from deploy.processes.running_set import DataFolder, RunFile, RunSettings
from schemas.intake.limits import InputLimits


@pytest.mark.parametrize(
    ("per", "agent", "whose", "warns"),
    [
        ("shared", None, "default", True),
        ("shared", "ann", "ann", False),
        ("user", None, "user:ann", False),
        ("session", None, "session:lunch", True),
    ],
)
def test_a_user_is_named_in_vain_only_with_a_word_about_it(
    per: str, agent: str | None, whose: str, warns: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = Target(tmp_path, "", "", "", "", None, (f"gateway.agent_per={per}",))
    assert agent_of(target, agent, "ann", "lunch") == whose
    assert ("gateway.agent_per" in capsys.readouterr().err) is warns


def test_a_user_beside_a_named_agent_is_told_to_change_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = Target(tmp_path, "", "", "", "", None, ("gateway.agent_per=user",))
    assert agent_of(target, "helpdesk", "ann", "lunch") == "helpdesk"
    assert "--user changes nothing: --agent names the agent" in " ".join(capsys.readouterr().err.split())
    assert agent_of(target, "helpdesk", "", "lunch") == "helpdesk"
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("of_set", "given", "most"),
    [
        (InputLimits(text_bytes=10), (), 10),
        (InputLimits(text_bytes=10), ("gateway.limits.text_bytes=20",), 20),
        (None, (), InputLimits().text_bytes),  # of an older release
    ],
)
def test_an_input_is_held_to_the_limits_of_the_running_set_unless_others_are_named(
    of_set: InputLimits | None, given: tuple[str, ...], most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NATS_URL", raising=False)
    data = DataFolder(tmp_path / "data")
    in_force = RunSettings(agents=8, sessions=32, receivers={}, effectors=(), key_file="", limits=of_set)
    with data.locked():
        data.write(RunFile(pid=os.getpid(), started="", version="", nats_url="nats://127.0.0.1:9", in_force=in_force))
        assert input_limits(Target(data.path, "", "", "", "", None, given)).text_bytes == most
