"""The breaker's stance towards a session reaches its answers, by the composer and by a model."""

from typing import Any

import msgspec

from actors.responder import ACTOR
from actors.responder.settings import ResponderSettings
from schemas.vocabulary.breaker import BreakerCleared, Stance
from tests.actors.responder.builders import Requested, asked, chosen, ended, entry_of, memory, recalled, with_model
from tests.actors.scenario import Partition
from tests.each import each

REMEMBERED = recalled(memory("The office is in Lima.", energy=0.9))


def cleared(stance: Stance) -> Any:
    sample: Any = entry_of(BreakerCleared).sample
    return msgspec.structs.replace(sample, standing=msgspec.structs.replace(sample.standing, stance=stance))


@each("stance", ["guarded", "cautious"])
def test_a_model_is_told_of_the_stance_by_a_text_that_is_on_record(stance: Stance) -> None:
    responder = with_model()
    responder.when(asked())
    responder.when(cleared(stance))
    request = Requested(responder, "RESPOND").event
    text = getattr(ResponderSettings().prompts, stance)
    assert text in request.call.messages[0].content
    assert stance in request.prompts


def test_a_model_is_told_nothing_of_a_normal_stance() -> None:
    responder = with_model()
    responder.when(asked())
    responder.when(cleared("normal"))
    assert list(Requested(responder, "ACKNOWLEDGE").event.prompts) == ["acknowledge"]


@each(("stance", "told"), [("guarded", False), ("cautious", True), ("normal", True)])
def test_a_guarded_answer_repeats_nothing_that_is_remembered(stance: Stance, told: bool) -> None:
    composer, model = Partition(ACTOR), with_model()
    for responder in (composer, model):
        responder.when(asked())
        responder.when(cleared(stance))
        responder.when(REMEMBERED)
    end = ended(composer.when(chosen("RESPOND")))
    assert ("Lima" in end.response) is told
    assert ("with reserve" in end.response) is not told
    request = Requested(model, "RESPOND").event
    assert ("Lima" in request.call.messages[-1].content) is told
    assert bool(request.entities) is told
