"""Mode Types: the source's table of the five modes, each row checked against what its exchange really asks for."""

from collections.abc import Sequence
from importlib.resources import files
from typing import NamedTuple

from actors.act.settings import ActSettings
from actors.llm.settings import LlmSettings
from actors.responder.composing.prompting import PURPOSES
from actors.responder.settings import ResponderSettings
from schemas.effectors.model_calls import ModelCall, Purpose
from schemas.vocabulary.act import ActPlanRequested
from schemas.vocabulary.responder import ResponseEmitted, ResponseRequested
from tests.actors.act.builders import Acting
from tests.actors.responder.builders import Requested, asked, chosen, with_model
from tests.actors.scenario import Partition
from tests.each import each


class Type(NamedTuple):
    """A row: how a model is asked in a mode, as the source has it with our own names of files."""

    mode: str
    purpose: Purpose
    package: str
    prompt: str
    soul: bool
    model: str


TYPES = (
    Type("ACT", "act", "actors.act", "prompt.md", False, "qwen3:8b"),
    Type("RESPOND", "respond", "actors.responder", "prompts/respond.md", True, "qwen3:8b"),
    Type("CLARIFY", "clarify", "actors.responder", "prompts/clarify.md", True, "qwen3:8b"),
    Type("ACKNOWLEDGE", "acknowledge", "actors.responder", "prompts/acknowledge.md", False, "qwen3:4b"),
)
TERMINAL = ("RESPOND", "CLARIFY", "ACKNOWLEDGE", "IGNORE")
SOUL = files("actors.responder").joinpath("prompts/soul.md").read_text(encoding="utf-8").strip()


def named(row: Type) -> str:
    return f"mode-router: Mode Types, {row.mode}"


def opened() -> Partition:
    """Return a responder with a model attached, and an open exchange."""
    responder = with_model()
    responder.hear(asked("What is the capital of Peru?"))
    return responder


def call_in(mode: str) -> ModelCall:
    """Return what a model is asked in a mode, by the actor that asks it."""
    if mode != "ACT":
        return Requested(opened(), mode).event.call
    acting = Acting(ActSettings(planner="llm"))
    acting.ask()
    (request,) = acting.said(ActPlanRequested)
    return request.call


def instructions(call: ModelCall) -> str:
    return "\n\n".join(said.content for said in call.messages if said.role == "system")


@each("row", TYPES, named=[f"{named(each)}, prompt file" for each in TYPES])
def test_a_mode_is_prompted_by_its_own_file(row: Type):
    shipped = files(row.package).joinpath(row.prompt).read_text(encoding="utf-8").strip()
    assert instructions(call_in(row.mode)).startswith(shipped)


@each("row", TYPES, named=[f"{named(each)}, {'soul' if each.soul else 'no soul'}" for each in TYPES])
def test_only_answers_in_substance_have_a_soul(row: Type):
    assert (SOUL in instructions(call_in(row.mode))) == row.soul


@each("row", TYPES, named=[f"{named(each)}, {each.model}" for each in TYPES])
def test_a_mode_asks_the_model_of_its_purpose(row: Type):
    call = call_in(row.mode)
    assert call.purpose == row.purpose
    assert LlmSettings().models.of(call.purpose) == row.model


OTHERS: Sequence[tuple[Purpose, str]] = (("tiebreak", "qwen3:4b"), ("reflect", "qwen3:14b"))


@each(("purpose", "model"), OTHERS, named=[f"mode-router: Models, {p} {m}" for p, m in OTHERS])
def test_the_other_purposes_have_models_too(purpose: Purpose, model: str):
    assert LlmSettings().models.of(purpose) == model


@each("mode", TERMINAL, named=[f"mode-router: Mode Types, {mode}, terminal" for mode in TERMINAL])
def test_a_terminal_mode_ends_its_exchange(mode: str):
    responder = Partition(opened().actor).configure(ResponderSettings())
    responder.hear(asked("What is the capital of Peru?"))
    (end,) = responder.when(chosen(mode))
    assert isinstance(end, ResponseEmitted)
    assert (end.action, end.mode) == ("EXECUTED", mode)


def test_a_continuation_mode_ends_nothing():
    """mode-router: Mode Types, ACT, continuation."""
    assert opened().when(chosen(None, "ACT")) == []


def test_an_ignored_input_is_answered_with_nothing_at_once_and_no_model_is_asked():
    """mode-router: Mode Types, IGNORE, no LLM call, empty response immediately."""
    (end,) = opened().when(chosen("IGNORE"))
    assert not isinstance(end, ResponseRequested)
    assert (end.response, end.backend, end.model) == ("", "composer", "")  # type: ignore[attr-defined]
    assert "IGNORE" not in PURPOSES
