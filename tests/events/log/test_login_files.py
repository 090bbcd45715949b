"""Files that a login names and that are none of their kind are named, before anything is connected to."""

import asyncio
import os
from pathlib import Path

import nkeys
import pytest
from click.testing import CliRunner

from deploy.cli import main
from events.errors import Misconfigured
from events.jetstream import Access, Connection
from events.jetstream.login_files import check_credentials, check_nkey
from tests.each import each

SEED = nkeys.encode_seed(os.urandom(32), nkeys.PREFIX_BYTE_USER).decode()
CREDENTIALS = (
    "-----BEGIN NATS USER JWT-----\n{token}\n------END NATS USER JWT------\n\n"
    "-----BEGIN USER NKEY SEED-----\n{seed}\n------END USER NKEY SEED------\n"
)


@each(
    ("named", "content", "told"),
    [
        ("tls_ca", "no certificate", "is no file of certificates"),
        ("nkey", "SUno-seed", "does not hold the seed of an nkey"),
        ("nkey", "", "does not hold the seed of an nkey"),
        ("credentials", "{}", "does not hold NATS credentials"),
        ("credentials", CREDENTIALS.format(token="", seed=SEED), "does not hold NATS credentials"),
        ("credentials", CREDENTIALS.format(token="e.y.J", seed="SUno"), "does not hold NATS credentials"),
    ],
)
def test_a_file_that_is_none_of_its_kind_is_named(named: str, content: str, told: str, tmp_path: Path) -> None:
    file = tmp_path / "given"
    file.write_text(content)
    access = Access(servers="nats://127.0.0.1:1", **{named: str(file)})  # type: ignore[arg-type]
    with pytest.raises(Misconfigured, match=told) as caught:
        asyncio.run(Connection.open(access))
    assert str(file) in str(caught.value)
    assert SEED not in str(caught.value)


@pytest.mark.parametrize("named", ["tls_ca", "nkey", "credentials"])
def test_so_is_a_folder_in_the_place_of_one(named: str, tmp_path: Path) -> None:
    access = Access(servers="nats://127.0.0.1:1", **{named: str(tmp_path)})  # type: ignore[arg-type]
    with pytest.raises(Misconfigured, match=str(tmp_path)):
        asyncio.run(Connection.open(access))


def test_right_ones_are_taken(tmp_path: Path) -> None:
    (tmp_path / "user.nk").write_text(f"{SEED}\n")
    check_nkey(str(tmp_path / "user.nk"))
    (tmp_path / "user.creds").write_text(CREDENTIALS.format(token="e.y.J", seed=SEED))
    check_credentials(str(tmp_path / "user.creds"))


def test_a_command_says_so_as_wrong_use(tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    file.write_text("no certificate")
    for option in ("--tls-ca", "--creds"):
        done = CliRunner().invoke(main, ["log", "info", "--nats", "tls://127.0.0.1:1", option, str(file)])
        assert done.exit_code == 2, done.output
        assert str(file) in done.output.replace("\n", "")
