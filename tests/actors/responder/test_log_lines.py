"""The log lines of an answer, as the source writes them, without anybody's words."""

from actors.responder import ACTOR
from schemas.event import Event
from tests.actors.responder.builders import Requested, asked, blocked, chosen, ended, with_model


def lines(event: Event) -> tuple[str, ...]:
    assert ACTOR.log_lines is not None
    return tuple(ACTOR.log_lines(event, 1.5))


def test_the_generation_of_an_answer_is_told_with_its_prompt() -> None:
    """mode-router: Log Prefixes, [MODE:RESPOND] Generating response via the prompt file."""
    responder = with_model()
    responder.hear(asked("secret words"))
    request = Requested(responder, "RESPOND")
    assert lines(request.event) == ("[MODE:RESPOND] Generating response via respond.md",)
    end = ended(responder.when(request.completed("secret answer")))
    assert lines(end) == ("[MODE:RESPOND] Response by llm qwen3:8b",)


def test_the_composer_in_a_models_place_is_told_with_the_reason() -> None:
    responder = with_model()
    responder.hear(asked())
    end = ended(responder.when(Requested(responder, "CLARIFY").failed("circuit_open")))
    assert lines(end) == ("[MODE:CLARIFY] Response by composer (llm_failed:circuit_open)",)


def test_ends_without_a_mode_and_other_events_are_not_told() -> None:
    responder = with_model()
    responder.hear(asked())
    assert lines(ended(responder.when(blocked()))) == ()
    assert lines(chosen("RESPOND")) == ()
