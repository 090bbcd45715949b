import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.persistent import (
    ByIdentity,
    ExpiringMap,
    JoinBuffer,
    Map,
    decode_state,
    encode_state,
    state_builtins,
    state_hash,
    state_pieces,
)
from tests.each import each

LIFETIME = 10
steps = st.lists(st.tuples(st.sampled_from("abcde"), st.integers(0, 99), st.integers(0, 3 * LIFETIME)), max_size=30)


class Turn(msgspec.Struct, frozen=True):
    text: str
    at_ns: int


class State(msgspec.Struct, frozen=True):
    counts: Map[str, int] = Map()
    nested: Map[str, Map[int, Turn]] = Map()
    recent: ExpiringMap[Turn] = ExpiringMap()
    trust: float = 0.5


@given(steps)
def test_nothing_is_gathered_of_a_settled_exchange(steps: list[tuple[str, int, int]]) -> None:
    gatherings: JoinBuffer[int] = JoinBuffer()
    now_ns, settled = 0, set()
    for exchange, heard, passed_ns in steps:
        now_ns += passed_ns % 2  # within a lifetime, so that what was settled is still known
        if not gatherings.is_open(exchange):
            assert exchange in settled
        elif heard % 3:
            gatherings = gatherings.gather(exchange, heard, now_ns, LIFETIME * 10)
        else:
            gatherings = gatherings.settle(exchange, now_ns, LIFETIME * 10)
            settled.add(exchange)
    assert not [exchange for exchange in settled if gatherings.pending.get(exchange) is not None]


turns = st.builds(Turn, st.text(), st.integers(0, 2**62))
states = st.builds(
    State,
    counts=st.dictionaries(st.text(), st.integers(-(2**63), 2**63 - 1)).map(Map),
    nested=st.dictionaries(st.text(), st.dictionaries(st.integers(0, 9), turns, max_size=3).map(Map), max_size=3).map(
        Map
    ),
    recent=st.builds(
        ExpiringMap,
        young=st.dictionaries(st.text(), turns, max_size=3).map(Map),
        old=st.dictionaries(st.text(), turns, max_size=3).map(Map),
        since_ns=st.integers(0, 2**62),
    ),
    trust=st.floats(0, 1),
)


@given(steps, st.integers(0, 10**19))
def test_an_entry_is_kept_for_one_lifetime_and_gone_after_two(steps: list[tuple[str, int, int]], start: int) -> None:
    generations: ExpiringMap[int] = ExpiringMap()
    written: dict[str, tuple[int, int]] = {}
    now = start
    for key, value, wait in steps:
        now += wait
        generations = generations.set(key, value, now, LIFETIME)
        written[key] = (value, now)
        for known, (last, at) in written.items():
            found = generations.get(known)
            assert found in (last, None)
            if now - at <= LIFETIME:
                assert found == last
            if now - at >= 2 * LIFETIME:
                assert found is None


@given(steps)
def test_the_length_counts_each_key_once(steps: list[tuple[str, int, int]]) -> None:
    generations: ExpiringMap[int] = ExpiringMap()
    now = 0
    for key, value, wait in steps:
        now += wait
        generations = generations.set(key, value, now, LIFETIME)
        assert len(generations) == sum(generations.get(known) is not None for known in "abcde")


def test_setting_leaves_the_earlier_map_as_it_was() -> None:
    before = ExpiringMap[int]().set("a", 1, 0, LIFETIME)
    before.set("a", 2, 1, LIFETIME).set("b", 3, 100, LIFETIME)
    assert before.get("a") == 1
    assert before.get("b") is None


@given(states)
def test_a_state_survives_its_snapshot(state: State) -> None:
    assert decode_state(encode_state(state), State) == state


@given(states)
def test_a_state_read_back_has_the_same_hash(state: State) -> None:
    assert state_hash(decode_state(encode_state(state), State)) == state_hash(state)


@given(st.dictionaries(st.text(), st.integers(0, 9)), st.randoms(use_true_random=False))
def test_a_state_s_hash_does_not_depend_on_the_order_of_insertion(entries: dict[str, int], random) -> None:
    shuffled = list(entries.items())
    random.shuffle(shuffled)
    grown: Map[str, int] = Map()
    for key, value in shuffled:
        grown = grown.set(key, value).set("passing", 1).delete("passing") if key != "passing" else grown.set(key, value)
    assert state_hash(State(counts=grown)) == state_hash(State(counts=Map(entries)))


def test_another_state_has_another_hash() -> None:
    assert state_hash(State(counts=Map(a=1))) != state_hash(State(counts=Map(a=2)))


def test_a_state_shown_is_plain_dicts() -> None:
    state = State(nested=Map({"s": Map({7: Turn("hi", 1)})}))
    assert state_builtins(state)["nested"] == {"s": {"7": {"text": "hi", "at_ns": 1}}}


@given(st.dictionaries(st.text(), st.integers(0, 9)))
def test_a_state_shown_has_its_keys_in_order(entries: dict[str, int]) -> None:
    assert list(state_builtins(State(counts=Map(entries)))["counts"]) == sorted(entries)


def test_a_snapshot_of_another_shape_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError):
        decode_state(encode_state(State(counts=Map(a=1))), Turn)


@given(st.binary())
def test_a_damaged_snapshot_is_a_decode_error_or_a_state(data: bytes) -> None:
    try:
        assert isinstance(decode_state(data, State), State)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return


def test_a_state_holding_an_unknown_type_is_refused() -> None:
    class Odd(msgspec.Struct):
        thing: object

    with pytest.raises(NotImplementedError, match="complex"):
        encode_state(Odd(complex(1, 2)))


def test_a_key_by_identity_equals_only_one_of_the_very_same_values() -> None:
    words, message = ("harbour",), object()
    key = ByIdentity(words, message)
    assert key == ByIdentity(words, message)
    assert hash(key) == hash(ByIdentity(words, message))
    assert key != ByIdentity(words, object())
    assert key != ByIdentity(tuple(iter(["harbour"])), message), "equal, but not the same"


class Home(msgspec.Struct, frozen=True):
    rooms: Map[str, Map[int, Turn]] = Map()
    guests: ExpiringMap[Turn] = ExpiringMap()
    owner: State | None = None
    renamed: int = msgspec.field(name="as_stored", default=0)


class Town(msgspec.Struct, frozen=True):
    homes: Map[str, Home] = Map()
    lamps: Map[int, int] = Map()
    name: str = ""


class Tagged(msgspec.Struct, frozen=True, tag="tagged"):
    counts: Map[int, int] = Map()


class Listed(msgspec.Struct, frozen=True, array_like=True):
    counts: Map[int, int] = Map()


class Sparse(msgspec.Struct, frozen=True, omit_defaults=True):
    counts: Map[int, int] = Map()
    spare: int = 0


def counted(size: int) -> Map[int, int]:
    return Map({number: number * number for number in range(size)})


def town(homes: int, size: int) -> Town:
    rooms = Map({"hall": Map({number: Turn("a turn", number) for number in range(size)})})
    guests = ExpiringMap(young=Map({str(number): Turn("a guest", number) for number in range(size)}))
    owner = State(counts=Map({str(number): number for number in range(size)}))
    home = Home(rooms, guests, owner, size)
    return Town(
        Map({f"home-{number}": home if number % 3 else Home() for number in range(homes)}), counted(size), "here"
    )


@given(states)
def test_the_pieces_of_a_small_state_are_its_encoding(state: State) -> None:
    assert b"".join(state_pieces(state)) == encode_state(state)


@each("size", [0, 1, 15, 16, 255, 256, 257, 511, 512, 513, 65_535, 65_536])
def test_the_pieces_of_a_map_of_any_size_are_its_encoding(size: int) -> None:
    assert b"".join(state_pieces(counted(size))) == encode_state(counted(size))


@each("homes", [0, 1, 20, 300])
@each("size", [1, 300])
def test_the_pieces_of_nested_maps_are_the_encoding_of_the_whole(homes: int, size: int) -> None:
    state = town(homes, size)
    assert b"".join(state_pieces(state)) == encode_state(state)


@each("kind", [Tagged, Listed, Sparse])
def test_the_pieces_of_structs_that_are_no_maps_of_all_fields_are_their_encoding(kind: type) -> None:
    state = Map({"one": kind(counted(1_000)), "two": kind()})
    assert b"".join(state_pieces(state)) == encode_state(state)


def test_no_piece_of_a_large_state_is_large() -> None:
    pieces = list(state_pieces(town(homes=40, size=2_000)))
    assert sum(map(len, pieces)) > 2_000_000
    assert max(map(len, pieces)) < 10_000
