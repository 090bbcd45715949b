"""Recognises data in a text that identifies a person or gives access to something. No decision depends on it.

Telephone numbers are recognised by phonenumbers (Google's libphonenumber, with a release every few weeks). Card
numbers, bank accounts and social security numbers are recognised by their check digits with python-stdnum, and keys by
the forms in ``actors.contract.answers.credentials``. Both libraries are plain Python of a few megabytes without
dependencies, and do not use the network. presidio-analyzer has the same recognisers (phonenumbers, and patterns), but
also needs spaCy, some hundred megabytes, and a model that it downloads.

Names and street addresses are not recognised: that would need a model for each language.
"""

import re
from collections.abc import Iterator
from importlib.metadata import version
from importlib.util import find_spec
from ipaddress import ip_address
from typing import NamedTuple

from actors.contract.answers.credentials import keys_in
from actors.contract.privacy.settings import PrivacySettings
from schemas.effectors.model_calls import PersonalKind

PACKAGES = ("phonenumberslite", "python-stdnum")
"""The packages by which data is recognised."""

REMEDY = "pip install 'neuraxis[privacy]'"
"""The command that installs them."""

# Candidates; all but e-mail addresses are then checked by their check digits or by a parser.
_EMAIL = re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@(?:[\w-]{1,63}\.)+[^\W\d_]{2,24}(?![\w-])")
_CARD = re.compile(r"(?<![\w.-])\d(?:[ -]?\d){12,18}(?![\w-])")
_IBAN = re.compile(r"(?<!\w)[A-Z]{2}\d{2}(?: ?[A-Z0-9]){11,30}(?!\w)")
_SSN = re.compile(r"(?<![\w-])\d{3}-\d{2}-\d{4}(?![\w-])")
_IP_ADDRESS = re.compile(
    r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?!\w|\.\d)|(?<![\w:])(?:[0-9a-fA-F]{1,4}:){3,7}[0-9a-fA-F]{1,4}(?![\w:])"
)
_SHORTEST_IBAN = 15
"""Fewest letters and digits of an international bank account number."""


class PersonalSpan(NamedTuple):
    """A span of a text, and the kind of data in it."""

    kind: PersonalKind
    start: int
    end: int


def missing_packages() -> str:
    """Return why nothing can be recognised here, and what to do; empty where recognition works."""
    missing = [name for name, module in zip(PACKAGES, ("phonenumbers", "stdnum"), strict=True) if not find_spec(module)]
    return f"{' and '.join(missing)} not installed, which masking needs: {REMEDY}" if missing else ""


def masking_fault(settings: PrivacySettings) -> str:
    """Return why nothing is masked here as the settings say, and what to do; empty where it is, or is not to be.

    Of a region that the library does not know, it finds no number, and reports no error.
    """
    if not settings.is_on:
        return ""
    if missing := missing_packages():
        return missing
    from phonenumbers import SUPPORTED_REGIONS

    if unknown := [region for region in settings.regions if region not in SUPPORTED_REGIONS]:
        return (
            f"its regions have {unknown[0]!r}, of which no telephone number would be masked: write two capital letters "
            "by ISO 3166, such as GB for the United Kingdom"
        )
    return ""


def recogniser() -> str:
    """Return the names and versions of the recognisers, for the record."""
    return "+".join(f"{name}-{version(name)}" for name in PACKAGES)


def found_in(text: str, regions: tuple[str, ...] = ()) -> tuple[PersonalSpan, ...]:
    """Return the personal data in a text, in order, without overlaps; of two that overlap, the longer one counts."""
    found = sorted(_candidates(text, regions), key=lambda each: (each.start - each.end, each.start))
    kept: list[PersonalSpan] = []
    taken = bytearray(len(text))
    for each in found:
        # Those before it are at least as long: one that overlaps it has its first or its last character.
        if not (taken[each.start] or taken[each.end - 1]):
            kept.append(each)
            taken[each.start : each.end] = b"\x01" * (each.end - each.start)
    return tuple(sorted(kept, key=lambda each: each.start))


def _candidates(text: str, regions: tuple[str, ...]) -> Iterator[PersonalSpan]:
    from phonenumbers import Leniency, PhoneNumberMatcher
    from stdnum import iban, luhn
    from stdnum.us import ssn

    yield from (PersonalSpan("key", key.start, key.end) for key in keys_in(text))
    if "@" in text:
        yield from (PersonalSpan("email", *match.span()) for match in _EMAIL.finditer(text))
    if not any(map(str.isdigit, text)):
        return
    yield from (
        PersonalSpan("card", *match.span()) for match in _CARD.finditer(text) if luhn.is_valid(_digits(match[0]))
    )
    yield from (PersonalSpan("ssn", *match.span()) for match in _SSN.finditer(text) if ssn.is_valid(match[0]))
    yield from (PersonalSpan("ip", *match.span()) for match in _IP_ADDRESS.finditer(text) if _is_ip_address(match[0]))
    for match in _IBAN.finditer(text):
        # The words after it may be in capitals, too: the longest beginning that is a valid number counts.
        for end in range(len(match[0]), _SHORTEST_IBAN - 1, -1):
            if match[0][end - 1] != " " and iban.is_valid(match[0][:end]):
                yield PersonalSpan("iban", match.start(), match.start() + end)
                break
    for region in (None, *regions):
        matcher = PhoneNumberMatcher(text, region, leniency=Leniency.VALID, max_tries=1_000)
        yield from (PersonalSpan("phone", match.start, match.end) for match in matcher)


def _digits(number: str) -> str:
    return re.sub(r"\D", "", number)


def _is_ip_address(text: str) -> bool:
    try:
        return not ip_address(text).is_loopback
    except ValueError:
        return False
