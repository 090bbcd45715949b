"""Words of ours that are recorded with decisions, since a model is asked in them: reworded, they change a behaviour.

Composers' texts are held so too (``responder.test_composer``), and the responder's prompts are settings, on record by
themselves. Nothing else of ours is on record in words (``tests.schemas.wording.test_redacted_fields``).
"""

from collections.abc import Callable
from hashlib import sha256
from importlib.resources import files
from typing import get_args

from actors.drift.settings import DriftSettings
from actors.drift.thought_texts import compose_thought
from actors.drift.thought_texts import synthesis_call as ask_for_thought
from actors.guardrails.critic import critique_call as ask_critic
from actors.guardrails.settings import GuardrailsSettings
from actors.reflection.opinion_call import DIMENSIONS, MODES
from actors.reflection.opinion_call import opinion_call as ask_for_opinions
from actors.reflection.settings import ReflectionSettings
from actors.registry import ACTORS
from actors.responder.composing.prompting import IMPROVEMENTS
from actors.router.tiebreak import MEANINGS
from schemas.catalogue import CATALOGUE
from schemas.vocabulary.drift import Kind
from schemas.vocabulary.memory import MemoryWandered
from tests.each import each


def _drift() -> list[str]:
    upon = CATALOGUE["forged_id.memory.wandered"].sample
    assert isinstance(upon, MemoryWandered)
    kinds: tuple[Kind, ...] = get_args(Kind)
    asked = ask_for_thought(upon, DriftSettings()).messages
    return [*(each.content for each in asked), *(compose_thought(upon, kind).text for kind in kinds)]


WORDS: dict[str, Callable[[], list[str]]] = {
    "act": lambda: [files("actors.act").joinpath("prompt.md").read_text(encoding="utf-8")],
    "drift": _drift,
    "guardrails": lambda: [ask_critic("loop", "question", "answer", GuardrailsSettings()).call.messages[0].content],
    "reflection": lambda: [
        ask_for_opinions([], ReflectionSettings()).call.messages[0].content,
        *MODES.values(),
        *DIMENSIONS.values(),
    ],
    "responder": lambda: [f"{trigger}: {text}" for trigger, text in IMPROVEMENTS.items()],
    "router": lambda: [f"{mode}: {text}" for mode, text in MEANINGS.items()],
}
OF_BEHAVIOUR = {
    "act": {1: "c0eb3dddf8894ea0"},
    "drift": {1: "870c1df87063859d"},
    "guardrails": {1: "5b164394dbf161c1"},
    "reflection": {1: "dd3494cc3ecb1bae"},
    "responder": {1: "9abe83ec08fa4453"},
    "router": {1: "ced27b27b2e123eb"},
}
"""Actor -> behaviour -> digest of its words."""


@each("actor", sorted(WORDS))
def test_the_words_that_an_actor_records_are_those_of_its_declared_behaviour(actor: str) -> None:
    digest = sha256("\n".join(WORDS[actor]()).encode()).hexdigest()[:16]
    assert digest == OF_BEHAVIOUR[actor][ACTORS[actor].behaviour], f"raise the behaviour of {actor} with its words"
