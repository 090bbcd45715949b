"""The pause that a ``Retry-After`` header asks for."""

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from schemas.intake.retry_after import retry_after
from tests.each import each

NOW = datetime(2030, 1, 1, 12, 0, 0, tzinfo=UTC)


@each(
    ("header", "seconds"),
    [
        ("120", 120.0),
        (" 7 ", 7.0),
        ("0", 0.0),
        ("Tue, 01 Jan 2030 12:01:00 GMT", 60.0),
        ("Tue, 01 Jan 2030 11:00:00 GMT", 0.0),
        ("", 0.0),
        ("soon", 0.0),
        ("-5", 0.0),
        ("²", 0.0),
        ("Mon, 01 Jan 2020 00:00:00 +99999999999999999", 0.0),
        ("Mon, 01 Jan 99999999999 00:00:00 GMT", 0.0),
    ],
)
def test_the_wait_that_is_asked_for_comes_in_seconds_or_as_a_date(header: str, seconds: float) -> None:
    assert retry_after(header, NOW) == seconds


@given(st.text(max_size=30))
def test_no_header_is_too_odd_to_be_passed_over(header: str) -> None:
    assert retry_after(header, NOW) >= 0
