"""What models answer in JSON is read in one way, whoever asked: in a fence or bare, and however deep it nests."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

import actors
from actors.act.planning import read_plan
from actors.act.settings import ActSettings
from actors.appraisal.judgement_call import read_judgements
from actors.drift.thought_texts import read_thought
from actors.guardrails.critic import critique_of
from actors.reflection.opinion_call import opinions_of
from actors.router.tiebreak import INVALID, outcome_of
from schemas.effectors.model_calls import read_answer
from schemas.vocabulary.appraisal import LayerTrust
from tests.each import each

LAYER = LayerTrust(layer="text", characters=9, truth=0.5, indeterminacy=0.2, falsehood=0.1)
READERS: dict[str, tuple[Callable[[str], Any], str]] = {
    "act": (lambda answer: read_plan(answer, ActSettings()), '{"actions": [{"skill": "introspect", "extra": %s}]}'),
    "appraisal": (
        lambda answer: read_judgements(answer, [LAYER]),
        '{"parts": [{"part": 1, "falsehood": 1, "kind": "none", "extra": %s}]}',
    ),
    "drift": (read_thought, '{"kind": "reflection", "text": "So it is.", "extra": %s}'),
    "guardrails": (critique_of, '{"alignment": 0.5, "drift": 0.5, "bias_tags": [], "extra": %s}'),
    "reflection": (
        lambda answer: opinions_of(answer, 1),
        '{"opinions": [{"number": 1, "mode": "ACT", "dimension": "intent_clarity", "confidence": 1, "extra": %s}]}',
    ),
    "router": (
        lambda answer: None if (mode := outcome_of(answer, ("ACT", "RESPOND"))) == INVALID else mode,
        '{"mode": "ACT", "extra": %s}',
    ),
}


@each("reader", READERS)
def test_an_answer_is_read_bare_and_in_any_fence_and_one_that_nests_too_deep_is_none(reader: str) -> None:
    read, written = READERS[reader]
    bare = written % "[[1]]"
    found = read(bare)
    assert found is not None
    for fenced in (f"```json\n{bare}\n```", f"```\n{bare}```", f"  ```JSON {bare}```\n"):
        assert read(fenced) == found
    for depth in (70, 1_800):
        assert read(written % ("[" * depth + "]" * depth)) is None
        assert read(written % ("[" * depth)) is None


def test_brackets_in_words_and_one_after_the_other_are_no_depth() -> None:
    said = [["a"], ["b [c] {d}"]] * 300
    assert read_answer(msgspec.json.encode(said).decode(), list[list[str]], 100_000) == said


def test_no_actor_decodes_a_model_s_answer_in_a_way_of_its_own() -> None:
    for path in Path(actors.__file__).parent.rglob("*.py"):
        source = path.read_text()
        if "ModelCall" in source and path.parent.name != "llm":  # llm answers, and nothing rests on how it reads
            assert "```" not in source, f"{path} looks for a code fence by itself: use schemas.effectors.model_calls"
