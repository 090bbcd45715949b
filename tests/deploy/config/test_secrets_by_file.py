"""Every secret can be given by file: a variable is seen by whoever may look at a process or its definition."""

from collections.abc import Callable
from pathlib import Path

import pytest

from actors.gateway.http.keys import api_keys_for
from actors.llm.endpoint import BadEndpoint, api_key
from actors.webhook.receivers import addresses
from actors.webhook.settings import Receiver
from deploy.config.loading import VARIABLES
from deploy.config.settings import GatewaySettings, UpstreamSettings
from deploy.config.upstream_settings import upstream_of
from deploy.operating.api_key_file import add_key, keys_file
from deploy.processes.broker_access import BrokerChoice, access_of
from deploy.processes.running_set import DataFolder

SECRET = "a-secret-of-24-characters"


def _llm(file: Path) -> bool:
    return api_key({}, str(file)) == SECRET


def _upstream(file: Path) -> bool:
    endpoint = upstream_of(UpstreamSettings(url="http://models.example/v1", key_file=str(file)), {})
    return endpoint is not None and endpoint.api_key == SECRET


def _keys(file: Path) -> bool:
    file.unlink()
    settings = GatewaySettings(keys_file=str(file))
    add_key(keys_file(settings, DataFolder(file.parent)), ("operate",), agent="", per_minute=0, note="")
    return api_keys_for("0.0.0.0", file, {}).required


BY_FILE: dict[str, Callable[[Path], bool]] = {
    "NEURAXIS_LLM_API_KEY": _llm,
    "NEURAXIS_UPSTREAM_API_KEY": _upstream,
    "NEURAXIS_API_KEYS": _keys,
    "NEURAXIS_OPERATOR_KEYS": _keys,
}
NO_SECRETS = {"NEURAXIS_LLM_URL", "NEURAXIS_MODELS"}


def test_every_variable_of_a_secret_is_looked_at_here() -> None:
    assert {*VARIABLES} == {*BY_FILE, *NO_SECRETS}


@pytest.mark.parametrize("variable", BY_FILE)
def test_a_file_does_what_the_variable_does(variable: str, tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text(f"{SECRET}\n")
    assert BY_FILE[variable](file)


def test_so_do_the_files_of_a_receiver_of_alerts(tmp_path: Path) -> None:
    for name in ("url", "token"):
        (tmp_path / name).write_text(f"https://hooks.example/{name}\n")
    receiver = Receiver(style="slack", url_file=str(tmp_path / "url"), token_file=str(tmp_path / "token"))
    found = addresses({"ops": receiver}, {})["ops"]
    assert (found.url, found.token) == ("https://hooks.example/url", "https://hooks.example/token")


def test_so_does_the_context_of_a_broker(tmp_path: Path) -> None:
    context = tmp_path / "login.json"
    context.write_text(f'{{"url": "nats://broker.example:4222", "user": "ada", "password": "{SECRET}"}}')
    access = access_of(BrokerChoice(context=str(context)), DataFolder(tmp_path))
    assert (access.user, access.password) == ("ada", SECRET)


def test_a_file_that_cannot_be_read_is_named_and_what_is_in_it_is_not(tmp_path: Path) -> None:
    with pytest.raises(BadEndpoint, match=r"the key file .*/absent cannot be read"):
        upstream_of(UpstreamSettings(url="http://models.example/v1", key_file=str(tmp_path / "absent")), {})
    (tmp_path / "two lines").write_text(f"{SECRET}\n{SECRET}\n")
    with pytest.raises(BadEndpoint) as told:
        api_key({}, str(tmp_path / "two lines"))
    assert SECRET not in str(told.value)
