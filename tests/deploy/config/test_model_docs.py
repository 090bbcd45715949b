"""What ``docs/operations.md`` says of language models holds: its settings, their defaults, and what is in events."""

import re
from pathlib import Path

from actors.act.settings import ActSettings
from actors.guardrails.settings import GuardrailsSettings
from actors.llm.settings import LlmSettings
from actors.llm.wire.thought_filter import without_thoughts
from actors.responder.settings import ResponderSettings
from deploy.config.models import OLLAMA_CONTEXT
from schemas.vocabulary.llm import LlmCompleted, LlmFailed
from schemas.vocabulary.responder import ResponseEmitted
from tests.each import each

PAGE = (Path(__file__).parents[3] / "docs" / "operations.md").read_text()
SECTION = PAGE.partition("## Language models")[2].partition("\n## ")[0]
SETTINGS = {
    "llm": LlmSettings(),
    "responder": ResponderSettings(),
    "act": ActSettings(),
    "guardrails": GuardrailsSettings(),
}
ROWS = re.findall(r"^\| (`(?:llm|responder|act|guardrails)\.[^|]+) \| ([^|]+) \| [^|]+ \|$", SECTION, re.MULTILINE)


def test_every_setting_that_is_named_is_there_with_its_default() -> None:
    assert len(ROWS) >= 9
    for names, default in ROWS:
        first, *others = re.findall(r"`([\w.]+)`", names)
        actor, _, name = first.partition(".")
        values = [str(getattr(SETTINGS[actor], each)) for each in (name, *others)]
        told = [number.replace(",", "") for number in re.findall(r"\d[\d,]*", default)]
        assert not told or told[: len(values)] == values, names


def test_every_token_setting_of_the_responder_is_documented() -> None:
    for name in ResponderSettings.__struct_fields__:
        if name.endswith("_tokens"):
            assert f"{name}`" in SECTION, name


def test_the_context_that_an_ollama_is_taken_to_have_is_told() -> None:
    assert f"else {OLLAMA_CONTEXT:,} for an Ollama" in SECTION.replace("\n", " ")


@each(
    ("kind", "fields"),
    [
        (LlmCompleted, ["ended", "adapted", "cuts"]),
        (LlmFailed, ["said"]),
        (ResponseEmitted, ["finish_reason", "cuts"]),
    ],
)
def test_what_is_said_to_be_in_events_is(kind: type, fields: list[str]) -> None:
    assert set(fields) <= set(kind.__struct_fields__)  # type: ignore[attr-defined]
    assert all(f"`{field}`" in SECTION for field in fields)


def test_the_markings_of_thoughts_that_are_named_are_left_out() -> None:
    named = re.search(r"Thoughts are no part.*?left out", SECTION, re.DOTALL)
    assert named is not None
    for opening in re.findall(r"`(\S+)`", named[0]):
        close = opening[0] + "/" + opening[1:]
        assert without_thoughts(f"{opening}Peru{close}Lima.") == "Lima.", opening
