"""API keys: which open, how they are stored, and that they change while a gateway runs."""

import json
import stat
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import structlog

from actors.gateway.http.keys import ALL_SCOPES, ANYBODY, ApiKeys, BadKeys, api_keys_for
from actors.gateway.http.keys.api_keys import CHECK_INTERVAL_S, FEWEST_CHARACTERS
from actors.gateway.http.keys.file import BadKeyFile, read_keys
from actors.gateway.http.keys.key import Key, hash_of
from actors.gateway.http.keys.rate import Rates
from deploy.operating.api_key_file import NoSuchKey, add_key, held_keys, revoke_key
from tests.actors.gateway.http.rig import key_of

ASKING, OPERATING = "a" * FEWEST_CHARACTERS, "o" * FEWEST_CHARACTERS


class Clock:
    """Time that passes when a test says so."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def added(file: Path, *scopes: Any, agent: str = "", per_minute: int = 0) -> tuple[str, str]:
    """Add a key as the command does; return its id and the key itself."""
    key, told = add_key(file, scopes, agent=agent, per_minute=per_minute, note="a test's")
    return key.id, told


def brought(key: str) -> bytes:
    return f"Bearer {key}".encode()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "keys.jsonl"


@pytest.fixture
def look(file: Path) -> tuple[ApiKeys, Callable[[], None]]:
    """The keys of a file that is not there yet, and what lets them look at it again."""
    clock = Clock()
    ring = ApiKeys([], file, clock)

    def again() -> None:
        clock.now += CHECK_INTERVAL_S

    return ring, again


def test_keys_of_the_environment_may_ask_or_do_all(tmp_path: Path) -> None:
    keys = api_keys_for(
        "0.0.0.0",
        tmp_path / "none",
        {"NEURAXIS_API_KEYS": f"{ASKING},{'b' * FEWEST_CHARACTERS}", "NEURAXIS_OPERATOR_KEYS": OPERATING},
    )
    for key, scopes in ((ASKING, ("ask",)), ("b" * FEWEST_CHARACTERS, ("ask",)), (OPERATING, ALL_SCOPES)):
        found = keys.find(brought(key))
        assert found is not None
        assert found.scopes == scopes
        assert key not in repr((keys, found))
    assert keys.find(brought("c" * FEWEST_CHARACTERS)) is None


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "neuraxis.example"])
def test_an_address_that_others_reach_takes_a_key(host: str, file: Path) -> None:
    with pytest.raises(BadKeys, match="NEURAXIS_API_KEYS"):
        api_keys_for(host, file, {})
    added(file, "ask")
    assert api_keys_for(host, file, {}).required


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost"])
def test_an_address_of_this_machine_alone_takes_none(host: str, file: Path) -> None:
    keys = api_keys_for(host, file, {})
    assert (keys.required, keys.find(b"")) == (False, ANYBODY)


@pytest.mark.parametrize("variable", ["NEURAXIS_API_KEYS", "NEURAXIS_OPERATOR_KEYS"])
def test_a_short_key_is_refused_without_being_shown(variable: str, file: Path) -> None:
    with pytest.raises(BadKeys, match="16 characters") as wrong:
        api_keys_for("127.0.0.1", file, {variable: "hunter2"})
    assert "hunter2" not in str(wrong.value)


@pytest.mark.parametrize("variable", ["NEURAXIS_API_KEYS", "NEURAXIS_OPERATOR_KEYS"])
@pytest.mark.parametrize("value", ["", " ", " , ,\n"])
def test_a_variable_for_keys_without_a_key_does_not_open_the_gateway_to_everybody(
    variable: str, value: str, file: Path
) -> None:
    with pytest.raises(BadKeys, match=f"{variable} is set and holds no key"):
        api_keys_for("127.0.0.1", file, {variable: value})


def test_a_file_of_keys_that_was_named_and_is_not_there_does_not_either(file: Path) -> None:
    with pytest.raises(BadKeys, match=r"gateway\.keys_file names .*, which is not there"):
        api_keys_for("127.0.0.1", file, {}, is_named=True)
    assert api_keys_for("127.0.0.1", file, {"NEURAXIS_API_KEYS": ASKING}, is_named=True).required
    added(file, "ask")
    assert api_keys_for("127.0.0.1", file, {}, is_named=True).required


def test_a_key_is_found_among_many_without_comparing_each() -> None:
    keys = [Key(id=f"k{number}", hash=hash_of(f"key {number}"), scopes=("ask",)) for number in range(20_000)]
    ring = ApiKeys((*keys, Key(id="later", hash=keys[7].hash, scopes=ALL_SCOPES)))
    begun = time.process_time()
    for _ in range(200):
        assert ring.find(brought("key 7")) is keys[7]
        assert ring.find(brought("no key")) is None
    assert time.process_time() - begun < 0.4, "comparing all takes over a second"


def test_only_hashes_are_stored_and_for_their_owner_alone(file: Path) -> None:
    id, told = added(file, "ask", "read", agent="support", per_minute=60)
    assert told not in file.read_text()
    assert told.split("_", 2)[2] not in file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    (key,) = held_keys(file)
    assert (key.id, key.scopes, key.agent, key.per_minute) == (id, ("ask", "read"), "support", 60)


def test_keys_are_added_and_revoked_while_a_gateway_runs(file: Path, look: tuple[ApiKeys, Callable[[], None]]) -> None:
    ring, again = look
    assert not ring.required
    id, told = added(file, "ask")
    again()
    assert ring.required
    assert ring.find(brought(told)) is not None
    assert ring.find(b"") is None
    _, other = added(file, "ask")
    revoke_key(file, id)
    again()
    assert ring.find(brought(told)) is None
    assert ring.find(brought(other)) is not None


def test_a_gateway_that_had_keys_never_opens_to_everybody(file: Path, look: tuple[ApiKeys, Callable[[], None]]) -> None:
    ring, again = look
    _, told = added(file, "ask")
    again()
    for harm in (
        lambda: file.write_text('{"id": "half'),
        lambda: file.unlink(),
        lambda: file.write_text(""),
    ):
        harm()
        again()
        assert ring.required
        assert ring.find(b"") is None
    assert ring.find(brought(told)) is None  # an empty file holds no key
    file.unlink()
    added(file, "ask")
    revoke_key(file, held_keys(file)[0].id)
    assert api_keys_for("127.0.0.1", file, {}).required


@pytest.mark.parametrize("harm", ["broken", "gone"])
def test_while_the_file_cannot_be_read_the_last_keys_are_in_force_and_that_is_told_once(
    harm: str, file: Path, look: tuple[ApiKeys, Callable[[], None]]
) -> None:
    structlog.reset_defaults()
    ring, again = look
    _, told = added(file, "ask")
    again()
    assert ring.find(brought(told)) is not None
    with structlog.testing.capture_logs() as lines:
        file.unlink() if harm == "gone" else file.write_text(f"{told}\n")
        for _ in range(3):
            again()
            assert ring.find(brought(told)) is not None
    assert [line["event"] for line in lines] == ["keys_unreadable"]
    assert told not in json.dumps(lines)


def test_a_file_that_could_not_be_opened_for_a_moment_is_read_again(
    file: Path, look: tuple[ApiKeys, Callable[[], None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    structlog.reset_defaults()
    ring, again = look
    id, told = added(file, "ask")
    again()
    assert ring.find(brought(told))
    revoke_key(file, id)

    def exhausted(*_: Any, **__: Any) -> str:
        raise OSError(24, "Too many open files")

    with monkeypatch.context() as short, structlog.testing.capture_logs() as lines:
        short.setattr(Path, "open", exhausted)
        for _ in range(3):
            again()
            assert ring.find(brought(told)), "the keys read last are in force"
    assert [line["event"] for line in lines] == ["keys_unreadable"]
    again()
    assert ring.find(brought(told)) is None


@pytest.mark.parametrize(
    "line",
    [
        "nx_a_key_itself",
        '{"id": "a"}',
        '{"id": "a b", "hash": "' + "0" * 64 + '", "scopes": []}',
        '{"id": "a", "hash": "' + "0" * 64 + '", "scopes": ["nx_a_key_itself"]}',
        '{"id": "a", "hash": "' + "0" * 64 + '", "scopes": [], "nx_a_key_itself": 1}',
    ],
)
def test_a_line_that_is_no_key_is_named_and_not_repeated(line: str, file: Path) -> None:
    added(file, "ask")
    file.write_text(f"{file.read_text()}{line}\n")
    with pytest.raises(BadKeyFile, match="line 2") as wrong:
        read_keys(file)
    assert "nx_a_key_itself" not in str(wrong.value)
    with pytest.raises(BadKeys, match="line 2"):
        api_keys_for("127.0.0.1", file, {})


@pytest.mark.parametrize("later", [{"expires": "2031-01-01"}, {"scopes": ["ask", "audit"]}], ids=["limit", "right"])
def test_a_key_that_a_later_release_made_is_told_as_that(later: dict[str, Any], file: Path) -> None:
    """Its rights cannot be known here, so it is refused; but it is a key, and not to be removed."""
    added(file, "ask")
    file.write_text(json.dumps(json.loads(file.read_text()) | later) + "\n")
    with pytest.raises(BadKeyFile, match=r"line 1: a later release made this key.*run that release"):
        read_keys(file)


def test_a_key_that_there_is_not_cannot_be_revoked(file: Path) -> None:
    added(file, "ask")
    with pytest.raises(NoSuchKey, match="nobody"):
        revoke_key(file, "nobody")


def test_a_key_is_revoked_once(file: Path) -> None:
    id, _ = added(file, "ask")
    assert revoke_key(file, id).revoked == revoke_key(file, id).revoked != ""


def test_a_key_asks_as_often_as_it_may_and_is_told_when_it_may_again() -> None:
    clock = Clock()
    rates, key, other = Rates(clock), key_of("k" * 20, "ask", per_minute=30), key_of("o" * 20, "ask", per_minute=30)
    assert [rates.take(key) for _ in range(31)] == [*[0] * 30, 2]
    assert rates.take(other) == 0
    clock.now += 1.9
    assert rates.take(key) == 1
    clock.now += 0.2
    assert rates.take(key) == 0
    clock.now += 3600
    assert [rates.take(key) for _ in range(31)].count(0) == 30


def test_a_key_without_a_limit_is_not_counted() -> None:
    rates, key = Rates(Clock()), key_of("k" * 20, "ask")
    assert not any(rates.take(key) for _ in range(1000))
