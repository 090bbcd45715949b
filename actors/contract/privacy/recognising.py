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

_REGIONS_MEANT = {"UK": "GB", "USA": "US", "EN": "GB"}
"""What people write for a country -> its code by ISO 3166."""

# Candidates; all but e-mail addresses are then checked by their check digits or by a parser.
_EMAIL = re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@(?:[\w-]{1,63}\.)+[^\W\d_]{2,24}(?![\w-])")
_CARD = re.compile(r"(?<![\w.-])\d(?:[ -]?\d){12,18}(?![\w-])")
_IBAN = re.compile(r"(?<!\w)[A-Z]{2}\d{2}(?: ?[A-Z0-9]){11,30}(?!\w)")
_SSN = re.compile(r"(?<![\w-])\d{3}-\d{2}-\d{4}(?![\w-])")
_IP_ADDRESS = re.compile(
    r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?!\w|\.\d)|(?<![\w:])(?:[0-9a-fA-F]{1,4}:){3,7}[0-9a-fA-F]{1,4}(?![\w:])"
)
# What may be a telephone number, or a row of them, with what the library takes for signs and spaces in one.
_SIGN = (
    r"[ .()\[\]/~\u00a0\u00ad\u200b\u2010-\u2015\u2060\u2053\u2212\u223c\u3000\u30fc"
    r"\uff08\uff09\uff0d-\uff0f\uff3b\uff3d\uff5e-]"
)
_NUMBER = re.compile(rf"(?:[+\uff0b]{_SIGN}{{0,4}}|[(\[\uff08\uff3b]){{0,2}}\d(?:{_SIGN}{{0,4}}\d){{5,}}")

MOST_EXAMINED = 100_000
"""Most characters of rows of six digits or more, with the signs between them, that are examined in a text for telephone
numbers, which bounds the time to some two seconds. Further rows are masked unexamined."""

_BEFORE, _BEHIND = 8, 32
"""Characters before and behind a row that are examined with it: they show dates, times and extensions."""

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


def why_not_masked(settings: PrivacySettings) -> str:
    """Return why data that is to be masked by the settings would not be, and what to do; empty if there is no reason.

    The library finds no national numbers of a region that it does not know, and says nothing.
    """
    if not settings.is_on:
        return ""
    if missing := missing_packages():
        return missing
    from phonenumbers import SUPPORTED_REGIONS

    for region in settings.regions:
        if region not in SUPPORTED_REGIONS:
            meant = _REGIONS_MEANT.get(region.upper(), region.upper())
            hint = f"did you mean {meant!r}?" if meant in SUPPORTED_REGIONS else "write codes such as DE, GB or US"
            return f"its regions have {region[:40]!r}, which is no country's code: {hint}"
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
        # The spans kept so far are at least as long, so one that overlaps this one has its first or its last character.
        if not (taken[each.start] or taken[each.end - 1]):
            kept.append(each)
            taken[each.start : each.end] = b"\x01" * (each.end - each.start)
    return tuple(sorted(kept, key=lambda each: each.start))


def _candidates(text: str, regions: tuple[str, ...]) -> Iterator[PersonalSpan]:
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
    yield from _phones(text, regions)


def _phones(text: str, regions: tuple[str, ...]) -> Iterator[PersonalSpan]:
    from phonenumbers import Leniency, PhoneNumberMatcher

    left = MOST_EXAMINED
    for row in _NUMBER.finditer(text):
        left -= len(row[0])
        if left < 0:
            yield PersonalSpan("phone", *row.span())
            continue
        begin = max(0, row.start() - _BEFORE)
        around = text[begin : row.end() + _BEHIND]
        for region in (None, *regions):
            for match in PhoneNumberMatcher(around, region, leniency=Leniency.VALID):
                if row.start() <= begin + match.start < row.end():
                    yield PersonalSpan("phone", begin + match.start, begin + match.end)


def _digits(number: str) -> str:
    return re.sub(r"\D", "", number)


def _is_ip_address(text: str) -> bool:
    try:
        return not ip_address(text).is_loopback
    except ValueError:
        return False
