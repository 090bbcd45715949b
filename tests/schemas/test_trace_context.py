"""The trace context of callers."""

from schemas.intake.trace_context import span_id, trace_id, valid_traceparent
from tests.each import each

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
GOOD = f"00-{TRACE}-{SPAN}-01"


@each(("given", "read"), [(GOOD, GOOD), (f" {GOOD}\t", GOOD), (f"01-{TRACE}-{SPAN}-00-more", f"00-{TRACE}-{SPAN}-00")])
def test_a_valid_context_is_read_in_the_form_of_version_00(given: str, read: str) -> None:
    assert valid_traceparent(given) == read


@each(
    "given",
    [
        "",
        "00",
        GOOD.upper(),
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"{GOOD}-more",
        f"{GOOD}\n{GOOD}",
        f"00-{TRACE}-{SPAN}",
        "é" * 55,
    ],
)
def test_one_that_is_not_valid_counts_as_none(given: str) -> None:
    assert valid_traceparent(given) == ""


def test_ids_of_any_form_give_valid_ids_of_traces_and_spans() -> None:
    for id in (TRACE, "", "line 1", "0" * 32, "G" * 32):
        assert valid_traceparent(f"00-{trace_id(id)}-{span_id(id)}-01"), id
    assert (trace_id(TRACE), span_id(TRACE)) == (TRACE, TRACE[:16])
