import json

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from schemas.identity import canonical_json, content_hash, event_id, new_exchange_id, without_defaults

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda children: st.lists(children, max_size=4) | st.dictionaries(st.text(), children, max_size=4),
    max_leaves=20,
)


class Pair(msgspec.Struct):
    second: int
    first: int


def test_an_event_id_is_the_one_recorded_by_earlier_releases() -> None:
    assert event_id("cause", "reflex", 0) == "c9dfbe3d91c28a134bcd59b99bb4cf2e"


@given(st.text(), st.sampled_from(["reflex", "router"]), st.integers(0, 99))
def test_the_same_decision_has_the_same_id(cause: str, actor: str, index: int) -> None:
    made = event_id(cause, actor, index)
    assert made == event_id(cause, actor, index)
    assert len(made) == 32
    assert int(made, 16) >= 0


@given(st.sets(st.tuples(st.text(alphabet="ab1", max_size=3), st.sampled_from(["a", "b1"]), st.integers(0, 20))))
def test_another_cause_actor_or_index_has_another_id(decisions: set[tuple[str, str, int]]) -> None:
    assert len({event_id(*decision) for decision in decisions}) == len(decisions)


def test_exchange_ids_sort_by_time_and_never_repeat() -> None:
    early = {new_exchange_id(1_700_000_000_000_000_000) for _ in range(100)}
    late = {new_exchange_id(1_700_000_000_001_000_000) for _ in range(100)}
    assert len(early) == len(late) == 100
    assert max(early) < min(late)
    assert {len(made) for made in early | late} == {32}


@given(json_values)
def test_canonical_json_is_json_of_the_same_value(value: object) -> None:
    assert json.loads(canonical_json(value)) == value


@given(st.dictionaries(st.text(), st.integers(0, 9)))
def test_canonical_json_does_not_depend_on_insertion_order(value: dict[str, int]) -> None:
    assert canonical_json(value) == canonical_json(dict(reversed(value.items())))
    assert content_hash(value) == content_hash(dict(reversed(value.items())))


def test_canonical_json_sorts_keys_and_uses_no_spaces() -> None:
    assert canonical_json(Pair(second=2, first=1)) == b'{"first":1,"second":2}'


def test_a_content_hash_is_sha_256_of_the_canonical_json() -> None:
    # sha256 of the two bytes "{}", as sha256sum gives it
    assert content_hash({}) == "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"


def test_what_is_made_of_a_whole_struct_says_later_fields_only_where_they_say_something() -> None:
    class First(msgspec.Struct):
        name: str
        whole: bool = True

    class Later(First):
        tags: tuple[str, ...] = msgspec.field(default_factory=tuple)
        language: str = ""

    assert list(without_defaults(First("a"), "whole").items()) == [("name", "a"), ("whole", True)]
    assert without_defaults(Later("a"), "whole") == without_defaults(First("a"), "whole")
    assert without_defaults(Later("a", language="en")) == {"name": "a", "language": "en"}
