"""What a partition keeps, for how long, and what a snapshot brings back."""

from typing import Any

import msgspec
import pytest

from actors.intuition import ACTOR
from actors.intuition.judging import Part
from actors.intuition.settings import IntuitionSettings
from schemas.persistent import decode_state, encode_state, state_hash
from schemas.vocabulary.gateway import InputReceived, Layer
from schemas.vocabulary.intuition import IntuitionPassed
from schemas.vocabulary.reflex import ReflexPassed
from schemas.vocabulary.responder import ResponseEmitted
from tests.actors.intuition.builders import GATE, benign, harmful, intuition, judged, motif_of, withdrawn
from tests.each import each

END = ResponseEmitted(
    stage="REFLEX", action="BLOCKED", reason="x", mode=None, first_mode=None, response="", backend="composer"
)


def test_words_are_kept_until_the_verdict_is_out() -> None:
    partition = intuition()
    partition.hear(InputReceived(text=GATE))
    assert len(partition.state.pending) == 1
    assert isinstance(*partition.when(ReflexPassed()), IntuitionPassed)
    assert len(partition.state.pending) == 0


def test_words_are_dropped_when_the_exchange_ends_otherwise() -> None:
    partition = intuition()
    partition.hear(InputReceived(text=GATE))
    partition.hear(END)
    assert len(partition.state.pending) == 0
    assert partition.when(ReflexPassed()) == []


def test_an_input_is_judged_once() -> None:
    partition = intuition()
    judged(partition, GATE)
    assert partition.when(ReflexPassed()) == []


def test_a_repeated_input_of_an_ended_exchange_leaves_nothing_behind() -> None:
    partition = intuition()
    judged(partition, GATE)
    partition.hear(END)
    partition.hear(InputReceived(text=GATE))
    assert len(partition.state.pending) == 0


def test_layers_that_are_not_judged_are_not_kept() -> None:
    partition = intuition()
    layers = (Layer(role="system", content=GATE), Layer(role="tool", content="42"))
    partition.hear(InputReceived(text="hello", layers=layers))
    (waiting,) = partition.state.pending.values()
    assert waiting.parts == (Part("text", "hello"), Part("tool[1]", "42"))


def test_descriptions_are_not_kept() -> None:
    partition = intuition(harmful("p-1", "the combination is 4711"))
    assert b"combination" not in encode_state(partition.state)


def test_a_snapshot_brings_back_every_precedent_and_the_order_of_recording() -> None:
    partition = intuition(harmful("z"), benign("m", f"{GATE} please"), harmful("a"), harmful("gone"), withdrawn("gone"))
    restored = intuition()
    restored.state = decode_state(encode_state(partition.state), ACTOR.state_type)
    assert state_hash(restored.state) == state_hash(partition.state)
    assert judged(restored, GATE) == judged(partition, GATE)
    assert motif_of(judged(restored, GATE)) == "z"


def test_the_index_is_no_part_of_a_state_s_value() -> None:
    asked, unasked = (intuition(harmful("p-1"), harmful("p-2"), withdrawn("p-2")) for _ in range(2))
    judged(asked, GATE)
    asked.hear(END)
    judged(unasked, "")
    unasked.hear(END)
    assert encode_state(asked.state) == encode_state(unasked.state)
    assert asked.state == unasked.state


@each("wrong", [{"threshold": 1.1}, {"similar_floor": 0.0}, {"similar_most": -1}, {"passages": 3}])
def test_settings_out_of_range_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(wrong, IntuitionSettings)
