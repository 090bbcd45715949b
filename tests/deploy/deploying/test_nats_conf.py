"""``neuraxis deploy nats-conf``: its files are ones, keep their secrets, and say no secret to anybody."""

import json
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from deploy.cli import main
from deploy.config.loading import RUNNING_SECTIONS, load
from deploy.deploying.logins import one_login_each
from tests.broker import nats_server
from tests.cluster import deployed
from tests.each import each

THREE = ("--nodes", "3", "--hosts", "a.example,b.example:4333,[2001:db8::3]")


def nats_conf(*words: str) -> Result:
    return CliRunner().invoke(main, ["deploy", "nats-conf", *words])


def written(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


@each(
    "flags",
    [
        (),
        THREE,
        (*THREE, "--passwords"),
        (*THREE, "--dev-ca"),
        ("--hosts", "broker.example", "--dev-ca", "--max-store", "2TB", "--set", "broker.sync=1s"),
        ("--login", "deciders=all", "--login", "effectors=effectors", "--set", "log.stream=OTHER"),
        ("--set", "broker.sync=never"),
    ],
)
def test_nats_server_takes_every_file(flags: tuple[str, ...], tmp_path_factory: pytest.TempPathFactory) -> None:
    out = tmp_path_factory.mktemp("conf")
    told = nats_conf("--out", str(out), "--at", str(out / "broker-1"), *flags)
    assert told.exit_code == 0, told.stderr
    configurations = sorted(out.glob("broker-*/nats-server.conf"))
    assert len(configurations) == (3 if "3" in flags else 1)
    for file in configurations:
        subprocess.run([nats_server(), "-t", "-c", str(file)], check=True, capture_output=True)


@each("flags", [(), THREE, (*THREE, "--passwords", "--dev-ca")])
def test_secrets_are_the_owner_s_alone_and_never_printed(
    flags: tuple[str, ...], tmp_path_factory: pytest.TempPathFactory
) -> None:
    out = tmp_path_factory.mktemp("conf") / "broker"
    told = nats_conf("--out", str(out), *flags)
    secrets = [file.read_text() for pattern in ("*.nk", "*.password") for file in out.rglob(pattern)]
    assert len(secrets) >= len(one_login_each())
    assert not [secret for secret in secrets if secret in told.output]
    assert {oct(file.stat().st_mode & 0o777) for file in out.rglob("*") if file.is_file()} == {"0o600"}
    assert {oct(file.stat().st_mode & 0o777) for file in out.rglob("*") if file.is_dir()} == {"0o700"}


def test_servers_and_contexts_hold_no_seed(tmp_path: Path) -> None:
    nats_conf("--out", str(tmp_path), *THREE)
    files = written(tmp_path)
    seeds = [content for name, content in files.items() if name.endswith(".nk")]
    others = [content for name, content in files.items() if not name.endswith(".nk")]
    assert seeds
    assert not [seed for seed in seeds if any(seed in content for content in others)]


def test_writing_again_keeps_every_secret(tmp_path: Path) -> None:
    nats_conf("--out", str(tmp_path), *THREE)
    before = written(tmp_path)
    nats_conf("--out", str(tmp_path), *THREE)
    assert written(tmp_path) == before


def test_files_of_logins_that_are_none_any_more_are_named(tmp_path: Path) -> None:
    assert nats_conf("--out", str(tmp_path)).stderr == ""
    told = nats_conf("--out", str(tmp_path), "--login", "deciders=all", "--login", "effectors=llm,delegate,webhook")
    assert told.exit_code == 0
    assert "has files of logins that are none any more: act, alerts, appraisal, arbiter," in told.stderr
    assert not {"deciders", "operator", "system"} & set(told.stderr.replace(",", " ").split())


def test_a_login_s_file_that_holds_another_secret_is_refused_by_name(tmp_path: Path) -> None:
    nats_conf("--out", str(tmp_path))
    (tmp_path / "logins" / "router.nk").write_text("nothing of the kind")
    told = nats_conf("--out", str(tmp_path))
    assert told.exit_code == 2
    assert "router.nk holds no nkey seed: put the file back" in told.stderr


@each(
    ("words", "expected"),
    [
        ((), "say where to write"),
        (("--out", "x", "--nodes", "3"), "--nodes 3 needs as many hosts, and --hosts names none"),
        (("--out", "x", "--nodes", "3", "--hosts", "a,b"), "--hosts names 2"),
        (("--out", "x", "--nodes", "3", "--hosts", "a,b,a"), "two servers would use port 4222 of a"),
        (("--out", "x", "--nodes", "3", "--hosts", "a,a:6222,b"), "two servers would use port 6222 of a"),
        (("--out", "x", "--hosts", ","), "--nodes 1 needs as many hosts, and --hosts names none"),
        (("--out", "x", "--hosts", "a b"), "'a b' is no host of a server"),
        (("--out", "x", "--hosts", "a:70000"), "is no host of a server"),
        (("--out", "x", "--max-store", "much"), "'much' is no size"),
        (("--out", "x", "--store", "store"), "--store 'store' is no absolute path"),
        (("--out", "x", "--at", '/a"b'), "is no absolute path"),
        (("--out", "x", "--login", "reflex"), "'reflex' is no login: write NAME=ACTOR,ACTOR"),
        (("--out", "x", "--login", "w=reflx"), "did you mean 'reflex'?"),
        (("--out", "x", "--login", "w="), "login 'w' names no actor: write w=ACTOR,ACTOR, such as w=router"),
        (("--out", "x", "--login", "w=ledger"), "login 'w' cannot run the ledger, which has a login of its own"),
        (("--out", "x", "--login", "admin=reflex"), "'admin' is a login of every deployment"),
        (("--out", "x", "--login", "w=reflex", "--login", "w=act"), "login 'w' is given twice"),
        (("--out", "x", "--dev-ca", "--tls-ca", "none.pem"), "use one"),
        (("--out", "x", "--tls-ca", "none.pem"), "none.pem cannot be read"),
        (("--out", "x", "--tls-ca", "/dev/null"), "--tls-ca /dev/null holds no certificates as PEM"),
        (("--out", "x", "--tls-ca", __file__), "holds no certificates as PEM"),
    ],
)
def test_what_cannot_be_is_refused_in_a_line(
    words: tuple[str, ...], expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    told = nats_conf(*words)
    assert told.exit_code == 2
    assert expected in told.stderr
    assert "Traceback" not in told.output
    assert not (tmp_path / "x").exists()


def test_permissions_are_printed_for_who_administers_the_broker_by_other_means(tmp_path: Path) -> None:
    rows = [json.loads(line) for line in nats_conf("--permissions", "--json").stdout.splitlines()]
    nats_conf("--out", str(tmp_path))
    assert json.loads((tmp_path / "permissions.json").read_text()) == rows
    router = next(row for row in rows if row["login"] == "router")
    assert router["inbox_prefix"] == "_INBOX.router"
    assert "log.*.*.router.>" in router["permissions"]["publish"]["allow"]
    text = nats_conf("--permissions").stdout
    assert "login router\n  inbox prefix  _INBOX.router\n  appends for   router\n" in text
    assert "  publish allow  log.*.*.router.>\n" in text


@each(("passwords", "dev_ca"), [(True, False), (False, True)])
def test_a_login_gets_in_by_its_file(passwords: bool, dev_ca: bool, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("server")
    with deployed(folder, nodes=1, workers={"w": ("reflex",)}, passwords=passwords, dev_ca=dev_ca) as running:
        assert running.make_streams()[0] == "NEURAXIS: 1 copy"


MORE = '[gateway]\nhttp = "127.0.0.1:9000"\n\n[llm]\nbase_url = "https://llm.example/v1"\n'
"""Settings of the processes, as they are added to the file that comes with the broker's."""


def test_settings_that_were_added_to_the_file_are_kept(tmp_path: Path) -> None:
    nats_conf("--out", str(tmp_path))
    settings = tmp_path / "neuraxis.toml"
    whole = settings.read_text() + MORE
    settings.write_text(whole)
    told = nats_conf("--out", str(tmp_path))
    assert told.exit_code == 0, told.stderr
    assert settings.read_text() == whole
    assert "kept as they are" in told.stdout


def test_a_file_of_settings_that_was_there_first_is_kept(tmp_path: Path) -> None:
    """It has none of the shared settings, and their defaults are those of the files."""
    (tmp_path / "neuraxis.toml").write_text(MORE)
    assert nats_conf("--out", str(tmp_path)).exit_code == 0
    assert (tmp_path / "neuraxis.toml").read_text() == MORE


@each(
    ("there", "flags", "expected"),
    [
        (MORE, THREE, "neuraxis.toml has log.replicas = 1, and the broker's files would have 3"),
        (
            f'[log]\nstream = "MINDS"\n\n{MORE}',
            (),
            'log.stream = "MINDS", and the broker\'s files would have "NEURAXIS"',
        ),
        (MORE, ("--set", "broker.sync=1s"), 'broker.sync = "always", and the broker\'s files would have "1s"'),
        ("[log]\nsealed = false\n", ("--set", "log.sealed=true", "--set", "log.stream=A"), ""),
        ("[llm\n", (), "is not TOML: correct it, or move it aside"),
        ("[gatway]\nx = 1\n", (), "there is no section 'gatway': did you mean 'gateway'?"),
    ],
)
def test_settings_that_contradict_the_broker_s_files_are_refused_before_anything_is_written(
    there: str, flags: tuple[str, ...], expected: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    out = tmp_path_factory.mktemp("conf")
    (out / "neuraxis.toml").write_text(there)
    told = nats_conf("--out", str(out), *flags)
    if not expected:  # nothing but what the command itself writes: it is written anew
        assert told.exit_code == 0, told.stderr
        assert "sealed = true" in (out / "neuraxis.toml").read_text()
        return
    assert told.exit_code == 2
    assert expected in " ".join(told.stderr.split())
    assert written(out) == {"neuraxis.toml": there.encode()}


def test_settings_that_are_fixed_with_the_stream_go_along(tmp_path: Path) -> None:
    told = nats_conf("--out", str(tmp_path), "--set", "log.sealed=true", "--set", "LOG.agents=8")
    assert told.exit_code == 0, told.stderr
    config = load(RUNNING_SECTIONS, file=tmp_path / "neuraxis.toml", environment={})
    assert (config.log.sealed, config.log.agents, config.log.sessions) == (True, 8, 16)


@each(
    ("flags", "expected"),
    [
        (("--set", "router.profile=seed"), "--set router.profile changes nothing in these files"),
        (("--set", "broker.max_store_bytes=1000000000"), "--set broker.max_store_bytes changes nothing"),
        (("--set", "log.replicas=3"), "log.replicas is 3 (--set log.replicas), and --nodes 1 keeps 1"),
    ],
)
def test_settings_without_effect_are_refused(flags: tuple[str, ...], expected: str, tmp_path: Path) -> None:
    told = nats_conf("--out", str(tmp_path / "x"), *flags)
    assert told.exit_code == 2
    assert expected in " ".join(told.stderr.split())
    assert not (tmp_path / "x").exists()
