"""The result of a check of ``neuraxis doctor``."""

from enum import StrEnum

import msgspec


class Verdict(StrEnum):
    """How a check came out."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"
    SKIP = "n/a"


class Finding(msgspec.Struct, frozen=True):
    """The result of one check: what was found, and what to do about it (empty when all is well)."""

    check: str
    verdict: Verdict
    detail: str
    remedy: str = ""
