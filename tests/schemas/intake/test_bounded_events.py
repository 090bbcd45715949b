"""What anybody may put into the log by hand: nothing in it may be without a bound on how many there are."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from msgspec import inspect

from schemas.catalogue import CATALOGUE, decode_event
from schemas.errors import UndecodableEvent
from schemas.permissions import KEY_CREATORS
from schemas.vocabulary.loops import MOST_NUMBERS, MOST_TERMS
from tests.each import each

BOUNDED_OTHERWISE = {
    ("forged_id.input.received", "layers"): "schemas.intake.limits.MOST_LAYERS: what is beyond is left out, and said",
    ("forged_id.input.received", "documents"): "as layers",
    ("forged_id.input.received", "tool_results"): "as layers",
    ("forged_id.operator.patterns_imported", "sets"): "reflex holds 20,000 signatures, and takes no import beyond",
    ("forged_id.operator.patterns_imported", "signatures"): "as sets",
}


def _lists(kind: inspect.Type, name: str) -> Iterator[tuple[str, int | None]]:
    """Yield every list and mapping in a type: the name of its field, and how many it may have."""
    match kind:
        case inspect.Metadata():
            yield from _lists(kind.type, name)
        case inspect.UnionType():
            for each in kind.types:
                yield from _lists(each, name)
        case inspect.VarTupleType() | inspect.ListType():
            yield name, kind.max_length
            yield from _lists(kind.item_type, name)
        case inspect.DictType():
            yield name, kind.max_length
            yield from _lists(kind.value_type, name)
        case inspect.StructType():
            for field in kind.fields:
                yield from _lists(field.type, field.name)


FROM_OUTSIDE = sorted(
    topic
    for topic, entry in CATALOGUE.items()
    if entry.owner in KEY_CREATORS and not topic.endswith((".failed", ".configured"))
)


@each("topic", FROM_OUTSIDE)
def test_whatever_comes_from_outside_bounds_how_many_things_it_names(topic: str) -> None:
    unbounded = {name for name, most in _lists(inspect.type_info(CATALOGUE[topic].event), "") if most is None}

    assert unbounded <= {name for where, name in BOUNDED_OTHERWISE if where == topic}


def _tick(**fields: Any) -> bytes:
    return msgspec.json.encode({"topic": "forged_id.tick.observed", **fields})


def _parts(most: int, **fields: list[Any]) -> list[dict[str, Any]]:
    """Return parts that have more than ``most`` of a field together."""
    ((_, items),) = fields.items()
    return [{"id": f"p{number}", **fields} for number in range(most // len(items) + 1)]


@each(
    ("body", "what"),
    [
        (_tick(modes={f"m{number}": 0 for number in range(1_001)}), "object"),
        (_tick(candidates=[{"id": f"p{n}", "terms": ["a"] * 1_000} for n in range(MOST_TERMS // 1_000 + 1)]), "terms"),
        (
            _tick(chosen=[{"id": f"p{n}", "centroid": [0] * 4_096} for n in range(MOST_NUMBERS // 4_096 + 1)]),
            "centroid",
        ),
    ],
    named=["modes", "terms", "centroids"],
)
def test_a_tick_past_every_edge_that_would_hold_up_self_review_is_refused(body: bytes, what: str) -> None:
    with pytest.raises(UndecodableEvent, match=what):
        decode_event("forged_id.tick.observed", body)


@each("field", ["orchestrator_persona", "reflection_status", "override_by"])
def test_a_loop_whose_names_would_not_fit_into_its_verdict_is_refused(field: str) -> None:
    body = msgspec.json.encode({"topic": "forged_id.loop.completed", "loop_id": "a", field: "x" * 201})

    with pytest.raises(UndecodableEvent, match=field):
        decode_event("forged_id.loop.completed", body)
