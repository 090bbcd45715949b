"""Settings as they were recorded, by this release or another."""

from typing import Any

import msgspec

from schemas.actor import readable_settings
from schemas.vocabulary.router import RouterConfigured


class Two(msgspec.Struct, frozen=True):
    """Settings of this release."""

    share: float = 0.5
    name: str = "seed"


def read(settings: dict[str, Any]) -> Two | None:
    return readable_settings(RouterConfigured(settings=settings, settings_hash="", behaviour=1), Two)


def test_settings_come_back_and_what_this_release_does_not_know_is_ignored() -> None:
    assert read({"share": 0.25, "name": "own", "later": True}) == Two(0.25, "own")
    assert read({}) == Two()


def test_settings_that_this_release_cannot_read_are_none() -> None:
    assert read({"share": "a half"}) is None
