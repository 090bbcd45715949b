"""What commands print of rows."""

from hypothesis import given
from hypothesis import strategies as st

from deploy.cli.output import latest


@given(st.lists(st.integers()), st.integers(min_value=0, max_value=40))
def test_the_latest_are_as_many_as_asked_for_or_all_there_are(items: list[int], count: int) -> None:
    shown = latest(items, count)
    assert len(shown) == min(count, len(items))
    assert [*items[: len(items) - len(shown)], *shown] == items
