"""Innate skills and memory layers: each row of the source's tables, performed on a memory that holds all of them."""

from typing import Any

from actors.memory.settings import MemorySettings
from schemas.vocabulary.act import Action
from schemas.vocabulary.memory import Introspection, Layer
from tests.actors.memory.builders import EVERYTHING, HOUR_MS, act, ask, begin, mind, partition, response, talk
from tests.actors.scenario import Address, Partition
from tests.each import each

HERE = Address(exchange="question")
EAST, NORTH = (100, 0), (0, 100)
LAYERS: tuple[Layer, ...] = ("turn", "gist", "fact", "episode", "concept")
NAMES = {
    "turn": "working memory",
    "gist": "gists",
    "fact": "facts",
    "episode": "episodes",
    "concept": "concepts",
}


def furnished(settings: MemorySettings = EVERYTHING) -> Partition:
    """Return a memory that knows of llamas in every layer, with an exchange about them open."""
    memory = partition(settings)
    talk(memory, "Llamas spit in the evening", "e0", session="yesterday", vector=EAST)
    talk(memory, "My llama is Dolly, she spits", "e1", vector=EAST)
    for number in range(2, 6):
        talk(memory, f"The llama eats hay at {number}", f"e{number}", vector=EAST)
    begin(memory, "What of the llama?", HERE, EAST)
    return memory


@each("layer", LAYERS, named=lambda layer: f"mode-router: Innate Skills, recall {NAMES[layer]}")
def test_one_recall_goes_over_every_layer(layer: Layer):
    (result,) = act(furnished(), Action(index=0, skill="recall", query="llama"), here=HERE).results
    found = [each.text for each in result.recollections if each.layer == layer]
    assert found
    assert all("llama" in text.lower() for text in found)


def test_what_is_memorized_is_a_fact_of_the_topic():
    """mode-router: Innate Skills, memorize stores facts (medium-term)."""
    memory = furnished()
    event = act(memory, Action(index=0, skill="memorize", key="llama's colour", value="brown"), here=HERE)
    assert [(fact.key, fact.value) for fact in event.stored] == [("llama's colour", "brown")]
    assert "llama's colour" in ask(memory, "And?", "later").familiarity.fact_keys


def test_what_is_memorized_goes_into_the_gist_of_its_exchange():
    """mode-router: Innate Skills, memorize stores gists (short-term)."""
    memory = furnished()
    act(memory, Action(index=0, skill="memorize", value="shear it in May"), here=HERE)
    (remembered,) = memory.when(response("I will."), HERE)
    assert remembered.gist == "Asked: What of the llama? Noted: shear it in May. Answered: I will."  # type: ignore[attr-defined]


def test_a_gist_is_stored_of_every_answered_exchange_without_being_asked_for():
    """mode-router: Innate Skills, memorize stores gists (short-term)."""
    memory = partition()
    remembered = talk(memory, "The llama eats hay", "e1", answer="Good for it.")
    assert remembered.gist == "Said: The llama eats hay Answered: Good for it."
    assert ask(memory, "And?").familiarity.gist_count == 1


INTROSPECTED: dict[str, Any] = {
    "context_warmth": 0.76,  # 0.4 x 5/5 + 0.3 x 1/5 + 0.3 x 4/4
    "feeling_of_knowing": 1.0,
    "recall_failure_rate": 0.0,
    "skills": {"recall": 1},
    "world_state_present": False,
    "layers": {"turn": 4, "gist": 5, "fact": 1, "episode": 6, "concept": 6},
}


@each("name", INTROSPECTED, named=lambda name: f"mode-router: Innate Skills, introspect {name}")
def test_introspection_tells(name: str):
    memory = furnished()
    act(memory, Action(index=0, skill="recall", query="llama"), here=HERE)
    (result,) = act(memory, Action(index=0, skill="introspect"), here=HERE).results
    assert getattr(result.introspection, name) == INTROSPECTED[name]


def test_introspection_tells_nothing_that_has_no_row():
    assert {*INTROSPECTED} == {*Introspection.__struct_fields__}


def test_association_spreads_through_the_concepts_from_those_that_are_named():
    """mode-router: Innate Skills, associate spreading activation from seed concepts."""
    (result,) = act(furnished(), Action(index=0, skill="associate", query="llama"), here=HERE).results
    assert {each.layer for each in result.recollections} == {"concept"}
    assert all(each.energy <= 0.7 for each in result.recollections)
    assert any(each.text.startswith("hay") for each in result.recollections)


def test_working_memory_is_the_last_four_turns():
    """mode-router: Memory Layers, working memory 0-4 turns."""
    assert ask(furnished(), "And?", "later").familiarity.working_memory_turns == 4


def test_gists_are_short_term():
    """mode-router: Memory Layers, gists expire."""
    memory = furnished()
    assert ask(memory, "And?", "later", after_ms=24 * HOUR_MS + 1).familiarity.gist_count == 0


def test_facts_are_medium_term():
    """mode-router: Memory Layers, facts outlive the session's gists."""
    memory = furnished()
    later = ask(memory, "And my llama?", "later", session="tomorrow", after_ms=24 * HOUR_MS + 1)
    assert later.familiarity.fact_keys == ("llama",)
    assert "llama: Dolly" in {each.text for each in later.recollections}


def test_a_topic_has_fifty_facts_at_most():
    """mode-router: Memory Layers, facts 0-50 a topic."""
    memory = partition()
    for number in range(51):
        talk(memory, f"My key{number} is one", f"e{number}")
    assert ask(memory, "And?").familiarity.fact_count == 50


def test_episodes_have_embedding_and_salience():
    """mode-router: Memory Layers, episodes with embedding and salience."""
    known = mind(furnished(MemorySettings())).episodes.kept[1]
    assert (known.salience, bool(known.embedding)) == (0.4, True)


def test_concepts_have_strength_and_confidence_and_fade():
    """mode-router: Memory Layers, concepts with strength, confidence and decay."""
    memory = furnished()
    now, later = (
        {each.text: each.energy for each in ask(memory, "A llama?", name, after_ms=wait).recollections}
        for name, wait in (("now", 0), ("later", 7 * 24 * HOUR_MS))
    )
    (concept,) = [text for text in now if text.startswith("llama (")]
    assert 0 < later[concept] < now[concept]
