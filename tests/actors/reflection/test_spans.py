"""When the decisions were made that a disagreement is about: the regulator judges by those after its adjustment."""

from hypothesis import given
from hypothesis import strategies as st

from actors.reflection.opinion_counting import SPANS, CountedInsight, conclude, counted_with
from schemas.vocabulary.reflection import Span
from tests.actors.reflection.builders import ON, Reflecting, answer, opinion, selection
from tests.actors.scenario import MS

WINDOW_NS = ON.window_ms * MS
SPAN_NS = WINDOW_NS // SPANS
NOW_NS = 1_700_000_000 * 10**9

times = st.integers(NOW_NS - 2 * WINDOW_NS, NOW_NS)
opinions = st.lists(st.builds(CountedInsight, st.just("x"), times, st.booleans(), st.just("social_cue")), max_size=60)


@given(found=opinions)
def test_the_spans_hold_every_opinion_that_counts_once_in_order_and_are_few(found: list[CountedInsight]):
    counted = counted_with(found, (), NOW_NS, ON)
    spans = conclude(counted, (), ON, wake_after_ms=0).spans
    assert sum(each.counted for each in spans) == len(counted)
    assert sum(sum(each.disagree.values()) for each in spans) == sum(not each.agrees for each in counted)
    starts = [each.start_ns for each in spans]
    assert starts == sorted({*starts})
    assert len(spans) <= SPANS + 1
    for each in counted:
        assert any(start <= each.at_ns < start + SPAN_NS for start in starts)


def test_an_opinion_is_of_the_time_of_its_decision_and_not_of_when_it_was_had():
    agent = Reflecting()
    decided_ns = agent.partition.now_ns
    agent.exchange(selection())
    agent.partition.now_ns += 3 * SPAN_NS
    asked = agent.request()
    concluded = agent.says(asked, answer(opinion(1)))
    assert concluded.insights[0].decided_ns == decided_ns
    assert concluded.spans == (
        Span(start_ns=decided_ns // SPAN_NS * SPAN_NS, counted=1, disagree={"memory_availability": 1}),
    )


def test_opinions_on_decisions_older_than_the_window_do_not_count_however_late_they_are_had():
    agent = Reflecting()
    agent.exchange(selection())
    agent.partition.now_ns += WINDOW_NS
    concluded = agent.says(agent.request(), answer(opinion(1)))
    assert (concluded.counted, concluded.spans) == (0, ())
