"""Addresses and keys: what is taken, what is refused, and that a key is never shown."""

from pathlib import Path

import pytest

from actors.llm.endpoint import BadEndpoint, Endpoint, api_key, base_url
from tests.each import each


@each(
    ("written", "used"),
    [
        ("http://127.0.0.1:11434/v1", "http://127.0.0.1:11434/v1"),
        ("http://127.0.0.1:11434", "http://127.0.0.1:11434/v1"),
        (" https://llm.example/api/v1/ ", "https://llm.example/api/v1"),
        ("http://[::1]:8080/v1", "http://[::1]:8080/v1"),
        ("HTTPS://llm.example/v1/chat/completions/", "https://llm.example/v1"),
        ("https://llm.example?api-version=1", "https://llm.example/v1?api-version=1"),
        ("https://llm.example/v1/?api-version=1&x=", "https://llm.example/v1?api-version=1&x="),
    ],
)
def test_an_address_is_used_as_it_is_and_one_without_a_path_is_completed(written: str, used: str) -> None:
    assert base_url(written) == used
    assert base_url(used) == used


@each(
    "written",
    ["", "localhost:11434", "ftp://llm.example", "http://", "http://a b/v1", "http://llm.example:99999", "http://h:0",
     "http://[::1", "https://llm.example/v1?key=secret", "https://llm.example/v1#x", "https://h/v1?x=1&api_token=s",
     "https://llm.example/v1?v=sk-abcdef123456"],
)  # fmt: skip
def test_what_is_no_address_is_refused_with_one_that_is(written: str) -> None:
    with pytest.raises(BadEndpoint, match=r"http://127\.0\.0\.1:11434/v1"):
        base_url(written)


def test_a_secret_in_a_query_is_refused_and_not_repeated() -> None:
    with pytest.raises(BadEndpoint, match=r"holds a secret \(key\): leave it out, put the key in NEURAXIS_LLM") as no:
        base_url("https://llm.example/v1?key=hunter22")
    assert "hunter22" not in str(no.value)
    with pytest.raises(BadEndpoint) as other:
        base_url("ftp://llm.example/v1?key=hunter22")
    assert "hunter22" not in str(other.value)


def test_a_login_in_an_address_is_refused_and_not_repeated() -> None:
    with pytest.raises(BadEndpoint) as refused:
        base_url("https://user:secret@llm.example/v1")
    assert "NEURAXIS_LLM_API_KEY" in str(refused.value)
    assert "secret" not in str(refused.value)


def test_the_key_comes_from_the_environment_before_the_file(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("from-the-file\n")
    assert api_key({"NEURAXIS_LLM_API_KEY": " from-the-environment "}, str(file)) == "from-the-environment"
    assert api_key({}, str(file)) == "from-the-file"
    assert api_key({}) == ""


@pytest.mark.parametrize("content", [b"two\nlines", b"caf\xc3\xa9", b"a\x00b", b"\xff"])
def test_a_key_that_cannot_travel_in_a_header_is_refused_and_not_repeated(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "key"
    file.write_bytes(content)
    with pytest.raises(BadEndpoint, match=str(file)) as refused:
        api_key({}, str(file))
    assert "two" not in str(refused.value)


def test_a_key_file_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadEndpoint, match=r"key file .*gone cannot be read: No such file or directory"):
        api_key({}, str(tmp_path / "gone"))


def test_an_endpoint_shows_no_key() -> None:
    assert "secret" not in repr(Endpoint("https://llm.example/v1", "secret"))


@each(
    ("url", "clear"),
    [("http://llm.example/v1", True), ("https://llm.example/v1", False), ("http://127.0.0.1:1/v1", False),
     ("http://localhost:1/v1", False), ("http://[::1]:1/v1", False)],
)  # fmt: skip
def test_a_key_that_would_leave_the_machine_unencrypted_is_noticed(url: str, clear: bool) -> None:
    assert Endpoint(url, "key").key_in_the_clear is clear
    assert not Endpoint(url).key_in_the_clear
