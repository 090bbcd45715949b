"""``neuraxis keys``, as it is typed."""

import errno
import fcntl
import json
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from actors.gateway.http.keys import ApiKeys
from deploy.cli import main
from deploy.processes.broker.users import write_private
from deploy.processes.running_set import DataFolder, RunFile, RunSettings
from tests.each import each


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def keys(*arguments: str, status: int = 0) -> Result:
    result = CliRunner().invoke(main, ["keys", *arguments])
    assert result.exit_code == status, result.output
    return result


def test_a_private_file_that_cannot_be_written_leaves_no_draft(folder: Path) -> None:
    (folder / "keys.jsonl").mkdir()
    with pytest.raises(IsADirectoryError):
        write_private(folder / "keys.jsonl", b"half of it")
    assert [each.name for each in folder.iterdir()] == ["keys.jsonl"]


def test_a_key_is_shown_once_listed_without_itself_and_revoked(folder: Path) -> None:
    file = folder / ".neuraxis" / "keys.jsonl"
    made = keys(
        "add", "--scope", "read", "--scope", "ask", "--agent", "support", "--per-minute", "60", "--note", "desk"
    )
    told = made.stdout.strip()
    found = ApiKeys([], file).find(f"Bearer {told}".encode())
    assert found is not None
    assert (found.scopes, found.agent, found.per_minute) == (("ask", "read"), "support", 60)
    assert found.id in made.stderr
    [listed] = [json.loads(line) for line in keys("list", "--json").stdout.splitlines()]
    assert (listed["id"], listed["note"], listed["revoked"]) == (found.id, "desk", "")
    assert told not in keys("list").stdout
    keys("revoke", found.id)
    assert ApiKeys([], file).find(f"Bearer {told}".encode()) is None
    assert json.loads(keys("list", "--json").stdout)["revoked"]


def test_the_file_is_the_one_that_the_configuration_names(folder: Path) -> None:
    (folder / "neuraxis.toml").write_text('[gateway]\nkeys_file = "ours"\n')
    keys("add", "--scope", "ask")
    assert (folder / "ours").exists()
    assert not (folder / ".neuraxis").exists()


@pytest.mark.parametrize("of_set", ["", "theirs"])
def test_the_file_is_that_of_the_running_set_wherever_one_asks(of_set: str, folder: Path) -> None:
    """A key in another file opens nothing, and one that leaked is not in it to be revoked."""
    (folder / "neuraxis.toml").write_text('[gateway]\nkeys_file = "ours"\n')  # of somebody else
    data = DataFolder(folder / "data")
    named = str(folder / of_set) if of_set else ""
    in_force = RunSettings(agents=8, sessions=32, receivers={}, effectors=(), key_file="", keys_file=named)
    with data.locked():
        data.write(RunFile(pid=os.getpid(), started="", version="", nats_url="", in_force=in_force))
        keys("add", "--scope", "ask", "--data", "data")
        keys("add", "--scope", "ask", "--data", "data", "--config", "neuraxis.toml")
    there = folder / of_set if of_set else data.keys
    assert [len(file.read_text().splitlines()) for file in (there, folder / "ours")] == [1, 1]


def test_a_change_reaches_gateways_that_read_the_file_by_another_path_or_as_another_user(folder: Path) -> None:
    """One that cannot read the file keeps the keys that it read last: a key that was revoked stays in force."""
    (folder / "real").mkdir()
    file = folder / "real" / "keys.jsonl"
    user = 65534 if os.geteuid() == 0 else os.geteuid()
    os.chown(file.parent, user, -1)
    (folder / "link").symlink_to(file)
    (folder / "neuraxis.toml").write_text('[gateway]\nkeys_file = "link"\n')
    keys("add", "--scope", "ask")
    keys("revoke", json.loads(keys("list", "--json").stdout)["id"])
    assert json.loads(file.read_text())["revoked"]
    assert {each.stat().st_uid for each in file.parent.iterdir()} == {user}
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
@pytest.mark.parametrize("planted", ["keys.jsonl.lock", ".keys.jsonl.PID"])
@pytest.mark.parametrize("plant", [Path.symlink_to, Path.hardlink_to])
def test_root_gives_away_and_changes_no_file_that_the_folders_user_linked_there(
    plant: Callable[[Path, Path], None], planted: str, folder: Path
) -> None:
    roots, file = folder / "roots", folder / "theirs" / "keys.jsonl"
    roots.write_text("root's own")
    file.parent.mkdir()
    os.chown(file.parent, 65534, 65534)
    plant(file.with_name(planted.replace("PID", str(os.getpid()))), roots)
    (folder / "neuraxis.toml").write_text('[gateway]\nkeys_file = "theirs/keys.jsonl"\n')
    CliRunner().invoke(main, ["keys", "add", "--scope", "ask"])
    assert (roots.stat().st_uid, roots.read_text()) == (0, "root's own")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_a_file_that_root_made_goes_to_the_folders_user_and_none_is_stored_that_cannot_be_given(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = folder / ".neuraxis" / "keys.jsonl"
    keys("add", "--scope", "ask")
    os.chown(file.parent, 65534, 65534)
    keys("add", "--scope", "ask")
    assert file.stat().st_uid == 65534

    def refuse(*_: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    before = file.read_bytes()
    monkeypatch.setattr(os, "fchown", refuse)
    assert "Operation not permitted" in keys("add", "--scope", "ask", status=2).stderr
    assert file.read_bytes() == before


def test_there_are_no_keys_at_first() -> None:
    shown = keys("list", "--json")
    assert shown.stdout == ""
    assert ".neuraxis/keys.jsonl holds no key" in shown.stderr


@each(
    ("arguments", "status", "said"),
    [
        (("add",), 2, "--scope"),
        (("add", "--scope", "reed"), 2, "reed"),
        (("add", "--scope", "ask", "--agent", "a\x07b"), 2, "agent"),
        (("add", "--scope", "ask", "--note", "n" * 300), 2, "--note"),
        (("add", "--scope", "ask", "--per-minute", "0"), 2, "--per-minute"),
        (("revoke", "nobody"), 1, "neuraxis keys list"),
    ],
)
def test_what_cannot_be_done_is_told(arguments: tuple[str, ...], status: int, said: str) -> None:
    assert said in keys(*arguments, status=status).stderr


def test_a_file_that_is_none_of_keys_is_left_as_it_is(folder: Path) -> None:
    (folder / "neuraxis.toml").write_text('[gateway]\nkeys_file = "ours"\n')
    (folder / "ours").write_text("nx_a_key_itself\n")
    refused = keys("add", "--scope", "ask", status=2)
    assert "ours, line 1" in refused.stderr
    assert "nx_a_key_itself" not in refused.output
    assert (folder / "ours").read_text() == "nx_a_key_itself\n"


def test_a_command_that_stands_still_with_the_lock_does_not_hold_the_next_one(folder: Path) -> None:
    file = folder / ".neuraxis" / "keys.jsonl"
    file.parent.mkdir()
    with file.with_name("keys.jsonl.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        refused = keys("add", "--scope", "ask", status=2)
    assert "another process has held its lock" in refused.stderr
    assert not file.exists()
