"""What a check of ``neuraxis doctor`` comes to."""

from enum import StrEnum

import msgspec


class Verdict(StrEnum):
    """How a check came out."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"
    SKIP = "n/a"


class Finding(msgspec.Struct, frozen=True):
    """One check: what was seen, and what to do about it (empty when all is well)."""

    check: str
    verdict: Verdict
    detail: str
    remedy: str = ""
