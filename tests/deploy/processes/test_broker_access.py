"""How a command finds its broker: what wins, and what is refused."""

import json
import os
from pathlib import Path

import msgspec
import pytest

from deploy.cli.options import Target
from deploy.cli.outcomes import WrongUse
from deploy.config.settings import BrokerSettings
from deploy.processes.broker_access import BadContext, BrokerChoice, access_of, context_of, effective_choice
from deploy.processes.running_set import DataFolder, NotRunning, RunFile
from events.jetstream import Access
from tests.each import each

RUN = RunFile(pid=os.getpid(), started="2030-01-01T00:00:00+00:00", version="0", nats_url="nats://127.0.0.1:4222")


def context(path: Path, **fields: str) -> Path:
    path.write_text(json.dumps(fields))
    return path


@each(
    ("flags", "environment", "settings", "expected"),
    [
        (BrokerChoice(url="flag"), {"NATS_URL": "variable"}, BrokerSettings(url="file"), BrokerChoice(url="flag")),
        (
            BrokerChoice(context="flag"),
            {"NATS_URL": "variable"},
            BrokerSettings(url="file"),
            BrokerChoice(context="flag"),
        ),
        (BrokerChoice(), {"NATS_URL": "variable"}, BrokerSettings(url="file"), BrokerChoice(url="variable")),
        (BrokerChoice(), {}, BrokerSettings(context="file"), BrokerChoice(context="file")),
        (BrokerChoice(creds="c"), {"NATS_URL": "variable"}, BrokerSettings(), BrokerChoice(url="variable", creds="c")),
        (BrokerChoice(), {"NATS_URL": ""}, BrokerSettings(), BrokerChoice()),
    ],
)
def test_flags_win_over_the_environment_and_that_over_the_configuration(
    flags: BrokerChoice, environment: dict[str, str], settings: BrokerSettings, expected: BrokerChoice
) -> None:
    assert effective_choice(flags, settings, environment) == expected


@pytest.mark.parametrize("name", ["NEURAXIS_BROKER__URL", "NEURAXIS_broker__context"])
def test_two_variables_that_name_different_brokers_are_refused(name: str) -> None:
    environment = {"NATS_URL": "nats://one:4222", name: "nats://other:4222"}
    with pytest.raises(BadContext, match=f"^NATS_URL and {name} name two brokers: unset one of them$"):
        effective_choice(BrokerChoice(), BrokerSettings(), environment)
    assert effective_choice(BrokerChoice(url="flag"), BrokerSettings(), environment).url == "flag"
    same = {"NATS_URL": "nats://one:4222", name: "nats://one:4222"}
    assert effective_choice(BrokerChoice(), BrokerSettings(), same).url == "nats://one:4222"


def test_a_broker_that_set_names_wins_over_a_variable_as_every_flag_does() -> None:
    target = Target(Path("data"), "", "", "", "", None, ("Broker.url=nats://staging:4222",))
    assert effective_choice(target.flags, BrokerSettings(), {"NATS_URL": "nats://production:4222"}).url == (
        "nats://staging:4222"
    )
    assert not Target(Path("data"), "", "", "", "", None, ()).flags.named


@each("option", ["--nats", "--context"])
@each("key", ["Broker.url", "broker.context"])
def test_a_broker_that_set_names_beside_another_option_is_refused(option: str, key: str) -> None:
    named = {option: "nats://named:4222"}
    with pytest.raises(WrongUse, match=f"{option} and --set {key.lower()} each name a broker: give one of them"):
        Target(Path("data"), named.get("--nats", ""), named.get("--context", ""), "", "", None, (f"{key}=other",))


def test_the_processes_of_a_set_are_named_their_broker_once() -> None:
    target = Target(Path("data"), "", "", "", "", None, ("Broker.url=nats://staging:4222", "router.profile=seed"))
    assert target.config_flags() == ("--set", "router.profile=seed")


@each(
    ("url", "servers", "user", "password"),
    [
        ("nats://broker:4333", "nats://broker:4333", "", ""),
        ("broker", "nats://broker:4222", "", ""),
        ("tls://me:s%40crt@broker", "tls://broker:4222", "me", "s@crt"),
        ("nats://a:1, nats://b:2", "nats://a:1,nats://b:2", "", ""),
        ("nats://[::1]:4222", "nats://[::1]:4222", "", ""),
    ],
)
def test_a_url_is_taken_apart_so_that_its_secret_is_never_shown(
    url: str, servers: str, user: str, password: str, tmp_path: Path
) -> None:
    access = access_of(BrokerChoice(url=url), DataFolder(tmp_path))
    assert (access.servers, access.user, access.password) == (servers, user, password)
    assert password == "" or password not in repr(access)


@each(
    "url",
    [
        *("http://broker", "nats://broker:port", "nats://", "nats://broker:99999", "nats://broker:0"),
        *("nats://broker/log", "nats://broker?tls=true", "nats://me:hidden@broker:port"),
    ],
)
def test_what_is_no_address_of_a_broker_is_refused_without_showing_a_secret(url: str, tmp_path: Path) -> None:
    with pytest.raises(BadContext, match="is not a broker's address") as wrong:
        access_of(BrokerChoice(url=url), DataFolder(tmp_path))
    assert "hidden" not in str(wrong.value)


@each(
    ("url", "why"),
    [
        ("nats://hidden@broker", "holds half a login, and tokens are not supported"),
        ("nats://me:@broker", "holds half a login"),
        ("nats://me:hidden@a,nats://you:hidden@b", "hold different logins"),
        (" , ", "names no broker"),
    ],
)
def test_a_login_in_a_url_that_would_be_left_out_is_refused(url: str, why: str, tmp_path: Path) -> None:
    with pytest.raises(BadContext, match=why) as wrong:
        access_of(BrokerChoice(url=url), DataFolder(tmp_path))
    assert "hidden" not in str(wrong.value)


def test_a_context_is_found_by_name_where_the_nats_command_keeps_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    folder = tmp_path / "nats" / "context"
    folder.mkdir(parents=True)
    context(folder / "production.json", url="nats://broker", user="me", password="secret", inbox_prefix="_INBOX.me")
    access = access_of(BrokerChoice(context="production"), DataFolder(tmp_path))
    assert (access.servers, access.user, access.inbox_prefix) == ("nats://broker:4222", "me", "_INBOX.me")


def test_a_context_stands_for_an_access_and_back(tmp_path: Path) -> None:
    access = Access(servers="nats://broker:4222", user="me", password="secret", inbox_prefix="_INBOX.me", name="n")
    written = context_of(access)
    path = context(
        tmp_path / "c.json",
        url=written.url,
        user=written.user,
        password=written.password,
        inbox_prefix=written.inbox_prefix,
    )
    assert access_of(BrokerChoice(context=str(path)), DataFolder(tmp_path), name="n") == access


@each(
    ("content", "expected"),
    [
        (None, "there is no NATS context"),
        ("{", "cannot be read"),
        ('{"url": "nats://broker", "token": "x"}', "uses token, which neuraxis does not support"),
        ('{"url": "nats://broker", "creds": "/no/such.creds"}', "/no/such.creds cannot be read"),
    ],
)
def test_a_context_that_cannot_be_used_is_refused_with_the_reason(
    content: str | None, expected: str, tmp_path: Path
) -> None:
    path = tmp_path / "context.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(BadContext, match=expected):
        access_of(BrokerChoice(context=str(path)), DataFolder(tmp_path))


def test_a_broker_named_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadContext, match="named twice"):
        access_of(BrokerChoice(url="nats://broker", context="production"), DataFolder(tmp_path))


def test_without_a_name_the_set_in_the_data_folder_is_used(tmp_path: Path) -> None:
    data = DataFolder(tmp_path)
    path = context(tmp_path / "operator.json", url="nats://127.0.0.1:4333", user="operator", password="secret")
    with data.locked():
        data.write(msgspec.structs.replace(RUN, context=str(path)))
        access = access_of(BrokerChoice(), data)
    assert (access.servers, access.user) == ("nats://127.0.0.1:4333", "operator")


def test_of_an_embedded_broker_the_wished_users_context_is_used(tmp_path: Path) -> None:
    data = DataFolder(tmp_path)
    context(tmp_path / "ledger.json", url="nats://127.0.0.1:4333", user="ledger", password="secret")
    with data.locked():
        data.write(msgspec.structs.replace(RUN, contexts=str(tmp_path)))
        assert access_of(BrokerChoice(), data, user="ledger").user == "ledger"


def test_a_folder_without_a_set_is_refused_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(NotRunning, match="start one with `neuraxis up`"):
        access_of(BrokerChoice(), DataFolder(tmp_path))


def test_a_set_whose_broker_has_no_address_yet_is_said_to_be_starting(tmp_path: Path) -> None:
    data = DataFolder(tmp_path)
    with data.locked():
        data.write(msgspec.structs.replace(RUN, nats_url=""))
        with pytest.raises(NotRunning, match="still starting"):
            access_of(BrokerChoice(), data)


def test_of_a_folder_of_logins_each_process_uses_its_own(tmp_path: Path) -> None:
    context(tmp_path / "reflex.json", url="nats://broker:4222", nkey="reflex.nk", inbox_prefix="_INBOX.reflex")
    (tmp_path / "reflex.nk").write_text("a seed")
    reach = BrokerChoice(context=str(tmp_path))
    found = access_of(reach, DataFolder(tmp_path), user="reflex")
    assert (found.nkey, found.inbox_prefix) == (str(tmp_path / "reflex.nk"), "_INBOX.reflex")
    with pytest.raises(BadContext, match="holds no login router, only reflex: copy"):
        access_of(reach, DataFolder(tmp_path), user="router")


def test_files_of_a_context_lie_beside_it_wherever_it_is_read_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "my.creds").write_text("credentials")
    context(tmp_path / "c.json", url="nats://broker:4222", creds="my.creds")
    monkeypatch.chdir(tmp_path / "elsewhere")
    found = access_of(BrokerChoice(context="../c.json"), DataFolder(tmp_path))
    assert Path(found.credentials).resolve() == tmp_path / "my.creds"
    assert Path(context_of(found).creds).is_absolute()
