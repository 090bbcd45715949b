"""The structure of a stored state: what changes its hash, and what does not."""

from typing import Annotated, Generic, Literal, NamedTuple, TypeVar

import msgspec

from actors.registry import ACTORS
from schemas.persistent import Derived, ExpiringMap, Map
from schemas.state_structure import structure_hash
from tests.each import each

V = TypeVar("V")


class Line(msgspec.Struct, frozen=True):
    text: str
    at_ns: int = 0


class LineOfAnotherName(msgspec.Struct, frozen=True):
    text: str
    at_ns: int = 1


class Renamed(msgspec.Struct, frozen=True):
    words: str
    at_ns: int = 0


class StoredAlike(msgspec.Struct, frozen=True):
    words: str = msgspec.field(name="text")
    at_ns: int = 0


class Wider(msgspec.Struct, frozen=True):
    text: str
    at_ns: int = 0
    by: str = ""


class Narrower(msgspec.Struct, frozen=True):
    text: str


class Reordered(msgspec.Struct, frozen=True):
    at_ns: int
    text: str


class Retyped(msgspec.Struct, frozen=True):
    text: str
    at_ns: float = 0


class Listed(msgspec.Struct, frozen=True, array_like=True):
    text: str
    at_ns: int = 0


class Tagged(msgspec.Struct, frozen=True, tag="line"):
    text: str
    at_ns: int = 0


class Constrained(msgspec.Struct, frozen=True):
    text: Annotated[str, msgspec.Meta(max_length=3)]
    at_ns: Annotated[int, msgspec.Meta(ge=0)] = 0


class Box(msgspec.Struct, Generic[V], frozen=True):
    content: Map[str, V] = Map()


class Tree(msgspec.Struct, frozen=True):
    branches: "tuple[Tree, ...]" = ()


class OtherTree(msgspec.Struct, frozen=True):
    branches: "tuple[OtherTree, ...]" = ()


class Pair(NamedTuple):
    one: Line
    two: int


class Index(Derived):
    pass


class Indexed(msgspec.Struct, frozen=True):
    index: Index
    kind: Literal["a", "b"]


class IndexedOtherwise(msgspec.Struct, frozen=True):
    index: Index
    kind: Literal["a"]


@each("other", [LineOfAnotherName, StoredAlike, Constrained])
def test_what_is_stored_alike_has_the_same_structure(other: type) -> None:
    assert structure_hash(other) == structure_hash(Line)


def test_allowed_values_and_the_names_of_recursive_types_do_not_count() -> None:
    assert structure_hash(Indexed) == structure_hash(IndexedOtherwise)
    assert structure_hash(Tree) == structure_hash(OtherTree)


@each("other", [Renamed, Wider, Narrower, Reordered, Retyped, Listed, Tagged])
def test_another_form_has_another_structure_however_deep_it_is(other: type) -> None:
    for inside in (
        lambda kind: kind,
        lambda kind: Map[str, kind],
        lambda kind: tuple[kind, ...],
        lambda kind: kind | None,
        lambda kind: Box[kind],
        lambda kind: ExpiringMap[Map[int, kind]],
    ):
        assert structure_hash(inside(other)) != structure_hash(inside(Line))


def test_containers_and_keys_count() -> None:
    kinds = [Line, Pair, Map[str, Line], Map[int, Line], Box[Line], tuple[Line, ...], list[Line], Line | None, Indexed]
    hashes = [structure_hash(kind) for kind in kinds]
    assert len(set(hashes)) == len(kinds)


def test_every_actor_has_a_structure_of_its_own() -> None:
    hashes = {name: structure_hash(actor.state_type) for name, actor in ACTORS.items()}
    assert len(set(hashes.values())) == len(hashes)
