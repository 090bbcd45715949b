import json
from typing import Any

import pytest

from schemas.catalogue import CATALOGUE, decode_event
from schemas.errors import UndecodableEvent, UnknownTopic, UnknownVersion
from schemas.versions import UPCASTERS, upcast
from tests.each import each


def split_name(body: dict[str, Any]) -> dict[str, Any]:
    first, last = body.pop("name").split(" ")
    return body | {"first": first, "last": last}


def name_units(body: dict[str, Any]) -> dict[str, Any]:
    return body | {"wait_ms": body.pop("wait") * 1000}


CHAIN = {("forged_id.example", 1): split_name, ("forged_id.example", 2): name_units}


def test_a_body_is_lifted_step_by_step() -> None:
    lifted = upcast("forged_id.example", b'{"name": "Ada Lovelace", "wait": 2}', 1, 3, CHAIN)
    assert json.loads(lifted) == {"first": "Ada", "last": "Lovelace", "wait_ms": 2000}


def test_a_body_of_a_middle_version_skips_the_earlier_steps() -> None:
    assert json.loads(upcast("forged_id.example", b'{"wait": 2}', 2, 3, CHAIN)) == {"wait_ms": 2000}


def test_a_body_of_the_current_version_is_left_as_it_is() -> None:
    assert json.loads(upcast("forged_id.example", b'{"wait_ms": 5}', 3, 3, CHAIN)) == {"wait_ms": 5}


def test_a_missing_step_makes_the_version_unknown_and_is_named() -> None:
    with pytest.raises(UnknownVersion, match=r"forged_id\.example of version 1 .* no step leads on from version 2"):
        upcast("forged_id.example", b'{"name": "Ada Lovelace"}', 1, 3, {("forged_id.example", 1): split_name})


@each("error", [ZeroDivisionError(), AssertionError("x"), NotImplementedError(), RuntimeError("x"), OSError("x")])
def test_whatever_a_step_raises_leaves_the_body_undecodable(error: Exception) -> None:
    def raises(body: dict[str, Any]) -> dict[str, Any]:
        raise error

    with pytest.raises(UndecodableEvent, match=type(error).__name__):
        upcast("forged_id.example", b"{}", 1, 2, {("forged_id.example", 1): raises})


def test_a_step_that_returns_what_is_no_json_leaves_the_body_undecodable() -> None:
    with pytest.raises(UndecodableEvent):
        upcast("forged_id.example", b"{}", 1, 2, {("forged_id.example", 1): lambda body: {"at": object()}})


@each("body", [b"", b"{", b"[]", b"7", b'{"wait": 2}', b'{"name": 7}', b'{"name": "Plato"}', b"\xff"])
def test_a_body_that_its_step_cannot_lift_is_undecodable(body: bytes) -> None:
    with pytest.raises(UndecodableEvent):
        upcast("forged_id.example", body, 1, 2, CHAIN)


def test_every_older_version_of_every_subject_has_its_step() -> None:
    needed = {(topic, version) for topic, entry in CATALOGUE.items() for version in range(1, entry.version)}
    assert set(UPCASTERS) == needed


@each("topic", CATALOGUE)
@each("offset", [-(10**9), 1, 10**9])
def test_a_version_that_never_was_is_unknown(topic: str, offset: int) -> None:
    with pytest.raises(UnknownVersion, match="version"):
        decode_event(topic, b"{}", CATALOGUE[topic].version + offset)


def test_version_zero_is_unknown() -> None:
    with pytest.raises(UnknownVersion):
        decode_event("forged_id.input.received", b"{}", 0)


@each("topic", ["", "forged_id", "forged_id.", "forged_id.nobody.knows", "log.00.00.reflex.blocked"])
def test_a_subject_outside_the_catalogue_is_unknown(topic: str) -> None:
    with pytest.raises(UnknownTopic, match="not in the catalogue"):
        decode_event(topic, b"{}")
