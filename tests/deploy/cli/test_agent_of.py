"""Whose agent a person's words are for, as ``ask`` and ``chat`` find it."""

from pathlib import Path

import pytest

from deploy.cli.asking.ask import agent_of
from deploy.cli.options import Target


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
